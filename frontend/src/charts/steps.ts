/** Stacked columns, one per step or per worker. */
import { duration, percent } from "../format";
import { fromZero, type Note, names, type Plot, type Popup, plain } from "./plot";

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
  /** Where it is compared with the median one. */
  readonly beside?: string | null;
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
  /** What the columns are made of, from the bottom. */
  readonly parts: readonly Part[];
  readonly xName: string;
  readonly median_ms?: number | null;
  readonly picked?: number | null;
}

/** So many columns are drawn without gaps, and can be narrowed to some of them. */
const MANY = 60;

export function stackedColumns(columns: readonly Column[], { parts, xName, median_ms, picked }: ColumnsLook): Plot {
  const shown = shownParts(columns, parts);
  const many = columns.length > MANY;
  const tops = columns.map(() => 0);
  const stacked = shown.map((part) => ({
    name: part.label,
    colour: part.colour,
    boxes: columns.map((column, x) => {
      const low = tops[x] as number;
      const high = low + (column.parts[part.key] ?? 0);
      tops[x] = high;
      return { x, width: many ? 1 : 0.8, low, high, isFaint: column.faint || (picked ?? x) !== x };
    }),
  }));
  const withMedian = median_ms != null && columns.length > 1;
  return {
    x: names(
      columns.map((column) => column.label),
      xName,
    ),
    y: fromZero(
      tops.reduce((a, b) => Math.max(a, b), 0),
      plain,
      "ms",
    ),
    columns: stacked,
    guides: withMedian ? [{ y: median_ms, name: "median" }] : [],
    notes: columns.flatMap((column, x): Note[] =>
      column.outlier ? [{ x, y: tops[x] as number, text: "▲", anchor: "middle" }] : [],
    ),
    places: columns.map((_, x) => x),
    popup: (index) => columnPopup(columns[index] as Column, shown),
    canZoom: many,
  };
}

function columnPopup(column: Column, parts: readonly Part[]): Popup {
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
  return { title: `${column.title} · ${duration(column.total_ms)}`, lines: lines.reverse(), foot: column.foot ?? "" };
}

/** The parts that any column has something of. */
export function shownParts(columns: readonly Column[], parts: readonly Part[]): Part[] {
  return parts.filter((part) => columns.some((column) => (column.parts[part.key] ?? 0) > 0));
}

export function markCount(columns: readonly Column[], parts: readonly Part[]): number {
  return columns.reduce((sum, column) => sum + parts.filter((part) => (column.parts[part.key] ?? 0) > 0).length, 0);
}
