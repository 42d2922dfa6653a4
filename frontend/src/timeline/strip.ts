/** One row's narrow rectangles, as pixels: a browser takes longer for thousands of calls than for all the rest. */

/** Rectangles that are narrower (in CSS pixels) go into the strip, on whole pixels of the screen. */
export const NARROW = 4;

export class Strip {
  private readonly canvas: OffscreenCanvas;
  private readonly ctx: OffscreenCanvasRenderingContext2D | null;
  private readonly image: ImageData;
  private readonly pixels: Uint32Array;
  private isEmpty = true;

  constructor(
    readonly width: number,
    readonly ratio: number,
  ) {
    this.canvas = new OffscreenCanvas(Math.max(1, Math.round(width * ratio)), 1);
    this.ctx = this.canvas.getContext("2d");
    this.image = new ImageData(this.canvas.width, 1);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  add(x: number, wide: number, fill: string): void {
    const left = Math.round(x * this.ratio);
    const right = Math.max(left + 1, Math.round((x + wide) * this.ratio));
    this.pixels.fill(pixelOf(fill), Math.max(0, left), Math.max(0, right));
    this.isEmpty = false;
  }

  /** Draws what was added, as high as a row, and forgets it. */
  drawTo(ctx: CanvasRenderingContext2D, y: number, height: number): void {
    if (this.isEmpty) return;
    this.ctx?.putImageData(this.image, 0, 0);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(this.canvas, 0, 0, this.canvas.width, 1, 0, y, this.canvas.width / this.ratio, height);
    this.pixels.fill(0);
    this.isEmpty = true;
  }
}

let strip: Strip | null = null;

/** The strip for pictures of a width. */
export function stripOf(width: number): Strip {
  const ratio = window.devicePixelRatio || 1;
  if (strip?.width !== width || strip.ratio !== ratio) strip = new Strip(width, ratio);
  return strip;
}

const known = new Map<string, number>();

/** `#rrggbb` as its four bytes lie in memory (red first; every machine that runs a browser is little-endian). */
export function pixelOf(colour: string): number {
  let pixel = known.get(colour);
  if (pixel === undefined) {
    const value = parseInt(colour.slice(1), 16);
    pixel = (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >>> 16)) >>> 0;
    if (known.size > 5000) known.clear();
    known.set(colour, pixel);
  }
  return pixel;
}
