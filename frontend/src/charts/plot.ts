/** What a chart draws, as data: everything stands in values of its axes; `Chart.tsx` turns them into places. */

export interface Axis {
  readonly name: string;
  readonly range: readonly [number, number];
  /** The values that are written beside a part of the axis, at most so many. */
  readonly ticks: (low: number, high: number, most: number) => readonly number[];
  readonly write: (value: number) => string;
}

/** A line from point to point, broken where a value is null; with `fill`, an area of that opacity above `base`. */
export interface Curve {
  readonly name: string;
  readonly colour: string;
  readonly x: readonly number[];
  readonly y: readonly (number | null)[];
  readonly base?: readonly number[];
  readonly fill?: number;
  readonly width?: number;
  /** Each value lasts until the next. */
  readonly isStepped?: boolean;
  readonly isDashed?: boolean;
  readonly isOnRight?: boolean;
}

export interface Box {
  readonly x: number;
  readonly width: number;
  readonly low: number;
  readonly high: number;
  readonly isFaint?: boolean;
}

export interface Columns {
  readonly name: string;
  readonly colour: string;
  readonly boxes: readonly Box[];
}

export interface Dot {
  readonly x: number;
  readonly y: number;
  /** Across, in pixels. */
  readonly size: number;
  readonly shape: "circle" | "triangle";
  readonly colour: string;
  readonly edge: string;
  readonly edgeWidth: number;
}

/** A line across all of the chart at a value of one axis. */
export interface Guide {
  readonly x?: number;
  readonly y?: number;
  readonly name: string;
  readonly colour?: string;
  readonly isSolid?: boolean;
}

/** A text in the chart, beside a place. */
export interface Note {
  readonly x: number;
  readonly y: number;
  readonly text: string;
  readonly anchor: "start" | "middle" | "end";
}

export interface Line {
  readonly colour?: string;
  readonly name: string;
  readonly value: string;
  /** Beside the value, in a column of its own. */
  readonly note?: string;
  readonly faint?: boolean;
}

/** What is said of the place under the mouse. */
export interface Popup {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly foot?: string;
}

export interface Plot {
  readonly x: Axis;
  readonly y: Axis;
  readonly right?: Axis;
  readonly curves?: readonly Curve[];
  readonly columns?: readonly Columns[];
  readonly dots?: readonly Dot[];
  readonly guides?: readonly Guide[];
  readonly notes?: readonly Note[];
  /** Where each thing that can be asked about stands on the horizontal axis, in order; the dots if not given. */
  readonly places?: readonly number[];
  readonly popup: (index: number) => Popup;
  /** Whether a drag narrows the horizontal axis. */
  readonly canZoom?: boolean;
}

/** Round values: 1, 2 or 5 times a power of ten, or powers of two, of which bytes are made. */
export function roundTicks(low: number, high: number, most: number, base: 2 | 10 = 10): number[] {
  const step = roundStep((high - low) / most, base);
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

function roundStep(least: number, base: 2 | 10): number {
  if (!(least > 0)) return 1;
  if (base === 2) return 2 ** Math.ceil(Math.log2(least));
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((each) => each * power >= least * (1 - 1e-9)) ?? 10);
}

/** A round value as it stands on an axis: without zeros behind its last digit. */
export function plain(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 6 });
}

/** An axis of numbers. */
export function numbers(
  range: readonly [number, number],
  write: (value: number) => string,
  name = "",
  base: 2 | 10 = 10,
): Axis {
  return { name, range, write, ticks: (low, high, most) => roundTicks(low, high, most, base) };
}

const LEVELS = 5;

/** An axis of whole numbers. */
export function wholes(range: readonly [number, number], write: (value: number) => string, name = ""): Axis {
  const axis = numbers(range, write, name);
  return { ...axis, ticks: (...part) => axis.ticks(...part).filter((each) => Number.isInteger(each)) };
}

/** An axis from zero to the round value above the largest one. */
export function fromZero(largest: number, write: (value: number) => string, name = "", base: 2 | 10 = 10): Axis {
  const step = roundStep(Math.max(largest * 1.02, Number.MIN_VALUE) / LEVELS, base);
  return numbers([0, step * Math.max(1, Math.ceil((largest * 1.02) / step))], write, name, base);
}

/** An axis of names, one for each whole number from zero. */
export function names(labels: readonly string[], name = ""): Axis {
  return wholes([-0.5, labels.length - 0.5], (value) => labels[value] ?? "", name);
}

/** The first and the last of sorted values, as a range that is not empty. */
export function spanOf(sorted: readonly number[]): readonly [number, number] {
  const [first, last] = [sorted[0] ?? 0, sorted.at(-1) ?? 1];
  return [first, last > first ? last : first + 1];
}

/** Of sorted places the nearest to a value; -1 if there is none. */
export function nearestPlace(places: readonly number[], value: number): number {
  let [low, high] = [0, places.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((places[middle] as number) <= value) low = middle;
    else high = middle;
  }
  if (!places.length) return -1;
  return Math.abs((places[high] as number) - value) < Math.abs((places[low] as number) - value) ? high : low;
}

/** More points than this for each pixel are thinned out to the least, the largest and the last of the pixel. */
const DENSE = 4;

/** Which points from `from` to before `to` are drawn: all, or where they are dense those that can be seen. */
export function seenPoints({ x, y }: Pick<Curve, "x" | "y">, from: number, to: number, pixels: number): number[] {
  if (to - from <= DENSE * pixels) return Array.from({ length: to - from }, (_, at) => from + at);
  const seen: number[] = [];
  const first = x[from] as number;
  const scale = pixels / ((x[to - 1] as number) - first || 1);
  let [least, most, pixel] = [from, from, 0];
  for (let at = from; at <= to; at += 1) {
    const here = at < to ? Math.floor(((x[at] as number) - first) * scale) : Number.NaN;
    if (here !== pixel) {
      seen.push(...[...new Set([least, most, at - 1])].sort((a, b) => a - b));
      [least, most, pixel] = [at, at, here];
    }
    if ((y[at] as number) < (y[least] as number)) least = at;
    if ((y[at] as number) > (y[most] as number)) most = at;
  }
  return seen;
}

/** Turns a value of an axis into pixels. */
export type Scale = (value: number) => number;

/** The outline of a curve as an SVG path, and of the area between it and its base, if it has one. */
export function outlines(curve: Curve, toX: Scale, toY: Scale, pixels: number): { line: string; area: string } {
  let [line, area] = ["", ""];
  for (let from = 0; from < curve.x.length; from += 1) {
    if (curve.y[from] == null) continue;
    let to = from;
    while (to < curve.x.length && curve.y[to] != null) to += 1;
    const seen = seenPoints(curve, from, to, pixels);
    const top = steps(seen, (at) => [toX(curve.x[at] as number), toY(curve.y[at] as number)], curve.isStepped);
    line += `M${top.join("L")}`;
    if (curve.fill) {
      const under = (at: number) => [toX(curve.x[at] as number), toY(curve.base?.[at] ?? 0)] as const;
      area += `M${top.join("L")}L${steps(seen, under, curve.isStepped).reverse().join("L")}Z`;
    }
    from = to;
  }
  return { line, area };
}

function steps(seen: readonly number[], place: (at: number) => readonly [number, number], isStepped = false): string[] {
  const found: string[] = [];
  let before = "";
  for (const at of seen) {
    const [x, y] = place(at).map((value) => value.toFixed(1)) as [string, string];
    if (isStepped && before) found.push(`${x} ${before}`);
    found.push(`${x} ${y}`);
    before = y;
  }
  return found;
}
