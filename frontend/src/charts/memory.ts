/** Memory in use over time: stack and heap stacked, what is free above them, fragmentation as a line. */
import type { EChartsCoreOption } from "echarts/core";
import { CATEGORY_COLOUR, type Palette } from "../design/colours";
import { bytes, duration, percent, UNKNOWN } from "../format";
import { axis, base, type Line, popup, slider, tooltip } from "./look";

export interface MemoryEvent {
  readonly time_ms: number;
  readonly event: string | null;
  readonly requested_bytes: number | null;
  readonly allocated_bytes: number | null;
  readonly op: string | null;
  readonly step: number | null;
  readonly region: string | null;
  readonly dtype: string | null;
  readonly shape: string | null;
  readonly in_use_bytes: number | null;
  readonly stack_bytes: number | null;
  readonly heap_bytes: number | null;
  readonly free_bytes: number | null;
  readonly reserved_bytes?: number | null;
  readonly fragmentation_percent: number | null;
}

export const MEMORY_COLOUR = {
  stack: CATEGORY_COLOUR.device_collectives,
  heap: CATEGORY_COLOUR.device_compute,
  free: CATEGORY_COLOUR.host_compute,
  reserved: CATEGORY_COLOUR.other,
  fragmentation: CATEGORY_COLOUR.compilation,
} as const;

export interface MemoryLook {
  readonly palette: Palette;
  readonly peak_ms: number | null;
  readonly withFree: boolean;
}

export function memoryOverTime(events: readonly MemoryEvent[], look: MemoryLook): EChartsCoreOption {
  const { palette } = look;
  const has = (key: "stack_bytes" | "heap_bytes" | "free_bytes" | "reserved_bytes" | "fragmentation_percent") =>
    events.some((event) => (event[key] ?? 0) > 0);
  const area = (name: string, key: "stack_bytes" | "heap_bytes" | "free_bytes", colour: string, opacity: number) => ({
    type: "line",
    name,
    step: "end",
    stack: "memory",
    symbol: "none",
    sampling: "max",
    lineStyle: { width: key === "free_bytes" ? 0 : 1.2, color: colour },
    areaStyle: { color: colour, opacity },
    itemStyle: { color: colour },
    emphasis: { disabled: true },
    data: events.map((event) => [event.time_ms, event[key] ?? (key === "heap_bytes" ? event.in_use_bytes : null)]),
  });
  const line = (name: string, key: "reserved_bytes" | "fragmentation_percent", colour: string, yAxisIndex: number) => ({
    type: "line",
    name,
    step: "end",
    symbol: "none",
    yAxisIndex,
    lineStyle: { width: 1.5, color: colour, type: "dashed" },
    itemStyle: { color: colour },
    emphasis: { disabled: true },
    data: events.map((event) => [event.time_ms, event[key] ?? null]),
  });
  const fragmented = has("fragmentation_percent");
  return {
    ...base(palette),
    grid: { left: 8, right: fragmented ? 8 : 16, top: 26, bottom: 46, containLabel: true },
    tooltip: {
      ...tooltip(palette),
      trigger: "axis",
      axisPointer: { type: "line", lineStyle: { color: palette.text, opacity: 0.5 } },
      formatter: (items: readonly { dataIndex: number }[]) => memoryPopup(events[items[0]?.dataIndex ?? 0]),
    },
    xAxis: {
      type: "value",
      min: "dataMin",
      max: "dataMax",
      ...axis(palette),
      axisLabel: {
        color: palette.muted,
        fontSize: 11,
        hideOverlap: true,
        showMinLabel: false,
        showMaxLabel: false,
        formatter: momentsUpTo(events.at(-1)?.time_ms ?? 0),
      },
      splitLine: { show: false },
      axisLine: { show: true, lineStyle: { color: palette.strong } },
    },
    yAxis: [
      {
        type: "value",
        ...axis(palette),
        ...scale(events, look.withFree),
        axisLabel: { color: palette.muted, fontSize: 11, formatter: (value: number) => bytes(value) },
      },
      {
        type: "value",
        ...axis(palette),
        axisLabel: { color: palette.muted, fontSize: 11, formatter: "{value} %" },
        show: fragmented,
        min: 0,
        max: 100,
        splitLine: { show: false },
      },
    ],
    dataZoom: [
      { ...slider(palette), filterMode: "none" },
      { type: "inside", zoomOnMouseWheel: "ctrl", filterMode: "none" },
    ],
    series: [
      ...(has("stack_bytes") ? [area("Stack", "stack_bytes", MEMORY_COLOUR.stack, 0.55)] : []),
      { ...area("Heap", "heap_bytes", MEMORY_COLOUR.heap, 0.45), ...peakLine(look, events) },
      ...(look.withFree && has("free_bytes") ? [area("Free", "free_bytes", MEMORY_COLOUR.free, 0.22)] : []),
      ...(has("reserved_bytes") ? [line("Reserved", "reserved_bytes", MEMORY_COLOUR.reserved, 0)] : []),
      ...(fragmented ? [line("Fragmentation", "fragmentation_percent", MEMORY_COLOUR.fragmentation, 1)] : []),
    ],
  };
}

/** Round numbers of bytes on the axis: halves and powers of two. */
function scale(events: readonly MemoryEvent[], withFree: boolean): { max: number; interval: number } {
  let largest = 1;
  for (const event of events) {
    const used = (event.stack_bytes ?? 0) + (event.heap_bytes ?? event.in_use_bytes ?? 0);
    largest = Math.max(largest, used + (withFree ? (event.free_bytes ?? 0) : 0), event.reserved_bytes ?? 0);
  }
  const interval = 2 ** Math.ceil(Math.log2(largest / 5));
  return { interval, max: interval * Math.ceil((largest * 1.02) / interval) };
}

/** Nearer to the end than this share of the time, the peak’s name stands before it: behind it is the other axis. */
const AT_THE_END = 0.06;

function peakLine({ palette, peak_ms }: MemoryLook, events: readonly MemoryEvent[]): Record<string, unknown> {
  if (peak_ms === null) return {};
  const [first, last] = [events[0]?.time_ms ?? 0, events.at(-1)?.time_ms ?? 0];
  const align = peak_ms > last - AT_THE_END * (last - first) ? { align: "right", padding: [0, 6, 0, 0] } : {};
  return {
    markLine: {
      silent: true,
      symbol: "none",
      lineStyle: { color: palette.text, type: "dashed", opacity: 0.6 },
      label: { formatter: "peak", position: "end", distance: 4, color: palette.text, fontSize: 11, ...align },
      data: [{ xAxis: peak_ms }],
    },
  };
}

/** Moments of a capture in one unit, with all their digits: neighbours differ by little. */
export function momentsUpTo(last: number): (ms: number) => string {
  const [unit, size] = last >= 1e4 ? (["s", 1e3] as const) : (["ms", 1] as const);
  return (ms) => `${(ms / size).toLocaleString("en-US", { maximumFractionDigits: 6 })} ${unit}`;
}

function memoryPopup(event: MemoryEvent | undefined): HTMLElement {
  if (!event) return popup("", []);
  const size = (value: number | null | undefined) => (value == null ? UNKNOWN : bytes(value));
  const text = (value: string | number | null | undefined) => (value == null || value === "" ? UNKNOWN : String(value));
  const lines: Line[] = [
    { name: "Event", value: text(event.event) },
    { name: "Requested", value: size(event.requested_bytes) },
    { name: "Allocated", value: size(event.allocated_bytes) },
    { name: "Op", value: text(event.op) },
    { name: "Step", value: text(event.step) },
    { name: "Region", value: text(event.region) },
    { name: "Data type", value: text(event.dtype) },
    { name: "Shape", value: text(event.shape) },
    { name: "In use", value: size(event.in_use_bytes) },
    { name: "Stack", value: size(event.stack_bytes), colour: MEMORY_COLOUR.stack },
    { name: "Heap", value: size(event.heap_bytes), colour: MEMORY_COLOUR.heap },
    { name: "Free", value: size(event.free_bytes), colour: MEMORY_COLOUR.free },
    {
      name: "Fragmentation",
      value: event.fragmentation_percent == null ? UNKNOWN : percent(event.fragmentation_percent),
      colour: MEMORY_COLOUR.fragmentation,
    },
  ];
  return popup(
    `at ${duration(event.time_ms)}`,
    lines.map((line) => ({ ...line, faint: line.value === UNKNOWN })),
  );
}
