/** The curves of a watched run: what is drawn over its hours, and where its triggers and captures lie. */
import type { Values } from "../../api";
import { fromZero, numbers, type Plot, spanOf } from "../../charts/plot";
import { CATEGORY_COLOUR, type Palette } from "../../design/colours";
import { bytes, duration, percent, short } from "../../format";

export interface Curves {
  readonly key: string;
  readonly label: string;
  readonly columns: readonly (readonly [name: string, label: string])[];
  readonly write: (value: number) => string;
}

const share = (value: number) => percent(value);

export const CURVES: readonly Curves[] = [
  {
    ...{ key: "steps", label: "Step time", write: duration },
    columns: [
      ["step_ms_median", "median"],
      ["step_ms_p90", "90th percentile"],
    ],
  },
  {
    ...{ key: "memory", label: "Memory", write: bytes },
    columns: [
      ["resident_bytes", "process"],
      ["device_allocated_bytes", "devices"],
    ],
  },
  {
    ...{ key: "thread", label: "Thread of the steps", write: share },
    columns: [
      ["thread_cpu_percent", "computes"],
      ["thread_queued_percent", "waits for a core"],
      ["collector_percent", "garbage collection"],
    ],
  },
  {
    ...{ key: "machine", label: "Machine", write: share },
    columns: [["cpu_machine_percent", "processors busy"]],
  },
];

/** `2 h`, `7.99 h`: a place on the axis. */
export function hours(value: number): string {
  return `${Number(value.toPrecision(3))} h`;
}

const COLOURS = [CATEGORY_COLOUR.device_compute, CATEGORY_COLOUR.input, CATEGORY_COLOUR.device_collectives];

/** The curves of which any value is known. */
export function knownCurves(rows: readonly Values[]): readonly Curves[] {
  return CURVES.filter(({ columns }) => columns.some(([name]) => rows.some((row) => typeof row[name] === "number")));
}

/** What there is of some curves: each with its column and its colour. */
export function shownCurves(
  curves: Curves,
  rows: readonly Values[],
): readonly { readonly name: string; readonly label: string; readonly colour: string }[] {
  return curves.columns
    .filter(([name]) => rows.some((row) => typeof row[name] === "number"))
    .map(([name, label], at) => ({ name, label, colour: COLOURS[at] as string }));
}

/** Curves of one host over hours; a line for each trigger, dashed where nothing was captured. */
export function curveChart(
  curves: Curves,
  rows: readonly Values[],
  marks: readonly Values[],
  { accent }: Palette,
): Plot {
  const known = shownCurves(curves, rows);
  const x = rows.map((row) => Number(row.hour ?? 0));
  const lines = known.map((each) => ({
    ...each,
    x,
    y: rows.map((row) => (typeof row[each.name] === "number" ? (row[each.name] as number) : null)),
  }));
  const largest = lines.reduce((most, { y }) => y.reduce<number>((a, b) => Math.max(a, b ?? 0), most), 0);
  return {
    x: numbers(spanOf(x), hours),
    y: fromZero(largest, curves.write, "", curves.key === "memory" ? 2 : 10),
    curves: lines,
    guides: marks.map((mark) => ({
      x: Number(mark.hour ?? 0),
      name: "",
      colour: accent,
      isSolid: Boolean(mark.run || mark.window),
    })),
    places: x,
    popup: (index) => ({
      title: `${short(x[index] as number)} h, ${String(rows[index]?.time ?? "")}`,
      lines: lines.map(({ label, colour, y }) => ({
        name: label,
        value: y[index] == null ? "unknown" : curves.write(y[index] as number),
        colour,
      })),
    }),
    canZoom: true,
  };
}
