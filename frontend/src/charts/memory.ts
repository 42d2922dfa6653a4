/** Memory in use over time: stack and heap stacked, what is free above them, fragmentation as a line. */
import { CATEGORY_COLOUR } from "../design/colours";
import { bytes, duration, percent, UNKNOWN } from "../format";
import type { RowOf } from "../sections";
import { type Curve, fromZero, type Line, numbers, type Plot, type Popup, spanOf } from "./plot";

export type MemoryEvent = RowOf<"memory-profile", "timeline"> & { readonly time_ms: number };

export const MEMORY_COLOUR = {
  stack: CATEGORY_COLOUR.device_collectives,
  heap: CATEGORY_COLOUR.device_compute,
  free: CATEGORY_COLOUR.host_compute,
  reserved: CATEGORY_COLOUR.other,
  fragmentation: CATEGORY_COLOUR.compilation,
} as const;

export interface MemoryLook {
  readonly peak_ms: number | null;
  readonly withFree: boolean;
}

export function memoryOverTime(events: readonly MemoryEvent[], { peak_ms, withFree }: MemoryLook): Plot {
  const x = events.map((event) => event.time_ms);
  const sizes = (key: keyof MemoryEvent) => events.map((event) => event[key] as number | null);
  const has = (key: keyof MemoryEvent) => events.some((event) => Number(event[key] ?? 0) > 0);
  let base: readonly number[] = x.map(() => 0);
  const area = (name: string, own: readonly (number | null)[], colour: string, fill: number): Curve => {
    const y = own.map((size, at) => (base[at] as number) + (size ?? 0));
    const curve = { name, colour, fill, x, y, base, width: name === "Free" ? 0 : 1.2, isStepped: true };
    base = y;
    return curve;
  };
  const heap = events.map((event) => event.heap_bytes ?? event.in_use_bytes);
  const dashed = { x, isStepped: true, isDashed: true };
  const curves = [
    ...(has("stack_bytes") ? [area("Stack", sizes("stack_bytes"), MEMORY_COLOUR.stack, 0.55)] : []),
    area("Heap", heap, MEMORY_COLOUR.heap, 0.45),
    ...(withFree && has("free_bytes") ? [area("Free", sizes("free_bytes"), MEMORY_COLOUR.free, 0.22)] : []),
  ];
  const reserved = has("reserved_bytes") ? sizes("reserved_bytes") : null;
  const fragmented = withFree && has("fragmentation_percent") ? sizes("fragmentation_percent") : null;
  const { reserved: reservedColour, fragmentation } = MEMORY_COLOUR;
  return {
    x: numbers(spanOf(x), momentsUpTo(x.at(-1) ?? 0)),
    y: fromZero(largest([...base, ...(reserved ?? [])]), bytes, "", 2),
    ...(fragmented ? { right: numbers([0, 100], (share) => `${share} %`) } : {}),
    curves: [
      ...curves,
      ...(reserved ? [{ ...dashed, name: "Reserved", colour: reservedColour, y: reserved }] : []),
      ...(fragmented
        ? [{ ...dashed, name: "Fragmentation", colour: fragmentation, y: fragmented, isOnRight: true }]
        : []),
    ],
    guides: peak_ms === null ? [] : [{ x: peak_ms, name: "peak" }],
    places: x,
    popup: (index) => memoryPopup(events[index] as MemoryEvent),
    canZoom: true,
  };
}

/** The largest of many values: too many for the arguments of a call. */
function largest(values: readonly (number | null)[]): number {
  return values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
}

/** Moments of a capture in one unit, with all their digits: neighbours differ by little. */
export function momentsUpTo(last: number): (ms: number) => string {
  const [unit, size] = last >= 1e4 ? (["s", 1e3] as const) : (["ms", 1] as const);
  return (ms) => `${(ms / size).toLocaleString("en-US", { maximumFractionDigits: 6 })} ${unit}`;
}

function memoryPopup(event: MemoryEvent): Popup {
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
  return {
    title: `at ${duration(event.time_ms)}`,
    lines: lines.map((line) => ({ ...line, faint: line.value === UNKNOWN })),
  };
}
