/** Step by rank: the cells of the heat map, and how far each is from the others of its step. */
import type { Cell } from "../../api";

export interface HeatTable {
  /** Steps, left to right. */
  readonly steps: readonly number[];
  /** Ranks, top to bottom. */
  readonly ranks: readonly Rank[];
  /** Row by row; NaN where a rank did not record the step. */
  readonly values: Float64Array;
}

export interface Rank {
  readonly label: string;
  readonly host: string;
}

type Columns = Readonly<Record<string, readonly Cell[]>>;

/** Ranks by their number, then by the name of their host. */
export function heatTable(columns: Columns, measure: string): HeatTable {
  const length = columns.step?.length ?? 0;
  const ranks = new Map<string, Rank & { readonly number: number }>();
  for (let row = 0; row < length; row += 1) {
    const key = rankKey(columns, row);
    if (!ranks.has(key)) ranks.set(key, rankAt(columns, row));
  }
  const ordered = [...ranks].sort(
    ([, a], [, b]) => a.number - b.number || a.host.localeCompare(b.host, "en", { numeric: true }),
  );
  const rowOf = new Map(ordered.map(([key], at) => [key, at]));
  const steps = [...new Set((columns.step ?? []).map(Number))].sort((a, b) => a - b);
  const columnOf = new Map(steps.map((step, at) => [step, at]));
  const values = new Float64Array(steps.length * ordered.length).fill(Number.NaN);
  for (let row = 0; row < length; row += 1) {
    const value = columns[measure]?.[row];
    const at = (rowOf.get(rankKey(columns, row)) as number) * steps.length;
    if (typeof value === "number") values[at + (columnOf.get(Number(columns.step?.[row])) as number)] = value;
  }
  return { steps, ranks: ordered.map(([, rank]) => rank), values };
}

function rankKey(columns: Columns, row: number): string {
  return `${columns.rank?.[row] ?? ""} ${columns.host?.[row] ?? ""}`;
}

function rankAt(columns: Columns, row: number): Rank & { readonly number: number } {
  const [rank, host] = [columns.rank?.[row], String(columns.host?.[row] ?? "")];
  const isNumbered = typeof rank === "number";
  return { label: isNumbered ? `Rank ${rank}` : host, host, number: isNumbered ? rank : Number.MAX_SAFE_INTEGER };
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
