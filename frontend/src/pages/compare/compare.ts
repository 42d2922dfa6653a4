/** Two answers of a tool side by side: the same rows of both, and how they differ. */
import type { Cell, Field } from "../../api";
import { fromRows, type TableData } from "../../table/model";
import type { OverviewReport, Row } from "../shared/reports";
import type { Comparable } from "./comparable";

/** How many steps each side has, where totals can be told per step. */
export interface StepCounts {
  readonly mine: number;
  readonly theirs: number;
}

/**
 * How many steps the totals of both sides belong to: all that a host recorded, also those that another lacks.  Null
 * where one side has none, or is not read yet. */
export function stepCounts(mine: OverviewReport | null, theirs: OverviewReport | null): StepCounts | null {
  const [here, there] = [mine, theirs].map((report) =>
    report && report.steps_source !== "none" ? report.steps_a_host : 0,
  ) as [number, number];
  return here > 0 && there > 0 ? { mine: here, theirs: there } : null;
}

interface Pair {
  readonly keys: readonly Cell[];
  readonly values: [number | null, number | null];
  readonly counts: [number | null, number | null];
}

export function compared(
  spec: Comparable,
  mine: readonly Row[],
  theirs: readonly Row[],
  steps: StepCounts | null,
): TableData {
  const pairs = new Map<string, Pair>();
  const divide = spec.isTotal && steps ? [steps.mine, steps.theirs] : [1, 1];
  for (const [side, rows] of [mine, theirs].entries() as IterableIterator<[0 | 1, readonly Row[]]>) {
    for (const row of rows) {
      const keys = spec.keys.map((key) => row[key] ?? null);
      const id = JSON.stringify(keys);
      const pair = pairs.get(id) ?? { keys, values: [null, null], counts: [null, null] };
      add(pair.values, side, row[spec.measure], divide[side] as number);
      if (spec.count) add(pair.counts, side, row[spec.count], divide[side] as number);
      pairs.set(id, pair);
    }
  }
  const rows = [...pairs.values()]
    .filter(({ values: [a, b] }) => (a ?? 0) !== 0 || (b ?? 0) !== 0)
    .map((pair) => toRow(spec, pair));
  if (!spec.isOrdered) rows.sort((a, b) => Math.abs(Number(b.difference)) - Math.abs(Number(a.difference)));
  return fromRows(fieldsOf(spec, rows, spec.isTotal && steps !== null), rows);
}

function add(into: [number | null, number | null], side: 0 | 1, value: Cell | undefined, by: number): void {
  if (typeof value === "number") into[side] = (into[side] ?? 0) + value / by;
}

function toRow(spec: Comparable, { keys, values: [mine, theirs], counts }: Pair): Row {
  const difference = (mine ?? 0) - (theirs ?? 0);
  return {
    ...Object.fromEntries(spec.keys.map((key, index) => [key, keys[index] ?? null])),
    before: theirs,
    after: mine,
    difference,
    change_percent: mine !== null && theirs ? (100 * difference) / theirs : null,
    ...(spec.count ? { before_count: counts[1], after_count: counts[0] } : {}),
  };
}

/** Of the columns that name a row, those that are numbers with a unit. */
const UNITS: Readonly<Record<string, string>> = { bytes: "bytes" };

const CHANGES: readonly string[] = ["difference", "change_percent"];
const TERMS: readonly string[] = ["part", "category", "waits_for"];
const LABELS: Readonly<Record<string, string>> = {
  change_percent: "Change",
  before_count: "Count before",
  after_count: "Count after",
};

function labelOf(name: string): string {
  const text = name.replaceAll("_", " ");
  return LABELS[name] ?? text.charAt(0).toUpperCase() + text.slice(1);
}

function fieldsOf(spec: Comparable, rows: readonly Row[], perStep: boolean): Field[] {
  const what = perStep ? `${spec.doc}, per step: the total of the capture over its number of steps` : spec.doc;
  const number = (name: string, unit: string, doc: string): Field => ({
    ...{ name, label: labelOf(name), unit, doc, kind: "float" },
    role: CHANGES.includes(name) ? "change" : "measure",
  });
  return [
    ...spec.keys.map(
      (name): Field => ({
        name,
        label: labelOf(name),
        role: TERMS.includes(name) ? "term" : "name",
        unit: UNITS[name] ?? "",
        doc: `what both sides have in common; ${spec.together ?? "rows of the same name are added up"}`,
        kind: rows.some((row) => typeof row[name] === "number") ? "int" : "str",
      }),
    ),
    number(
      "before",
      spec.unit,
      `${what}, in the session that the open one is compared with; unknown where that has no such row`,
    ),
    number("after", spec.unit, `${what}, in the session that is open; unknown where it has no such row`),
    number("difference", spec.unit, "after less before; a row that one side lacks counts as zero there"),
    number(
      "change_percent",
      "percent",
      "the difference as a share of the value before; unknown where one side has no such row",
    ),
    ...(spec.count
      ? [
          number("before_count", "count", `how often${perStep ? " per step" : ""}, before`),
          number("after_count", "count", `how often${perStep ? " per step" : ""}, after`),
        ]
      : []),
  ];
}

/** Differences smaller than this share of the whole say nothing. */
const WORTH = 0.002;

/** More is worse: everything that is compared is time or memory. */
export function toneOf(data: TableData, row: number): "good" | "bad" | null {
  const value = valuesOf(data, "difference")[row];
  const whole = valuesOf(data, "before").reduce<number>((sum, each) => sum + (typeof each === "number" ? each : 0), 0);
  if (typeof value !== "number" || Math.abs(value) <= WORTH * whole) return null;
  return value > 0 ? "bad" : "good";
}

/** Of the columns of that name, with whatever unit behind it, the first. */
function valuesOf(data: TableData, name: string): readonly Cell[] {
  const field = data.fields.find((each) => each.name.startsWith(name));
  return (field && data.columns[field.name]) ?? [];
}
