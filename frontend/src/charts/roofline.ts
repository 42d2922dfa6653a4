/** Ops against the roofs of their device: operations a second over operations a byte, both logarithmic. */
import { CATEGORY_COLOUR, categoryOf, type Palette } from "../design/colours";
import { duration, percent, UNKNOWN } from "../format";
import type { RowOf } from "../sections";
import { type Axis, type Dot, type Plot, type Popup, wholes } from "./plot";

/** An op with what is known of each. */
export type RoofPoint = RowOf<"roofline", "rows"> &
  Readonly<{ rank: number; kind: string; name: string; category: string; self_us: number }>;

export interface Roof {
  readonly device: string;
  readonly kind: string;
  readonly name: string;
  readonly tflop_per_s: number | null;
  readonly gb_per_s: number | null;
}

export interface RoofLine {
  readonly name: string;
  readonly kind: "compute" | "memory";
  readonly from: readonly [number, number];
  readonly to: readonly [number, number];
}

/** The rows that have a place in the chart: both their operations and their bytes are known, and neither is zero. */
export function drawable<R extends RoofPoint>(rows: readonly R[]): R[] {
  return rows.filter((row) => (row.flop_per_byte ?? 0) > 0 && (row.gflop_per_s ?? 0) > 0);
}

/** Why rows have no mark: each counts once, and only those that have no place in the chart or too small a share. */
export function countUnmarked(rows: readonly RoofPoint[], marks: readonly RoofPoint[]) {
  const placed = new Set(drawable(rows));
  const others = rows.filter((row) => !placed.has(row));
  const moving = others.filter((row) => row.gflop_per_s === 0 || LINKS.includes(row.bound_by ?? "")).length;
  return { moving, unknown: others.length - moving, small: placed.size - marks.length };
}

/** What limits ops that move data to other devices or the host. */
export const LINKS: readonly string[] = ["communication", "transfer"];

/** The compute roofs that ops are measured against, all if no op's peak is known; equal ones as one, by all names. */
export function usedRoofs(roofs: readonly Roof[], points: readonly RoofPoint[]): Roof[] {
  const peaks = points.flatMap((point) =>
    point.kind === "op" && point.compute_percent && point.gflop_per_s
      ? [(100 * point.gflop_per_s) / point.compute_percent / 1e3]
      : [],
  );
  const isUsed = (roof: Roof) => peaks.some((peak) => Math.abs(peak - (roof.tflop_per_s ?? 0)) < 0.005 * peak);
  const compute = roofs.filter((roof) => roof.kind === "compute");
  const used = compute.filter(isUsed);
  return [...joined(used.length ? used : compute), ...roofs.filter((roof) => roof.kind === "memory")];
}

function joined(roofs: readonly Roof[]): Roof[] {
  const byHeight = new Map<number | null, Roof>();
  for (const roof of roofs) {
    const known = byHeight.get(roof.tflop_per_s);
    byHeight.set(roof.tflop_per_s, known ? { ...known, name: `${known.name}, ${roof.name}` } : roof);
  }
  return [...byHeight.values()].map((roof) => ({ ...roof, name: shortened(roof.name) }));
}

/** `bf16 matrix, fp16 matrix` as `bf16, fp16 matrix`. */
function shortened(names: string): string {
  const all = names.split(", ").map((name) => name.split(" "));
  return all
    .map(([type, units], at) => (all[at + 1]?.[1] === units ? type : `${type} ${units ?? ""}`.trim()))
    .join(", ");
}

/** Whether a rate is beyond a peak of the device: the formula counts more than was done. */
export function isAboveRoof(point: RoofPoint): boolean {
  return Math.max(point.compute_percent ?? 0, point.memory_percent ?? 0) > 100;
}

export interface Bounds {
  readonly x: readonly [number, number];
  readonly y: readonly [number, number];
}

/** Whole powers of ten around all points, and around the ridges and roofs. */
export function boundsOf(points: readonly RoofPoint[], roofs: readonly Roof[]): Bounds {
  const peaks = roofs.flatMap((roof) => (roof.tflop_per_s ? [roof.tflop_per_s * 1e3] : []));
  const bandwidths = roofs.flatMap((roof) => (roof.gb_per_s ? [roof.gb_per_s] : []));
  const ridges = peaks.flatMap((peak) => bandwidths.map((bandwidth) => peak / bandwidth));
  return {
    x: decades([...points.map((point) => point.flop_per_byte as number), ...ridges], 0.5),
    y: decades([...points.map((point) => point.gflop_per_s as number), ...peaks], 0),
  };
}

function decades(values: readonly number[], spare: number): readonly [number, number] {
  if (!values.length) return [0.1, 100];
  const logs = values.map(Math.log10);
  const least = Math.floor(logs.reduce((a, b) => Math.min(a, b)) - Math.max(spare, 0.05)); // whole marks
  const most = Math.ceil(logs.reduce((a, b) => Math.max(a, b)) + spare + 0.05);
  return [10 ** least, 10 ** Math.max(most, least + 1)];
}

/** The roofs as lines inside the bounds: of memory up to the highest compute roof, of computing from there on. */
export function roofLines(roofs: readonly Roof[], { x, y }: Bounds): RoofLine[] {
  const memories = roofs.flatMap((roof) => (roof.gb_per_s ? [{ name: roof.name, rate: roof.gb_per_s }] : []));
  const peaks = roofs.flatMap((roof) => (roof.tflop_per_s ? [{ name: roof.name, rate: roof.tflop_per_s * 1e3 }] : []));
  const highest = peaks.reduce((most, peak) => Math.max(most, peak.rate), 0);
  const fastest = memories.reduce((most, memory) => Math.max(most, memory.rate), 0);
  return [
    ...memories.map(({ name, rate }) => {
      const [start, end] = [Math.max(x[0], y[0] / rate), highest ? Math.min(x[1], highest / rate) : x[1]];
      return { name, kind: "memory" as const, from: [start, start * rate] as const, to: [end, end * rate] as const };
    }),
    ...peaks.map(({ name, rate }) => {
      const start = fastest ? Math.max(x[0], rate / fastest) : x[0];
      return { name, kind: "compute" as const, from: [start, rate] as const, to: [x[1], rate] as const };
    }),
  ];
}

export function rooflineChart(points: readonly RoofPoint[], roofs: readonly Roof[], palette: Palette): Plot {
  const bounds = boundsOf(points, roofs);
  const longest = points.reduce((most, { self_us: time }) => Math.max(most, time), 0);
  const lines = roofLines(roofs, bounds).map((line) => ({ ...line, ends: [line.from, line.to].map(logs) }));
  return {
    x: decadeAxis(bounds.x, "FLOP/byte"),
    y: bounds.y[1] > MANY_GFLOPS ? decadeAxis(bounds.y, "TFLOP/s", 1e3) : decadeAxis(bounds.y, "GFLOP/s"),
    curves: lines.map(({ name, kind, ends }) => ({
      name,
      colour: kind === "memory" ? palette.muted : palette.text,
      x: ends.map(([x]) => x),
      y: ends.map(([, y]) => y),
    })),
    notes: lines.map(({ name, kind, ends: [from, to] }) => {
      if (kind === "memory") {
        return { text: name, anchor: "end" as const, x: middle(from?.[0], to?.[0]), y: middle(from?.[1], to?.[1]) };
      }
      const isUnder = lines.some((other) => other.kind === kind && isCloseBelow(to, other.ends[1]));
      return { text: name, anchor: "end" as const, x: to?.[0] ?? 0, y: (to?.[1] ?? 0) - (isUnder ? BELOW : 0) };
    }),
    dots: points.map((point) => dotOf(point, longest, palette)),
    popup: (index) => pointPopup(points[index] as RoofPoint),
  };
}

/** Half a decade is as high as a line of text. */
const LINE_OF_TEXT = 0.5;
/** Names stand above their lines: to stand below one takes a line and a half. */
const BELOW = 1.5 * LINE_OF_TEXT;

/** Whether the name of a roof would stand in another above it, and so has to stand below its own. */
const isCloseBelow = (one?: readonly [number, number], other?: readonly [number, number]) =>
  one !== undefined && other !== undefined && other[1] > one[1] && other[1] - one[1] < LINE_OF_TEXT;

const logs = ([x, y]: readonly [number, number]): readonly [number, number] => [Math.log10(x), Math.log10(y)];
const middle = (a = 0, b = 0) => (a + b) / 2;

/** Above that a rate is said in TFLOP/s: the scale of every accelerator, of no processor. */
const MANY_GFLOPS = 1e4;

/** An axis of powers of ten, whose values are their logarithms. */
function decadeAxis([least, most]: readonly [number, number], name: string, size = 1): Axis {
  return wholes([Math.log10(least), Math.log10(most)], (value) => power(10 ** value / size), name);
}

const SMALLEST = 6;
const LARGEST = 26;

function dotOf(point: RoofPoint, longest: number, palette: Palette): Dot {
  const isAbove = isAboveRoof(point);
  const [x, y] = logs([point.flop_per_byte as number, point.gflop_per_s as number]);
  return {
    ...{ x, y },
    size: SMALLEST + (LARGEST - SMALLEST) * Math.sqrt(longest ? point.self_us / longest : 0),
    shape: isAbove ? "triangle" : "circle",
    colour: CATEGORY_COLOUR[categoryOf(point.category)],
    edge: isAbove ? palette.trouble : palette.surface,
    edgeWidth: isAbove ? 2 : 1,
  };
}

const SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** 0.1, 1, 10, 100, 10³ and so on: the nearest power of ten. */
export function power(value: number): string {
  const exponent = Math.round(Math.log10(value));
  if (exponent >= -2 && exponent <= 2) return String(Number(value.toPrecision(1)));
  const digits = String(Math.abs(exponent)).replace(/\d/g, (digit) => SUPERSCRIPT[Number(digit)] as string);
  return `10${exponent < 0 ? "⁻" : ""}${digits}`;
}

export function rate(gflops: number | null): string {
  if (gflops === null) return UNKNOWN;
  return gflops >= 1e3 ? `${(gflops / 1e3).toPrecision(4)} TFLOP/s` : `${gflops.toPrecision(4)} GFLOP/s`;
}

function pointPopup(point: RoofPoint): Popup {
  const share = (value: number | null) => (value === null ? UNKNOWN : percent(value));
  const lines = [
    { name: "Kind", value: point.category },
    { name: "Self time", value: duration(point.self_us / 1e3), note: share(point.self_percent) },
    { name: "Achieved", value: rate(point.gflop_per_s) },
    { name: "Its roof", value: rate(point.roof_gflop_per_s) },
    { name: "Bandwidth", value: point.gib_per_s === null ? UNKNOWN : `${point.gib_per_s.toPrecision(4)} GiB/s` },
    { name: "Intensity", value: `${(point.flop_per_byte ?? 0).toPrecision(4)} FLOP/byte` },
    {
      name: "Efficiency",
      value: share(point.efficiency_percent),
      note: isAboveRoof(point) ? "above its roof" : point.bound_by ? `${point.bound_by}-bound` : "",
    },
  ];
  return { title: point.name, lines };
}
