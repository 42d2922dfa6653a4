/** The cells of heat maps: steps by rank, kinds of work by stage; and the scales of their colours. */
import type { Cell } from "../../api";
import { duration } from "../../format";

export interface HeatTable {
  /** What the columns are: "step", "stage". */
  readonly across: string;
  /** Their names, left to right. */
  readonly columns: readonly string[];
  /** Ranks or kinds of work, top to bottom. */
  readonly rows: readonly HeatRow[];
  /** Row by row; NaN where nothing was recorded. */
  readonly values: Float64Array;
}

export interface HeatRow {
  readonly label: string;
  /** Where it was recorded; empty for what is of all hosts. */
  readonly host: string;
}

/** How values become colours: shares from -1, nearly the page's colour, over 0, pale, to 1, the full colour. */
export interface HeatScale {
  /** The values that the legend names, ascending. */
  readonly marks: readonly number[];
  readonly meaning: string;
  readonly share: (value: number) => number;
  readonly text: (value: number) => string;
}

type Columns = Readonly<Record<string, readonly Cell[]>>;

/** One of the times of steps.  Ranks by their number, then by the name of their host. */
export function heatTable(columns: Columns, measure: string): HeatTable {
  const length = columns.step?.length ?? 0;
  const ranks = new Map<string, HeatRow & { readonly number: number }>();
  for (let row = 0; row < length; row += 1) {
    const key = rankKey(columns, row);
    if (!ranks.has(key)) ranks.set(key, rankAt(columns, row));
  }
  const ordered = [...ranks].sort(
    ([, a], [, b]) => a.number - b.number || a.host.localeCompare(b.host, "en", { numeric: true }),
  );
  const steps = [...new Set((columns.step ?? []).map(Number))].sort((a, b) => a - b).map(String);
  const cells = Array.from({ length }, (_, row) => ({
    row: rankKey(columns, row),
    column: String(columns.step?.[row]),
    value: columns[measure]?.[row],
  }));
  return {
    across: "step",
    columns: steps,
    rows: ordered.map(([, { label, host }]) => ({ label, host })),
    values: grid(
      ordered.map(([key]) => key),
      steps,
      cells,
    ),
  };
}

interface HeatCell {
  readonly row: string;
  readonly column: string;
  readonly value: Cell | undefined;
}

function grid(rows: readonly string[], columns: readonly string[], cells: readonly HeatCell[]): Float64Array {
  const places = (names: readonly string[]) => new Map(names.map((name, at) => [name, at]));
  const [rowOf, columnOf] = [places(rows), places(columns)];
  const values = new Float64Array(rows.length * columns.length).fill(Number.NaN);
  for (const { row, column, value } of cells)
    if (typeof value === "number")
      values[(rowOf.get(row) as number) * columns.length + (columnOf.get(column) as number)] = value;
  return values;
}

/** Slowdowns of each rank by step; `hosts` are those of ranks by their names in the report. */
export function slowdownsOfRanks(heat: Columns, hosts: ReadonlyMap<string, string>): HeatTable {
  const cells = slowdowns(heat, "worker_by_step", ["row", "column"]);
  return slowdownTable("step", cells, (name) => ({ label: capitalised(name), host: hosts.get(name) ?? "" }));
}

/** Slowdowns of each kind of work by stage: kinds go down, where their long names have room. */
export function slowdownsOfKinds(heat: Columns): HeatTable {
  const cells = slowdowns(heat, "stage_by_kind", ["column", "row"]);
  return slowdownTable("stage", cells, (label) => ({ label, host: "" }));
}

function slowdowns(heat: Columns, table: string, [row, column]: readonly [string, string]): HeatCell[] {
  return (heat.table ?? []).flatMap((each, at) =>
    each === table
      ? [{ row: String(heat[row]?.[at]), column: String(heat[column]?.[at]), value: heat.slowdown?.[at] }]
      : [],
  );
}

function slowdownTable(across: string, cells: readonly HeatCell[], rowOf: (name: string) => HeatRow): HeatTable {
  const rows = [...new Set(cells.map((cell) => cell.row))];
  const columns = [...new Set(cells.map((cell) => cell.column))];
  return { across, columns, rows: rows.map(rowOf), values: grid(rows, columns, cells) };
}

function capitalised(name: string): string {
  return name.startsWith("rank ") ? `R${name.slice(1)}` : name;
}

function rankKey(columns: Columns, row: number): string {
  return `${columns.rank?.[row] ?? ""} ${columns.host?.[row] ?? ""}`;
}

function rankAt(columns: Columns, row: number): HeatRow & { readonly number: number } {
  const [rank, host] = [columns.rank?.[row], String(columns.host?.[row] ?? "")];
  const isNumbered = typeof rank === "number";
  return { label: isNumbered ? `Rank ${rank}` : host, host, number: isNumbered ? rank : Number.MAX_SAFE_INTEGER };
}

/** Who waits for whom: ranks down, those that they wait for across; `names` are those of the hosts' ranks. */
export function waitsTable(waits: Columns, names: ReadonlyMap<string, string>): HeatTable {
  const hosts = [...names.keys()];
  const cells = (waits.host ?? []).map((host, row) => ({
    row: String(host),
    column: String(waits.for_host?.[row]),
    value: waits.waiting_ms?.[row],
  }));
  const label = (host: string) => names.get(host) ?? host;
  return {
    across: "waits for",
    columns: hosts.map(label),
    rows: hosts.map((host) => ({ label: label(host), host })),
    values: grid(hosts, hosts, cells),
  };
}

/** From no waiting to the longest; null where nobody waits. */
export function scaleOfWaits(values: Float64Array): HeatScale | null {
  const most = heatRange(values)?.[1] ?? 0;
  if (most <= 0) return null;
  return { marks: [0, most], meaning: "time of the capture", share: (value) => value / most, text: duration };
}

/** The smallest and the largest of the known values; null without any. */
export function heatRange(values: Float64Array): readonly [number, number] | null {
  const known = values.filter((value) => !Number.isNaN(value));
  if (!known.length) return null;
  return known.reduce<[number, number]>(
    ([low, high], value) => [Math.min(low, value), Math.max(high, value)],
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  );
}

/** The published study of stragglers calls a job straggling from here on: less never has the full colour. */
const STRAGGLING = 1.1;

/** From the shortest time to the longest, or to where differences matter; null where none is known. */
export function scaleOfTimes(values: Float64Array): HeatScale | null {
  const range = heatRange(values);
  if (!range) return null;
  const [low, high] = [range[0], Math.max(range[1], range[0] * STRAGGLING)];
  return {
    marks: range[1] > low ? range : [low, high],
    meaning: "from the shortest of the times to the longest; a tenth more than the shortest has the full colour",
    share: (value) => (high > low ? (value - low) / (high - low) : 0),
    text: duration,
  };
}

/** 1.00 is neutral, what is slower coloured, what is faster paler still; null where nothing is known. */
export function scaleOfSlowdowns(values: Float64Array): HeatScale | null {
  const range = heatRange(values);
  if (!range) return null;
  const [low, high] = [Math.min(range[0], 1), Math.max(range[1], STRAGGLING)];
  return {
    marks: low < 1 ? [low, 1, high] : [1, high],
    meaning: "1.00x is equal work; coloured is slower, paler is faster",
    share: (value) => (value >= 1 ? (value - 1) / (high - 1) : (value - 1) / (1 - low)),
    text: (value) => `${value.toFixed(2)}x`,
  };
}
