/** Stacked columns, one per step or per worker. */
import type { EChartsCoreOption } from "echarts/core";
import type { Palette } from "../design/colours";
import { duration, percent } from "../format";
import { axis, base, popup, slider, tooltip } from "./look";

export interface Column {
  /** Under the column. */
  readonly label: string;
  /** In the pop-up. */
  readonly title: string;
  readonly total_ms: number;
  /** Time of each part. */
  readonly parts: Readonly<Record<string, number>>;
  /** Steps that statistics do not count are drawn faintly. */
  readonly faint?: boolean;
  readonly outlier?: boolean;
  readonly foot?: string;
  /** The interval in the timeline. */
  readonly href?: string | null;
  /** The step, for a link that shows it alone. */
  readonly step?: number;
}

/** One colour of the stack. */
export interface Part {
  readonly key: string;
  readonly label: string;
  readonly colour: string;
}

export interface ColumnsLook {
  readonly palette: Palette;
  /** What the columns are made of, from the bottom. */
  readonly parts: readonly Part[];
  readonly xName: string;
  readonly mean_ms?: number | null;
  readonly picked?: number | null;
  /** With a slider below, which zooms into many columns. */
  readonly zoom?: boolean;
}

export function stackedColumns(columns: readonly Column[], look: ColumnsLook): EChartsCoreOption {
  const { palette } = look;
  const shown = shownParts(columns, look.parts);
  const many = columns.length > 60;
  return {
    ...base(palette),
    grid: {
      left: 8,
      right: look.mean_ms != null && columns.length > 1 ? 92 : 16,
      top: 26,
      bottom: look.zoom && many ? 46 : look.xName ? 22 : 4,
      containLabel: true,
    },
    tooltip: {
      ...tooltip(palette),
      trigger: "axis",
      axisPointer: { type: "shadow", shadowStyle: { color: palette.text, opacity: 0.06 } },
      formatter: (items: readonly { dataIndex: number }[]) => columnPopup(columns[items[0]?.dataIndex ?? 0], shown),
    },
    xAxis: {
      type: "category",
      data: columns.map((column) => column.label),
      ...axis(palette),
      name: look.xName,
      nameLocation: "middle",
      nameGap: columns.some((column) => column.label.includes("\n")) ? 40 : 24,
      axisLabel: {
        color: palette.muted,
        fontSize: 11,
        lineHeight: 15,
        hideOverlap: true,
        ...labelled(columns),
        ...(columns.length <= 10 && columns.some((column) => column.label.length > 8)
          ? { interval: 0, width: 110, overflow: "break" }
          : {}),
      },
      nameTextStyle: { color: palette.muted, fontSize: 11 },
      axisLine: { show: true, lineStyle: { color: palette.strong } },
      splitLine: { show: false },
    },
    yAxis: { type: "value", ...axis(palette, "ms") },
    ...(look.zoom && many
      ? { dataZoom: [slider(palette), { type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseMove: false }] }
      : {}),
    series: shown.map((part, index) => ({
      type: "bar",
      stack: "step",
      name: part.label,
      barMaxWidth: 46,
      barCategoryGap: many ? "0%" : "22%",
      cursor: "pointer",
      itemStyle: { color: part.colour, borderColor: palette.surface, borderWidth: many ? 0 : 0.5 },
      emphasis: { disabled: true },
      data: columns.map((column, at) => ({
        value: column.parts[part.key] ?? 0,
        itemStyle: { opacity: column.faint || (look.picked != null && look.picked !== at) ? 0.35 : 1 },
      })),
      ...(index === shown.length - 1 ? marks(columns, look) : {}),
    })),
  };
}

/** Of many columns every second, fifth, tenth ... is labelled, so that the labels stand evenly. */
function labelled(columns: readonly Column[]): { interval?: number } {
  if (columns.length <= MOST_LABELS) return {};
  const each =
    [2, 5, 10, 20, 50, 100, 200, 500].find((stride) => columns.length / stride <= MOST_LABELS) ??
    Math.ceil(columns.length / MOST_LABELS);
  return { interval: each - 1 };
}

const MOST_LABELS = 24;

/** The mean as a dashed line, and a mark above steps that are far from it. */
function marks(columns: readonly Column[], { palette, mean_ms }: ColumnsLook): Record<string, unknown> {
  const line =
    mean_ms == null || columns.length < 2
      ? {}
      : {
          markLine: {
            silent: true,
            symbol: "none",
            lineStyle: { color: palette.text, type: "dashed", opacity: 0.55 },
            label: {
              formatter: `mean ${duration(mean_ms)}`,
              position: "end",
              distance: 6,
              color: palette.text,
              fontSize: 11,
            },
            data: [{ yAxis: mean_ms }],
          },
        };
  const label = {
    label: {
      show: columns.some((column) => column.outlier),
      position: "top",
      color: palette.text,
      fontSize: 12,
      formatter: (item: { dataIndex: number }) => (columns[item.dataIndex]?.outlier ? "▲" : ""),
    },
  };
  return { ...line, ...label };
}

function columnPopup(column: Column | undefined, parts: readonly Part[]): HTMLElement {
  if (!column) return popup("", []);
  const lines = parts
    .filter((part) => (column.parts[part.key] ?? 0) > 0)
    .map((part) => {
      const ms = column.parts[part.key] as number;
      return {
        colour: part.colour,
        name: part.label,
        value: duration(ms),
        note: percent(column.total_ms > 0 ? (100 * ms) / column.total_ms : 0),
      };
    });
  return popup(`${column.title} · ${duration(column.total_ms)}`, lines.reverse(), column.foot);
}

/** The parts that any column has something of. */
export function shownParts(columns: readonly Column[], parts: readonly Part[]): Part[] {
  return parts.filter((part) => columns.some((column) => (column.parts[part.key] ?? 0) > 0));
}

export function markCount(columns: readonly Column[], parts: readonly Part[]): number {
  return columns.reduce((sum, column) => sum + parts.filter((part) => (column.parts[part.key] ?? 0) > 0).length, 0);
}

/** Steps whose time is far from the others': more than three (scaled) median deviations and a tenth from the median. */
export function outliers(times: readonly number[]): boolean[] {
  if (times.length < 4) return times.map(() => false);
  const middle = median(times);
  const spread = 1.4826 * median(times.map((time) => Math.abs(time - middle)));
  return times.map((time) => Math.abs(time - middle) > Math.max(3 * spread, 0.1 * middle));
}

export interface Bin {
  readonly low: number;
  readonly high: number;
  readonly count: number;
}

/** Times in classes of equal width, as many as the square root of their number; the last holds its upper end. */
export function bins(times: readonly number[]): Bin[] {
  const [least, most] = [Math.min(...times), Math.max(...times)];
  const many = most > least ? Math.ceil(Math.sqrt(times.length)) : 1;
  const width = (most - least) / many;
  const counts = Array<number>(many).fill(0);
  for (const time of times) {
    const at = width > 0 ? Math.min(Math.floor((time - least) / width), many - 1) : 0;
    counts[at] = (counts[at] ?? 0) + 1;
  }
  return counts.map((count, at) => ({ low: least + at * width, high: least + (at + 1) * width, count }));
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? (sorted[half] as number) : ((sorted[half - 1] as number) + (sorted[half] as number)) / 2;
}
