/** Windows that came along with a notebook: cut to the stretch that is asked for, whatever its level of detail. */
import { type CounterValues, decodeWindows, type LaneSlices, type WindowAnswer } from "./wire";

interface Row {
  readonly begin: number;
  readonly end: number;
  readonly cells: number;
  readonly lane?: LaneSlices | undefined;
  readonly load?: Float32Array | undefined;
  readonly causes?: Uint8Array | undefined;
  readonly counter?: CounterValues | undefined;
}

/** The kept rows by their ids; where one was kept twice the finer comes first. */
export type Kept = ReadonlyMap<string, readonly Row[]>;

/** Reads windows, each with the tracks that it was asked for. */
export function readKept(windows: readonly (readonly [tracks: string, bytes: ArrayBuffer])[]): Kept {
  const rows = new Map<string, Row[]>();
  const decoded = windows.flatMap(([tracks, bytes]) =>
    decodeWindows(bytes).map((answer) => ({ ids: tracks.split(","), answer })),
  );
  for (const { ids, answer } of decoded.sort((a, b) => a.answer.level - b.answer.level)) {
    const { begin, level, cells } = answer;
    const put = (id: string, part: Partial<Row>) =>
      rows.set(id, [...(rows.get(id) ?? []), { begin, end: begin + cells * 2 ** level, cells, ...part }]);
    for (const [id, lane] of answer.lanes) put(`t${id}`, { lane });
    for (const [at, id] of ids.filter(isRibbon).entries()) put(id, { causes: answer.causes[at] });
    for (const [at, id] of ids.filter(isCounter).entries()) put(id, { counter: answer.counters[at] });
    for (const [at, id] of ids.filter(isGroup).entries()) put(id, { load: answer.loads[at] });
  }
  return rows;
}

const isRibbon = (id: string) => /^r\d/.test(id);
const isCounter = (id: string) => /^c\d/.test(id);
const isGroup = (id: string) => !/^[ct]\d/.test(id) && !isRibbon(id);

/** What was kept of a window, in `width` cells; rows are named one by one, or as `t3.0-4`. */
export function cutKept(kept: Kept, begin: number, end: number, width: number, tracks: readonly string[]) {
  const cut = { begin, cell: (end - begin) / width, width };
  const ids = tracks.flatMap(rowIds);
  const row = (id: string) => nearest(kept.get(id) ?? [], (begin + end) / 2);
  const lanes = ids.flatMap((id) => [row(id)?.lane].flatMap((lane) => (lane ? [[id.slice(1), lane] as const] : [])));
  const answer: WindowAnswer = {
    ...{ begin, cells: width, level: Math.log2(cut.cell), lanes: new Map(lanes) },
    loads: ids.filter(isGroup).map((id) => Float32Array.from(resample(row(id), row(id)?.load, cut))),
    causes: ids.filter(isRibbon).map((id) => Uint8Array.from(resample(row(id), row(id)?.causes, cut))),
    counters: ids.filter(isCounter).map((id) => moveCounter(row(id), cut)),
  };
  return answer;
}

function rowIds(id: string): string[] {
  const [, line, first, last] = /^(t\d+)\.(\d+)(?:-(\d+))?$/.exec(id) ?? [];
  if (!line) return [id];
  const count = Number(last ?? first) - Number(first) + 1;
  return Array.from({ length: count }, (_, at) => `${line}.${Number(first) + at}`);
}

/** The finest row with a moment in it, else the one that reaches farthest. */
function nearest(rows: readonly Row[], at: number): Row | undefined {
  return rows.find(({ begin, end }) => at >= begin && at < end) ?? rows.at(-1);
}

interface Cut {
  readonly begin: number;
  readonly cell: number;
  readonly width: number;
}

/** The values of cells in cells of another size, zero where nothing was kept; causes come one after the other. */
function resample(row: Row | undefined, values: ArrayLike<number> = [], { begin, cell, width }: Cut): number[] {
  if (!row) return new Array<number>(width).fill(0);
  const size = (row.end - row.begin) / row.cells;
  const from = (at: number) => Math.floor((begin + (at + 0.5) * cell - row.begin) / size);
  return Array.from({ length: (values.length / row.cells) * width }, (_, at) => {
    const place = from(at % width);
    return place < 0 || place >= row.cells ? 0 : (values[Math.floor(at / width) * row.cells + place] as number);
  });
}

function moveCounter(row: Row | undefined, { begin, cell }: Cut): CounterValues {
  const { counter } = row ?? {};
  if (!row || !counter) {
    const none = new Float32Array();
    return { begin, cell: new Int32Array(), low: none, high: none, last: none };
  }
  const size = (row.end - row.begin) / row.cells;
  return { ...counter, begin, cell: counter.cell.map((at) => Math.floor((row.begin + at * size - begin) / cell)) };
}
