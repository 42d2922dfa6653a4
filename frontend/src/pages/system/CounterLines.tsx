/** Sampled counters over time: one line each, all on one axis of time. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { CATEGORY_COLOUR, mix } from "../../design/colours";
import { palette } from "../../design/theme";
import { duration, short } from "../../format";
import { intervalInTimeline } from "../../links";
import { host as chosenHost, session, sessionId } from "../../session";
import { type CounterValues, type GroupInfo, Source, type TrackInfo } from "../../timeline/wire";
import { Card, Loading } from "../../ui/basics";
import { hint } from "../../ui/hint";

const CELLS = 400;
const MOST_LINES = 40;
const AT_ONCE = 4;
const HEIGHT = 64;
const PS_PER_MS = 1e9;

interface Line {
  readonly track: TrackInfo;
  readonly values: CounterValues;
  readonly cells: number;
  readonly begin: number;
  readonly cell: number;
}

export function CounterLines({ isBare = false }: { isBare?: boolean }) {
  const id = sessionId.value;
  const hosts = session.value?.hosts ?? [];
  const host = chosenHost.value ?? hosts[0]?.name ?? null;
  const [lines, setLines] = useState<readonly Line[] | null>(null);
  useEffect(() => {
    let isGone = false;
    setLines(null);
    if (id)
      fetchLines(new Source(id, host)).then(
        (found) => !isGone && setLines(found),
        () => !isGone && setLines([]), // the table below has the figures
      );
    return () => {
      isGone = true;
    };
  }, [id, host]);
  if (!lines) return <Loading what="Fetching the samples" />;
  if (!lines.length) return isBare ? <p class="muted tl-wait">No counters were recorded.</p> : null;
  const list = (
    <ul class="counter-lines">
      {lines.map((line) => (
        <CounterLine key={line.track.id} line={line} host={hosts.length > 1 ? host : null} />
      ))}
    </ul>
  );
  if (isBare) return list;
  return (
    <Card
      title="Over time"
      note={
        hosts.length > 1
          ? `on ${host}; click a moment to see it in the timeline`
          : "click a moment to see it in the timeline"
      }
    >
      {list}
    </Card>
  );
}

async function fetchLines(source: Source): Promise<Line[]> {
  const tracks = await source.tracks();
  const [begin, end] = tracks.span_ps;
  const counters = tracks.groups
    .filter((group) => group.kind === "counters")
    .flatMap(tracksOf)
    .slice(0, MOST_LINES);
  const lines: Line[] = [];
  for (let first = 0; first < counters.length; first += AT_ONCE) {
    const some = counters.slice(first, first + AT_ONCE);
    const answer = await source.window(
      begin,
      Math.max(begin + 1, end),
      CELLS,
      some.map((track) => track.id),
    );
    some.forEach((track, at) => {
      const values = answer.counters[at];
      if (values?.cell.length)
        lines.push({ track, values, cells: answer.cells, begin: answer.begin, cell: 2 ** answer.level });
    });
  }
  return lines;
}

function tracksOf(group: GroupInfo): TrackInfo[] {
  return [...group.tracks, ...group.groups.flatMap(tracksOf)];
}

function CounterLine({ line, host }: { line: Line; host: string | null }) {
  const { track } = line;
  const look = palette.value;
  const path = useMemo(() => outline(line), [line]);
  const colour = CATEGORY_COLOUR.host_compute;
  const range = [track.lowest, track.highest].map((value) => (value === null ? "" : amount(value, track.unit)));
  const [at, setAt] = useState<number | null>(null);
  const shareOf = (event: MouseEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  };
  const momentOf = (share: number) => line.begin + share * line.cells * line.cell;
  return (
    <li>
      <span
        class="counter-name flex spread gap-l minor"
        {...hint(track.name, track.detail, `${range[0]} to ${range[1]}`)}
        tabIndex={0}
      >
        <span>{track.name}</span>
        <span class="muted">
          {at === null
            ? `${range[0]} to ${range[1]}`
            : `${amount(valueAt(line, at), track.unit)} at ${duration(momentOf(at) / PS_PER_MS)}`}
        </span>
      </span>
      <a
        class="counter-line"
        href={aroundMoment(momentOf(at ?? 0.5), line, host)}
        onMouseMove={(event) => setAt(shareOf(event))}
        onMouseLeave={() => setAt(null)}
      >
        <span class="offscreen">{`${track.name} over time, ${range[0]} to ${range[1]}, in the timeline`}</span>
        <svg viewBox={`0 0 ${line.cells} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          <path d={path.area} fill={mix(colour, look.surface, 0.72)} />
          <path d={path.line} fill="none" stroke={colour} stroke-width="1.5" vector-effect="non-scaling-stroke" />
          {at !== null && (
            <path
              d={`M${at * line.cells} 0V${HEIGHT}`}
              stroke={look.muted}
              stroke-width="1"
              vector-effect="non-scaling-stroke"
            />
          )}
        </svg>
      </a>
    </li>
  );
}

function aroundMoment(moment: number, line: Line, host: string | null): string {
  const half = (line.cells * line.cell) / 50;
  return intervalInTimeline(Math.max(0, (moment - half) / PS_PER_MS), (moment + half) / PS_PER_MS, host);
}

/** The last value that was sampled at or before a share of the whole time. */
function valueAt({ values, cells }: Line, share: number): number {
  const cell = share * cells;
  let found = values.last[0] ?? 0;
  for (let at = 0; at < values.cell.length && (values.cell[at] as number) <= cell; at += 1)
    found = values.last[at] as number;
  return found;
}

const UNITS: readonly (readonly [number, string])[] = [
  [1 << 30, "GiB"],
  [1 << 20, "MiB"],
  [1 << 10, "KiB"],
];

function amount(value: number, unit: string): string {
  if (unit === "bytes") {
    const [size, name] = UNITS.find(([each]) => Math.abs(value) >= each) ?? [1, "B"];
    return `${short(value / size)} ${name}`;
  }
  return `${short(value)}${unit === "percent" ? " %" : unit ? ` ${unit}` : ""}`;
}

/** A step line and the area below it, from zero or from the lowest value where that is negative. */
function outline({ values, cells, track }: Line): { readonly line: string; readonly area: string } {
  const low = Math.min(0, track.lowest ?? 0);
  const high = Math.max(track.highest ?? 1, low + Number.EPSILON);
  const y = (value: number) => (HEIGHT - 2 - ((value - low) / (high - low)) * (HEIGHT - 4)).toFixed(1);
  const points: string[] = [];
  for (let at = 0; at < values.cell.length; at += 1) {
    const x = values.cell[at] as number;
    points.push(at ? `H${x}V${y(values.high[at] as number)}` : `M${x} ${y(values.high[at] as number)}`);
    if (values.last[at] !== values.high[at]) points.push(`V${y(values.last[at] as number)}`);
  }
  const line = `${points.join("")}H${cells}`;
  return { line, area: `${line}V${HEIGHT}H${values.cell[0] ?? 0}Z` };
}
