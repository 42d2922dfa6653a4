/** The answer of a query in SQL as tracks of the timeline: rows with a start and a length, a track for each lane. */
import { send, type TableSection } from "../api";
import { lanesOf, type Stretch, stretches } from "../pages/sql/result";
import type { GroupInfo, LaneSlices, TrackInfo } from "./wire";

export interface QueryTracks {
  readonly group: GroupInfo;
  /** The slices of each row of a track, by `track.row`. */
  readonly rows: ReadonlyMap<string, LaneSlices>;
  /** The names of the slices, whose types are -1, -2, and so on. */
  readonly names: readonly string[];
  readonly stretches: readonly Stretch[];
}

const GROUP = "query";
/** A track of which nothing is known. */
export const EMPTY_TRACK = {
  ...{ detail: "", events: 0, main: false, is_profiler: false, communicates: false, events_at_first: 0 },
  ...{ unit: "", highest: null, lowest: null },
};
const MOST_UNITS = 2 ** 30;

/** Asks the query; null if its answer has no start and length, or no row. */
export async function askTracks(session: string, query: string): Promise<QueryTracks | null> {
  const root = `api/sessions/${encodeURIComponent(session)}/sql`;
  const { section } = await send<{ section: TableSection }>("POST", root, { query, attach: {} });
  const found = stretches({ fields: section.fields, columns: section.columns ?? {}, rowCount: section.row_count });
  return found?.length ? toTracks(found) : null;
}

export function toTracks(all: readonly Stretch[]): QueryTracks {
  const first = Math.min(...all.map(({ begin }) => begin));
  const last = Math.max(...all.map(({ end }) => end));
  const unit = Math.max(1, (last - first) / MOST_UNITS);
  const names = [...new Set(all.map(({ name }) => name))];
  const types = new Map(names.map((name, at) => [name, -1 - at]));
  const rows = new Map<string, LaneSlices>();
  const tracks = lanesOf(all).map(({ label, parts }, at): TrackInfo => {
    const id = `q${at}`;
    const placed = placeInRows(parts);
    placed.forEach((own, row) => {
      rows.set(`${id}.${row}`, toSlices(own, first, unit, types));
    });
    return {
      ...EMPTY_TRACK,
      ...{ id, name: label || "rows", kind: GROUP, line: 0, rows: placed.length, events: parts.length },
    };
  });
  const group: GroupInfo = {
    ...{ id: GROUP, name: "Query", detail: `${all.length} rows of a query in SQL`, kind: "query", tracks },
    ...{ groups: [], empty: [], lanes: 1 },
  };
  return { group, rows, names, stretches: all };
}

/** Stretches in rows in which none overlaps another, each in order of time. */
function placeInRows(parts: readonly Stretch[]): readonly Stretch[][] {
  const rows: Stretch[][] = [];
  for (const each of [...parts].sort((a, b) => a.begin - b.begin || b.end - a.end)) {
    const free = rows.find((row) => (row.at(-1) as Stretch).end <= each.begin);
    if (free) free.push(each);
    else rows.push([each]);
  }
  return rows;
}

function toSlices(
  own: readonly Stretch[],
  begin: number,
  unit: number,
  types: ReadonlyMap<string, number>,
): LaneSlices {
  return {
    ...{ level: 0, begin, unit },
    start: Int32Array.from(own, (each) => Math.floor((each.begin - begin) / unit)),
    end: Int32Array.from(own, (each) => Math.ceil((each.end - begin) / unit)),
    busy: Float32Array.from(own, (each) => each.end - each.begin),
    count: new Int32Array(own.length).fill(1),
    type: Int32Array.from(own, (each) => types.get(each.name) ?? -1),
    event: Int32Array.from(own, (each) => each.row),
    kind: new Uint8Array(own.length),
  };
}
