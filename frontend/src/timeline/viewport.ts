/**
 * The window of time on the screen, and the way between times and pixels.
 *
 * Times are picoseconds from the start of the host's session, as plain numbers: a day has fewer than 2^57 of them, and
 * a double is exact to 2^53, two and a half hours.
 */
export interface Span {
  readonly begin: number;
  readonly end: number;
}

/** A stretch of a ribbon that one cause goes through, in whole cells. */
export interface Run extends Span {
  readonly ribbon: string;
  readonly cause: string;
}

/** No window is narrower: below this a pixel would be less than the clock's resolution. */
export const NARROWEST = 1_000;
/** How far outside the trace one may look, as a share of the window. */
const SLACK = 0.25;

export function length(span: Span): number {
  return span.end - span.begin;
}

export function toX(span: Span, width: number, time: number): number {
  return ((time - span.begin) / (span.end - span.begin)) * width;
}

export function toTime(span: Span, width: number, x: number): number {
  return span.begin + (x / width) * (span.end - span.begin);
}

/** A window inside the limits: not too narrow, not wider than the trace with some slack, not far beside it. */
export function clamp(span: Span, whole: Span): Span {
  const all = Math.max(length(whole), NARROWEST);
  const wide = Math.min(Math.max(length(span), NARROWEST), all * (1 + 2 * 0.02));
  const middle = (span.begin + span.end) / 2;
  const least = whole.begin - Math.min(wide * SLACK, all * 0.02);
  const most = whole.end + Math.min(wide * SLACK, all * 0.02);
  let begin = middle - wide / 2;
  if (begin + wide > most) begin = most - wide;
  if (begin < least) begin = least;
  return { begin, end: begin + wide };
}

/** Zooms so that the time under the cursor stays under it; a factor below 1 zooms in. */
export function zoomAt(span: Span, width: number, x: number, factor: number, whole: Span): Span {
  const time = toTime(span, width, x);
  const room = Math.max(length(whole) * 1.04, NARROWEST);
  const wide = Math.min(Math.max(length(span) * factor, NARROWEST), room);
  const share = x / width;
  return clamp({ begin: time - wide * share, end: time + wide * (1 - share) }, whole);
}

export function pan(span: Span, width: number, pixels: number, whole: Span): Span {
  const time = (pixels / width) * length(span);
  return clamp({ begin: span.begin + time, end: span.end + time }, whole);
}

/** A window that shows a span with a margin on both sides. */
export function around(span: Span, whole: Span, margin = 0.15): Span {
  const wide = Math.max(length(span), NARROWEST / 4);
  return clamp({ begin: span.begin - wide * margin, end: span.end + wide * margin }, whole);
}

/** Part of the way from one window to another; the width moves in proportion, so that a zoom looks even. */
export function between(from: Span, to: Span, share: number): Span {
  if (share >= 1) return to;
  const a = length(from);
  const b = length(to);
  const wide = a * (b / a) ** share;
  const along = Math.abs(b - a) < 1e-6 * a ? share : (wide - a) / (b - a);
  const begin = from.begin + (to.begin - from.begin) * along;
  return { begin, end: begin + wide };
}

/** The level whose cells are the finest that are at least a pixel wide; a cell of level e has 2^e ps. */
export function levelFor(span: Span, width: number): number {
  const perPixel = Math.max(1, length(span) / Math.max(1, width));
  return Math.max(0, Math.ceil(Math.log2(perPixel) - 1e-9));
}
