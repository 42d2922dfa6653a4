/** Ops against the roofs of their device: operations a second over operations a byte, both logarithmic. */
import type { EChartsCoreOption } from "echarts/core";
import { CATEGORY_COLOUR, categoryOf, type Palette } from "../design/colours";
import { duration, percent, UNKNOWN } from "../format";
import { axis, base, popup, tooltip } from "./look";

export interface RoofPoint {
  readonly rank: number;
  readonly kind: string;
  readonly name: string;
  readonly category: string;
  readonly self_us: number;
  readonly self_percent: number | null;
  readonly flop_per_byte: number | null;
  readonly gflop_per_s: number | null;
  readonly gib_per_s: number | null;
  readonly compute_percent: number | null;
  readonly memory_percent: number | null;
  readonly efficiency_percent: number | null;
  readonly roof_gflop_per_s: number | null;
  readonly bound_by: string | null;
  readonly precision: string | null;
}

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
  const least = Math.floor(logs.reduce((a, b) => Math.min(a, b)) - spare);
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

export interface RooflineLook {
  readonly palette: Palette;
  readonly picked: number | null;
}

export function rooflineChart(
  points: readonly RoofPoint[],
  roofs: readonly Roof[],
  { palette, picked }: RooflineLook,
): EChartsCoreOption {
  const bounds = boundsOf(points, roofs);
  const lines = roofLines(roofs, bounds);
  return {
    ...base(palette),
    grid: { left: 8, right: 20, top: 26, bottom: 26, containLabel: true },
    tooltip: {
      ...tooltip(palette),
      trigger: "item",
      formatter: (item: { seriesType: string; dataIndex: number; seriesName: string }) =>
        item.seriesType === "scatter" ? pointPopup(points[item.dataIndex]) : popup(item.seriesName, []),
    },
    xAxis: {
      ...decadeAxis(bounds.x, palette),
      name: "FLOP/byte",
      nameLocation: "middle",
      nameGap: 24,
      nameTextStyle: { color: palette.muted, fontSize: 11 },
    },
    yAxis: { ...decadeAxis(bounds.y, palette), name: "GFLOP/s" },
    series: [
      scatter(points, palette, picked),
      ...lines.map((line) => ({
        type: "line",
        name: line.name,
        data: [logs(line.from), logs(line.to)],
        symbol: "none",
        silent: true,
        z: 1,
        lineStyle: { color: line.kind === "memory" ? palette.muted : palette.text, width: 1.5 },
        endLabel: {
          show: line.kind === "compute",
          formatter: line.name,
          align: "right",
          offset: [-4, -10],
          color: palette.text,
          fontSize: 11,
        },
        ...(line.kind === "memory" ? { markPoint: memoryLabel(line, palette) } : {}),
      })),
    ],
  };
}

const logs = ([x, y]: readonly [number, number]): [number, number] => [Math.log10(x), Math.log10(y)];

const MOST_LABELS = 8;

/** An axis of powers of ten.  The chart's own logarithmic axis leaves out decades; this one draws their logarithms. */
function decadeAxis([least, most]: readonly [number, number], palette: Palette): Record<string, unknown> {
  const [min, max] = [Math.log10(least), Math.log10(most)];
  return {
    type: "value",
    ...axis(palette),
    axisLine: { show: false, onZero: false },
    min,
    max,
    interval: Math.ceil((max - min) / MOST_LABELS),
    axisLabel: { color: palette.muted, fontSize: 11, formatter: (value: number) => power(10 ** value) },
  };
}

function memoryLabel(line: RoofLine, palette: Palette): Record<string, unknown> {
  const [[x1, y1], [x2, y2]] = [logs(line.from), logs(line.to)];
  const at = [(x1 + x2) / 2, (y1 + y2) / 2];
  return {
    silent: true,
    symbol: "circle",
    symbolSize: 0,
    label: { formatter: line.name, color: palette.muted, fontSize: 11, position: "left", distance: 8 },
    data: [{ coord: at }],
  };
}

const SMALLEST = 6;
const LARGEST = 26;

function scatter(points: readonly RoofPoint[], palette: Palette, picked: number | null): Record<string, unknown> {
  return {
    type: "scatter",
    name: "ops",
    z: 3,
    cursor: "pointer",
    data: points.map((point) => ({
      value: logs([point.flop_per_byte as number, point.gflop_per_s as number]),
      symbol: isAboveRoof(point) ? "triangle" : point.kind === "program" ? "diamond" : "circle",
      symbolSize: SMALLEST + (LARGEST - SMALLEST) * Math.sqrt(Math.min(1, (point.self_percent ?? 0) / 100)),
      itemStyle: {
        color: point.kind === "program" ? palette.text : CATEGORY_COLOUR[categoryOf(point.category)],
        opacity: picked !== null && picked !== point.rank ? 0.35 : 0.8,
        borderColor: picked === point.rank ? palette.accent : isAboveRoof(point) ? palette.trouble : palette.surface,
        borderWidth: picked === point.rank ? 3 : isAboveRoof(point) ? 2 : 1,
      },
    })),
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

function pointPopup(point: RoofPoint | undefined): HTMLElement {
  if (!point) return popup("", []);
  const share = (value: number | null) => (value === null ? UNKNOWN : percent(value));
  return popup(point.name, [
    { name: "Kind", value: point.kind === "program" ? "program" : point.category },
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
  ]);
}
