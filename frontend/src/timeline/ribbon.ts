/** The ribbon of causes over a device: each column of pixels is divided as its stretch of time is spent. */
import { colourOfCause } from "../design/causes";
import { inkOn, rgb } from "../design/colours";
import { termText } from "../terms";
import type { Model } from "./model";
import type { Scene } from "./paint-colours";
import { duration } from "./ticks";
import { CELLS, type Piece, type Tile } from "./tiles";
import { type Run, toX } from "./viewport";

/** From the bottom: what devices do, why they idle, what nobody knows. */
const STACK = [
  "device_compute",
  "communication",
  "copy",
  "device_gap",
  "sync",
  "launch",
  "host_compute",
  "python",
  "compile",
  "checkpoint",
  "transfer",
  "input",
  "contention",
  "unknown",
];
const TALL = 24;
const FULL = 255;
const LEAST_LABEL = 40;
const PURE = 0.85;

/** The places of the causes from the bottom up. */
function stackOf(causes: readonly string[]): readonly number[] {
  return STACK.map((cause) => causes.indexOf(cause)).filter((at) => at >= 0);
}

function shareAt(tile: Tile, cause: number, cell: number): number {
  return (tile.causes?.[cause * CELLS + cell] ?? 0) / FULL;
}

const pictures = new WeakMap<Tile, { readonly surface: string; readonly image: OffscreenCanvas }>();

function pictureOf(tile: Tile, causes: readonly string[], surface: string): OffscreenCanvas {
  const known = pictures.get(tile);
  if (known?.surface === surface) return known.image;
  const image = new OffscreenCanvas(CELLS, TALL);
  const ctx = image.getContext("2d") as OffscreenCanvasRenderingContext2D;
  const dots = ctx.createImageData(CELLS, TALL);
  for (let cell = 0; cell < CELLS; cell += 1) {
    let low = 0;
    for (const cause of stackOf(causes)) {
      const share = shareAt(tile, cause, cell);
      if (!share) continue;
      const [red, green, blue] = rgb(colourOfCause(causes[cause] as string, surface));
      const high = Math.min(TALL, low + share * TALL);
      for (let row = Math.round(low); row < Math.round(high); row += 1)
        dots.data.set([red, green, blue, FULL], ((TALL - 1 - row) * CELLS + cell) * 4);
      low = high;
    }
  }
  ctx.putImageData(dots, 0, 0);
  pictures.set(tile, { surface, image });
  return image;
}

/** Whether there was anything to draw: the account behind it takes longer than all the rest. */
export function paintRibbon(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  ribbon: string,
  y: number,
  tall: number,
  hasLabels: boolean,
): boolean {
  const { model, span, width, palette } = scene;
  const pieces = model.tiles.pieces(ribbon, span, width);
  ctx.imageSmoothingEnabled = false;
  for (const { tile, begin, end } of pieces) {
    if (!tile.causes) continue;
    const [x0, x1] = [Math.round(toX(span, width, begin)), Math.round(toX(span, width, end))];
    const from = (begin - tile.begin) / tile.cell;
    const picture = pictureOf(tile, model.tracks.causes, palette.surface);
    ctx.drawImage(picture, from, 0, (end - begin) / tile.cell, TALL, x0, y, x1 - x0, tall);
  }
  if (hasLabels) for (const run of longRuns(scene, pieces, ribbon)) paintLabel(ctx, scene, run, y + tall / 2);
  return pieces.some(({ tile }) => tile.causes);
}

/** Stretches that are wide enough for a label, and of nearly one colour. */
function longRuns(scene: Scene, pieces: readonly Piece[], ribbon: string): Run[] {
  const { span, width, model } = scene;
  const least = (LEAST_LABEL / width) * (span.end - span.begin);
  const found: Run[] = [];
  let last: { begin: number; end: number; cause: number } | null = null;
  const close = () => {
    if (last && last.cause >= 0 && last.end - last.begin >= least)
      found.push({ begin: last.begin, end: last.end, ribbon, cause: model.tracks.causes[last.cause] as string });
  };
  for (const { tile, begin, end } of pieces)
    for (let cell = (begin - tile.begin) / tile.cell; cell < (end - tile.begin) / tile.cell; cell += 1) {
      const cause = model.tracks.causes.findIndex((_, at) => shareAt(tile, at, cell) >= PURE);
      const [from, to] = [tile.begin + cell * tile.cell, tile.begin + (cell + 1) * tile.cell];
      if (last && last.cause === cause && last.end >= from) last.end = to;
      else {
        close();
        last = { begin: from, end: to, cause };
      }
    }
  close();
  return found;
}

function paintLabel(ctx: CanvasRenderingContext2D, { span, width, palette }: Scene, run: Run, middle: number): void {
  const x0 = Math.max(0, toX(span, width, run.begin)) + 6;
  const room = Math.min(width, toX(span, width, run.end)) - x0 - 4;
  const texts = [`${termText(run.cause)} ${duration(run.end - run.begin)}`, termText(run.cause)];
  const text = texts.find((each) => ctx.measureText(each).width <= room);
  if (!text) return;
  ctx.fillStyle = inkOn(colourOfCause(run.cause, palette.surface));
  ctx.fillText(text, x0, middle + 0.5);
}

/** What a ribbon shows at a time and a height, 0 at its bottom and 1 at its top; null where it shows nothing. */
export function runAt(model: Model, ribbon: string, time: number, height: number): Run | null {
  const { causes } = model.tracks;
  const pieces = model.tiles.pieces(ribbon, model.span.peek(), model.width);
  const cells = pieces.flatMap(({ tile, begin, end }) => {
    const first = (begin - tile.begin) / tile.cell;
    return Array.from({ length: (end - begin) / tile.cell }, (_, at) => ({ tile, cell: first + at }));
  });
  const here = cells.findIndex(({ tile, cell }) => time < tile.begin + (cell + 1) * tile.cell);
  const spot = cells[here];
  if (!spot) return null;
  let low = 0;
  const cause = stackOf(causes).find((each) => {
    low += shareAt(spot.tile, each, spot.cell);
    return low > 0 && low >= Math.min(height, 0.97);
  });
  if (cause === undefined) return null;
  const holds = (at: number) => {
    const each = cells[at];
    return each !== undefined && shareAt(each.tile, cause, each.cell) > 0;
  };
  let [first, last] = [here, here];
  while (holds(first - 1)) first -= 1;
  while (holds(last + 1)) last += 1;
  const begin = cells[first] as (typeof cells)[0];
  const end = cells[last] as (typeof cells)[0];
  return {
    ...{ ribbon, cause: causes[cause] as string },
    begin: begin.tile.begin + begin.cell * begin.tile.cell,
    end: end.tile.begin + (end.cell + 1) * end.tile.cell,
  };
}

/** The causes that the ribbons on the screen show, in the order of the stack. */
export function shownCauses(model: Model): string[] {
  const { causes } = model.tracks;
  const tiles = model.ribbons().flatMap((id) => model.tiles.peek(id, model.span.peek(), model.width));
  const isShown = (at: number) =>
    tiles.some(({ tile }) => tile.causes?.subarray(at * CELLS, (at + 1) * CELLS).some((share) => share > 0));
  return stackOf(causes)
    .filter(isShown)
    .map((at) => causes[at] as string);
}
