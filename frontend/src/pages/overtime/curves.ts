/** The curves of a watched run: what is drawn over its hours, and where its triggers and captures lie. */
import type { EChartsCoreOption } from "echarts/core";
import type { Values } from "../../api";
import { axis, base, popup, tooltip } from "../../charts/look";
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
      ["step_ms_p90", "nine in ten are shorter"],
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
      ["thread_queued_percent", "waits for a processor"],
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
  palette: Palette,
): EChartsCoreOption {
  const known = shownCurves(curves, rows);
  const hour = (row: Values | undefined) => Number(row?.hour ?? 0);
  return {
    ...base(palette),
    grid: { left: 8, right: 16, top: 26, bottom: 26, containLabel: true },
    tooltip: {
      ...tooltip(palette),
      trigger: "axis",
      formatter: (items: readonly { dataIndex: number }[]) => {
        const row = rows[items[0]?.dataIndex ?? 0];
        return popup(
          `${short(hour(row))} h, ${String(row?.time ?? "")}`,
          known.map(({ name, label, colour }) => ({
            name: label,
            value: typeof row?.[name] === "number" ? curves.write(row[name] as number) : "unknown",
            colour,
          })),
        );
      },
    },
    xAxis: {
      type: "value",
      min: "dataMin",
      max: "dataMax",
      ...axis(palette),
      axisLabel: { color: palette.muted, fontSize: 11, formatter: hours },
      splitLine: { show: false },
    },
    yAxis: {
      type: "value",
      ...axis(palette),
      axisLabel: { color: palette.muted, fontSize: 11, formatter: curves.write },
    },
    series: known.map(({ name, label, colour }, at) => ({
      type: "line",
      name: label,
      symbol: "none",
      sampling: "lttb",
      lineStyle: { width: 1.5, color: colour },
      itemStyle: { color: colour },
      data: rows.map((row) => [hour(row), row[name] ?? null]),
      ...(at === 0 ? { markLine: markLines(marks, palette) } : {}),
    })),
  };
}

function markLines(marks: readonly Values[], palette: Palette): Record<string, unknown> {
  return {
    symbol: "none",
    label: { show: false },
    data: marks.map((mark) => ({
      xAxis: Number(mark.hour ?? 0),
      name: String(mark.sentence ?? ""),
      lineStyle: { color: palette.accent, width: 1.5, type: mark.run || mark.window ? "solid" : "dashed" },
    })),
  };
}
