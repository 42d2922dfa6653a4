/** How wide texts are in a table, in pixels. */
import { signal } from "@preact/signals";

/** Texts are as wide as they stay once the page's own face is there. */
export const fontsReady = signal(false);
if (typeof document !== "undefined") void document.fonts.ready.then(() => (fontsReady.value = true));

/** The width of a text, as it stands in a row or, bolder, in the head. */
export type Measure = (text: string, bold?: boolean) => number;

const FONT = '"Inter Variable", system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const SIZE_REM = 0.857; // `--small`
const MOST_KNOWN = 5000;

let context: CanvasRenderingContext2D | null = null;
/** What was measured before in the same face and size, by any table. */
let known = new Map<string, number>();
let measuredIn = "";

/** Measures in the face and the size that the page has now. */
export function measurer(): Measure {
  context ??= document.createElement("canvas").getContext("2d");
  const size = SIZE_REM * Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
  const face = `${size} ${fontsReady.peek()}`;
  if (face !== measuredIn || known.size >= MOST_KNOWN) known = new Map();
  measuredIn = face;
  return (text, bold = false) => {
    // All digits of a table are as wide as its zero, so a column of numbers has few different widths.
    const shape = text.replace(/\d/g, "0");
    const key = bold ? `b${shape}` : shape;
    const before = known.get(key);
    if (before !== undefined || !context) return before ?? text.length * size * 0.55;
    context.font = `${bold ? 600 : 400} ${size}px ${FONT}`;
    const width = context.measureText(shape).width;
    known.set(key, width);
    return width;
  };
}
