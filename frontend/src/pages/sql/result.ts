/** What an answer can be drawn as: a chart of its numbers by its first text, and a track of stretches of time. */
import type { Cell, Field } from "../../api";
import { fromZero, names, numbers, type Plot, plain } from "../../charts/plot";
import { short } from "../../format";
import { middleCut, shortKernel } from "../../names";
import type { TableData } from "../../table/model";

const MOST_BARS = 60;
const MOST_SERIES = 4;
const PS_PER_MS = 1e9;
const NOT_AMOUNTS: ReadonlySet<string> = new Set(["ordinal", "step", "instant"]);
const PS_PER: Readonly<Record<string, number>> = { ps: 1, ns: 1e3, us: 1e6, ms: 1e9 };

/** A row as a stretch of time, in ps. */
export interface Stretch {
  readonly row: number;
  readonly begin: number;
  readonly end: number;
  readonly name: string;
  readonly lane: string;
  readonly host: string | null;
}

/** The rows as stretches of time: they need a start, and a duration or an end; null without. */
export function stretches(data: TableData): readonly Stretch[] | null {
  const start = timeField(data.fields, "start");
  const length = timeField(data.fields, "duration");
  const end = timeField(data.fields, "end");
  if (!start || !(length || end)) return null;
  const text = (name: string, row: number) => {
    const value = data.columns[name]?.[row];
    return typeof value === "string" ? value : null;
  };
  const lane = ["stream", "track", "thread", "device", "host"].find((name) => data.columns[name]);
  const found: Stretch[] = [];
  for (let row = 0; row < data.rowCount; row++) {
    const begin = inPs(data, start, row);
    const stop = length ? add(begin, inPs(data, length, row)) : end ? inPs(data, end, row) : null;
    if (begin === null || stop === null || stop < begin) continue;
    const name = text("name", row) ?? text(firstText(data.fields) ?? "", row) ?? "";
    found.push({ row, begin, end: stop, name, lane: (lane && text(lane, row)) ?? "", host: text("host", row) });
  }
  return found;
}

function timeField(fields: readonly Field[], what: string): Field | null {
  return fields.find(({ name, unit }) => unit in PS_PER && new RegExp(`(^|_)${what}(_|$)`).test(name)) ?? null;
}

function inPs(data: TableData, field: Field, row: number): number | null {
  const value = data.columns[field.name]?.[row];
  return typeof value === "number" ? value * (PS_PER[field.unit] ?? 1) : null;
}

function add(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a + b;
}

function firstText(fields: readonly Field[]): string | null {
  return fields.find((field) => field.kind === "str")?.name ?? null;
}

/** What a chart of an answer shows: bars, or a line where its rows follow each other and are too many for bars. */
export interface Bars {
  /** What the labels are. */
  readonly axis: string;
  readonly unit: string;
  readonly labels: readonly string[];
  readonly series: readonly { readonly field: Field; readonly values: readonly (number | null)[] }[];
}

/** What rows are compared by, in the order of what says most; columns of other roles are no axis. */
const AXES: readonly Field["role"][] = ["step", "name", "label", "source", "term", "type", "place", "host", "ordinal"];
const FOLLOW: ReadonlySet<string> = new Set(["step", "ordinal"]);
const MOST_ON_LINE = 5_000;

/** The column that tells rows apart, by its meaning; of several that do, and of none, the one that says most. */
function axisOf({ fields, columns, rowCount }: TableData): Field | null {
  const rank = (field: Field) => (AXES.indexOf(field.role) + 1 || AXES.length + 1) + (field.kind === "str" ? 0 : 0.5);
  const fit = fields
    .filter((field) => field.kind === "str" || FOLLOW.has(field.role))
    .sort((one, other) => rank(one) - rank(other));
  return fit.find(({ name }) => new Set(columns[name] ?? []).size === rowCount) ?? fit[0] ?? null;
}

/** Signs of a label below a bar. */
const LABEL = 28;

/** The chart of an answer; null if it has no number, only one row, or more than can be drawn. */
export function barsOf(data: TableData): Bars | null {
  const axis = axisOf(data);
  const label = axis?.name;
  const numbers = data.fields.filter(
    ({ name, kind, role }) => name !== label && (kind === "int" || kind === "float") && !NOT_AMOUNTS.has(role),
  );
  const unit = (numbers.find(({ unit }) => unit in PS_PER) ?? numbers[0])?.unit;
  const most = axis && FOLLOW.has(axis.role) ? MOST_ON_LINE : MOST_BARS;
  if (data.rowCount < 2 || data.rowCount > most || unit === undefined) return null;
  const column = (name: string): readonly (Cell | undefined)[] => data.columns[name] ?? [];
  const scale = (PS_PER[unit] ?? 1) / (unit in PS_PER ? PS_PER_MS : 1);
  return {
    axis: axis?.label ?? "",
    unit: unit in PS_PER ? "ms" : unit,
    labels: Array.from({ length: data.rowCount }, (_, row) =>
      middleCut(shortKernel(String((label && column(label)[row]) ?? row + 1)), LABEL),
    ),
    series: numbers
      .filter((field) => field.unit === unit)
      .slice(0, MOST_SERIES)
      .map((field) => ({ field, values: column(field.name).map((v) => (typeof v === "number" ? v * scale : null)) })),
  };
}

export function barChart(bars: Bars, colours: readonly string[]): Plot {
  const { labels, series, unit } = bars;
  const all = series.flatMap(({ values }) => values.map((value) => value ?? 0));
  const upward = fromZero(Math.max(0, ...all), plain, unit);
  const least = Math.min(0, ...all);
  const width = 0.8 / series.length;
  const isLine = labels.length > MOST_BARS;
  const colourOf = (at: number) => colours[at % colours.length] as string;
  return {
    x: names(labels, bars.axis),
    y: least < 0 ? numbers([least, Math.max(0, ...all)], plain, unit) : upward,
    ...(isLine ? { curves: series.map(({ field, values }, at) => curveOf(field, values, colourOf(at))) } : {}),
    columns: (isLine ? [] : series).map(({ field, values }, at) => ({
      name: field.label,
      colour: colourOf(at),
      boxes: values.map((value, row) => ({
        x: row + (at + 0.5) * width - 0.4,
        width,
        low: Math.min(0, value ?? 0),
        high: Math.max(0, value ?? 0),
      })),
    })),
    places: labels.map((_, row) => row),
    popup: (index) => ({
      title: labels[index] ?? "",
      lines: series.map(({ field, values }, at) => ({
        name: field.label,
        value: values[index] == null ? "unknown" : `${short(values[index] as number)} ${unit}`,
        colour: colourOf(at),
      })),
    }),
  };
}

function curveOf(field: Field, values: readonly (number | null)[], colour: string) {
  return { name: field.label, colour, x: values.map((_, row) => row), y: values };
}

/** Lanes of a track, and what is in each, at most as many as can be read. */
export interface Lane {
  readonly label: string;
  readonly parts: readonly Stretch[];
}

const MOST_LANES = 24;

export function lanesOf(all: readonly Stretch[]): readonly Lane[] {
  const lanes = new Map<string, Stretch[]>();
  for (const each of all) {
    const known = lanes.get(each.lane);
    if (known) known.push(each);
    else lanes.set(each.lane, [each]);
  }
  return [...lanes].slice(0, MOST_LANES).map(([label, parts]) => ({ label, parts }));
}
