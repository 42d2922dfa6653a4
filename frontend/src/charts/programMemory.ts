/** Memory in use over the order of a program: what lasts below, temporaries above. */
import type { EChartsCoreOption } from "echarts/core";
import type { Palette } from "../design/colours";
import { bytes } from "../format";
import { axis, base, popup, tooltip } from "./look";

export const PROGRAM_MEMORY_COLOUR = { lasting: "#677303", temporary: "#2f65ed" } as const;

export interface MemoryPoint {
  readonly position: number;
  readonly bytes: number;
}

export interface ProgramMemoryLook {
  readonly palette: Palette;
  /** Memory that is in use for the whole run. */
  readonly lasting: number;
}

/** The first position of the most bytes. */
export function peakOf(points: readonly MemoryPoint[]): MemoryPoint | null {
  return points.reduce<MemoryPoint | null>((most, point) => (most && most.bytes >= point.bytes ? most : point), null);
}

export function programMemory(points: readonly MemoryPoint[], look: ProgramMemoryLook): EChartsCoreOption {
  const { palette, lasting } = look;
  const peak = peakOf(points);
  const interval = 2 ** Math.ceil(Math.log2(Math.max(peak?.bytes ?? 1, 5) / 5));
  const area = (name: string, colour: string, data: number[][]) => ({
    type: "line",
    name,
    stack: "memory",
    step: "end",
    symbol: "none",
    lineStyle: { width: 1, color: colour },
    areaStyle: { color: colour, opacity: 0.45 },
    emphasis: { disabled: true },
    data,
  });
  return {
    ...base(palette),
    grid: { left: 8, right: 24, top: 22, bottom: 26, containLabel: true },
    tooltip: {
      ...tooltip(palette),
      trigger: "axis",
      axisPointer: { type: "line", lineStyle: { color: palette.strong } },
      formatter: (items: readonly { dataIndex: number }[]) => pointPopup(points[items[0]?.dataIndex ?? 0], lasting),
    },
    xAxis: {
      type: "value",
      min: "dataMin",
      max: "dataMax",
      ...axis(palette),
      splitLine: { show: false },
      name: "place in the program's order",
      nameLocation: "middle",
      nameGap: 24,
      nameTextStyle: { color: palette.muted, fontSize: 11 },
    },
    yAxis: {
      type: "value",
      interval,
      max: interval * Math.ceil(((peak?.bytes ?? 1) * 1.02) / interval),
      ...axis(palette),
      axisLabel: { color: palette.muted, fontSize: 11, formatter: (value: number) => bytes(value) },
    },
    series: [
      area(
        "Whole run",
        PROGRAM_MEMORY_COLOUR.lasting,
        points.map((point) => [point.position, Math.min(lasting, point.bytes)]),
      ),
      {
        ...area(
          "Temporaries",
          PROGRAM_MEMORY_COLOUR.temporary,
          points.map((point) => [point.position, Math.max(point.bytes - lasting, 0)]),
        ),
        ...(peak ? { markLine: peakLine(peak, palette) } : {}),
      },
    ],
  };
}

function peakLine(peak: MemoryPoint, palette: Palette): Record<string, unknown> {
  return {
    silent: true,
    symbol: "none",
    lineStyle: { color: palette.text, type: "dashed", opacity: 0.6 },
    label: { formatter: "peak", position: "end", distance: 4, color: palette.text, fontSize: 11 },
    data: [{ xAxis: peak.position }],
  };
}

function pointPopup(point: MemoryPoint | undefined, lasting: number): HTMLElement {
  if (!point) return popup("", []);
  return popup(`place ${point.position.toLocaleString("en-US")}`, [
    { name: "In use", value: bytes(point.bytes) },
    { name: "Whole run", value: bytes(Math.min(lasting, point.bytes)), colour: PROGRAM_MEMORY_COLOUR.lasting },
    {
      name: "Temporaries",
      value: bytes(Math.max(point.bytes - lasting, 0)),
      colour: PROGRAM_MEMORY_COLOUR.temporary,
    },
  ]);
}
