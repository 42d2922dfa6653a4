/** Draws the tracks, the ruler and the overview.  All sizes are CSS pixels; the caller has scaled the canvas. */
import { CATEGORY_COLOUR, mix } from "../design/colours";
import { counterText } from "../format";
import { COUNTER, GAP, type Item, visibleItems } from "./layout";
import type { ArrowPair, Model, Region } from "./model";
import { brief, cut } from "./names";
import type { Scene } from "./paint-colours";
import { paintRibbon } from "./ribbon";
import { firstEndingAfter } from "./slices";
import { NARROW, stripOf } from "./strip";
import { duration, ticksOf } from "./ticks";
import type { Piece } from "./tiles";
import { type Span, toX } from "./viewport";
import type { GroupInfo, LaneSlices, TrackInfo } from "./wire";

const FONT = '"Inter Variable", system-ui, sans-serif';
const LABEL_FONT = `500 11px ${FONT}`;
const LEAST_LABEL = 24;
export const RULER = 30;
export const STEP_BAND = 18;

// -- text -----------------------------------------------------------------------------------------------------------

const widths = new Map<string, number>();

function widthOf(ctx: CanvasRenderingContext2D, text: string): number {
  let width = widths.get(text);
  if (width === undefined) {
    width = ctx.measureText(text).width;
    if (widths.size > 20_000) widths.clear();
    widths.set(text, width);
  }
  return width;
}

/** A name that has room in a width, shortened if it must be; empty if nothing sensible has. */
function fitted(ctx: CanvasRenderingContext2D, name: string, room: number): string {
  if (widthOf(ctx, name) <= room) return name;
  const short = brief(name);
  const width = widthOf(ctx, short);
  if (width <= room) return short;
  const most = Math.floor((short.length * room) / width);
  const text = cut(short, most);
  return widthOf(ctx, text) <= room ? text : cut(short, most - 1);
}

// -- tracks ---------------------------------------------------------------------------------------------------------

/** Draws the items of a list that are between two heights, moved up by `offset`. */
export function paintItems(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  items: readonly Item[],
  offset: number,
  height: number,
): void {
  ctx.textBaseline = "middle";
  for (const item of visibleItems(items, offset, offset + height)) {
    const y = item.top - offset;
    if (item.group) paintGroup(ctx, scene, item.group, item, y);
    else if (item.track && item.track.line < 0) paintCounter(ctx, scene, item.track, y);
    else if (item.track) paintTrack(ctx, scene, item.track, item, y, height);
    ctx.fillStyle = scene.palette.line;
    ctx.fillRect(0, y + item.height - 1, scene.width, 1);
  }
}

function paintTrack(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  track: TrackInfo,
  item: Item,
  top: number,
  height: number,
): void {
  const { model, span, width } = scene;
  ctx.font = LABEL_FONT;
  for (let lane = 0; lane < item.rows; lane += 1) {
    const y = top + 2 + lane * item.row;
    if (y > height || y + item.row < 0) continue;
    let last = -1;
    for (const piece of model.tiles.pieces(`${track.id}.${lane}`, span, width))
      if (piece.tile.lane) last = paintLane(ctx, scene, piece, piece.tile.lane, { y, tall: item.row - 2 }, last);
  }
}

/**
 * Draws a piece of a row.  An event that reaches into the next piece is drawn whole by the first; the last one drawn
 * is returned, so that the next piece leaves it out.
 */
function paintLane(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  piece: Piece,
  lane: LaneSlices,
  { y, tall }: { readonly y: number; readonly tall: number },
  drawn: number,
): number {
  const { span, width, painter, model } = scene;
  const found = model.found.peek();
  const left = Math.max(piece.begin, span.begin);
  const right = Math.min(piece.end, span.end);
  const scale = width / (span.end - span.begin);
  const least = Math.max(0, toX(span, width, left));
  const most = Math.min(width, toX(span, width, right));
  const lastStart = (right - lane.begin) / lane.unit;
  const strip = stripOf(width);
  let style = "";
  for (let at = firstEndingAfter(lane, (left - lane.begin) / lane.unit - 1); at < lane.start.length; at += 1) {
    const start = lane.start[at] as number;
    if (start >= lastStart) break;
    const count = lane.count[at] as number;
    const event = count === 1 ? (lane.event[at] as number) : -1;
    if (event >= 0 && event === drawn) continue;
    drawn = event;
    const x0 = Math.max(event < 0 ? least : -20, (lane.begin + start * lane.unit - span.begin) * scale);
    const x1 = Math.min(
      event < 0 ? most : width + 20,
      (lane.begin + (lane.end[at] as number) * lane.unit - span.begin) * scale,
    );
    const wide = Math.max(x1 - x0 - (x1 - x0 > 3 ? 1 : 0), 1);
    const type = lane.type[at] as number;
    const extent = ((lane.end[at] as number) - start) * lane.unit;
    const busy = count === 1 ? 1 : Math.min(1, (lane.busy[at] as number) / Math.max(1, extent));
    const paint = painter.of(type, lane.kind[at] as number, busy);
    const isFaint = found?.fades && !(((found.types[type >> 3] ?? 0) >> (type & 7)) & 1);
    const fill = isFaint ? faint(paint.fill, scene) : paint.fill;
    if (wide < NARROW) {
      strip.add(x0, wide, fill);
      continue;
    }
    if (fill !== style) {
      ctx.fillStyle = fill;
      style = fill;
    }
    ctx.fillRect(x0, y, wide, tall);
    if (wide >= LEAST_LABEL) {
      paintLabel(
        ctx,
        scene,
        labelOf(scene, type, count),
        x0,
        wide,
        y + tall / 2,
        isFaint ? scene.palette.muted : paint.ink,
      );
      style = "";
    }
  }
  strip.drawTo(ctx, y, tall);
  return drawn;
}

const faints = new Map<string, string>();

function faint(fill: string, scene: Scene): string {
  const id = `${fill}${scene.isDark}`;
  let colour = faints.get(id);
  if (!colour) {
    colour = mix(fill, scene.palette.surface, 0.8);
    if (faints.size > 5000) faints.clear();
    faints.set(id, colour);
  }
  return colour;
}

function labelOf(scene: Scene, type: number, count: number): string {
  if (count > 1) return `×${count.toLocaleString("en-US")}`;
  return scene.model.names.get(type) ?? "";
}

function paintLabel(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  text: string,
  x: number,
  wide: number,
  middle: number,
  ink: string,
): void {
  const from = Math.max(x, 0) + 5;
  const room = Math.min(x + wide, scene.width) - from - 4;
  if (!text || room < LEAST_LABEL - 10) return;
  const shown = fitted(ctx, text, room);
  if (!shown) return;
  ctx.fillStyle = ink;
  ctx.fillText(shown, from, middle + 0.5);
}

// -- groups and counters --------------------------------------------------------------------------------------------

function groupColour(group: GroupInfo): string {
  return CATEGORY_COLOUR[
    group.kind === "device"
      ? "device_compute"
      : group.kind === "host" || group.kind === "pool"
        ? "host_compute"
        : "other"
  ];
}

function paintGroup(ctx: CanvasRenderingContext2D, scene: Scene, group: GroupInfo, item: Item, y: number): void {
  ctx.fillStyle = scene.isDark ? "rgb(255 255 255 / 2.5%)" : "rgb(20 24 31 / 2.2%)";
  ctx.fillRect(0, y, scene.width, item.height);
  if (group.kind === "counters" || group.kind === "query") return;
  ctx.font = LABEL_FONT;
  if (group.ribbon && paintRibbon(ctx, scene, group.ribbon, y + 3, item.height - 7, true)) return;
  const pieces = scene.model.tiles.pieces(group.id, scene.span, scene.width);
  const peak = peakOf(scene.model, group, pieces);
  paintLoad(ctx, scene, pieces, peak, y + 4, item.height - 6, groupColour(group), item.collapsed ? 0.75 : 0.4);
  if (!group.ribbon) return;
  ctx.fillStyle = scene.palette.text;
  ctx.fillText(COMES, 6, y + item.height / 2);
}

/** Until the account is there, a device's row shows how busy it is. */
const COMES = "Working out what the step waits for …";

/** The most lanes that were seen at work at once: the height of the chart. */
function peakOf(model: Model, group: GroupInfo, pieces: readonly Piece[]): number {
  let peak = Math.max(model.peaks.get(group.id) ?? 0, 1);
  if (group.lanes > 1)
    for (const { tile } of pieces) for (const value of tile.load ?? []) if (value > peak) peak = value;
  model.peaks.set(group.id, peak);
  return peak;
}

function paintLoad(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  pieces: readonly Piece[],
  peak: number,
  y: number,
  height: number,
  colour: string,
  strength: number,
): void {
  const { span, width } = scene;
  ctx.fillStyle = mix(colour, scene.palette.surface, 1 - strength);
  ctx.beginPath();
  for (const { tile, begin, end } of pieces) {
    if (!tile.load) continue;
    const first = Math.max(0, Math.floor((Math.max(begin, span.begin) - tile.begin) / tile.cell));
    const last = Math.min(tile.load.length, Math.ceil((Math.min(end, span.end) - tile.begin) / tile.cell));
    const left = Math.round(Math.max(toX(span, width, begin), -2));
    const right = Math.round(Math.min(toX(span, width, end), width + 2));
    ctx.moveTo(Math.max(left, toX(span, width, tile.begin + first * tile.cell)), y + height);
    for (let cell = first; cell < last; cell += 1) {
      const top = y + height - Math.min(1, (tile.load[cell] as number) / peak) * height;
      ctx.lineTo(Math.max(left, toX(span, width, tile.begin + cell * tile.cell)), top);
      ctx.lineTo(Math.min(right, toX(span, width, tile.begin + (cell + 1) * tile.cell)), top);
    }
    ctx.lineTo(Math.min(right, toX(span, width, tile.begin + last * tile.cell)), y + height);
  }
  ctx.fill();
}

function paintCounter(ctx: CanvasRenderingContext2D, scene: Scene, track: TrackInfo, top: number): void {
  const { span, width, model } = scene;
  const low = Math.min(0, track.lowest ?? 0);
  const high = Math.max(track.highest ?? 1, low + 1e-9);
  const bottom = top + COUNTER - GAP;
  const tall = COUNTER - GAP - 15; // the highest value is written above
  const yOf = (value: number) => bottom - ((value - low) / (high - low)) * tall;
  const line = CATEGORY_COLOUR.host_compute;
  ctx.fillStyle = mix(line, scene.palette.surface, 0.72);
  ctx.strokeStyle = scene.isDark ? line : mix(line, "#000000", 0.25);
  ctx.lineWidth = 1.25;
  for (const { tile, begin, end } of model.tiles.pieces(track.id, span, width)) {
    const values = tile.counter;
    if (!values?.cell.length) continue;
    // Whole pixels, or a seam would show where tiles meet.
    const left = Math.round(Math.max(0, toX(span, width, begin)));
    const right = Math.round(Math.min(width, toX(span, width, end)));
    const shape = new Path2D();
    const edge = new Path2D();
    let last: number | null = null;
    let x = left;
    for (let at = 0; at < values.cell.length; at += 1) {
      const cell = values.cell[at] as number;
      const here = Math.min(right, Math.max(left, cell < 0 ? left : toX(span, width, values.begin + cell * tile.cell)));
      if (last !== null && here > x) shape.rect(x, yOf(last), here - x, bottom - yOf(last));
      if (last === null) edge.moveTo(here, yOf(values.low[at] as number));
      else edge.lineTo(here, yOf(last));
      edge.lineTo(here, yOf(values.low[at] as number));
      edge.lineTo(here, yOf(values.high[at] as number));
      edge.lineTo(here, yOf(values.last[at] as number));
      last = values.last[at] as number;
      x = here;
    }
    if (last !== null) {
      shape.rect(x, yOf(last), right - x, bottom - yOf(last));
      edge.lineTo(right, yOf(last));
    }
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, right - left, COUNTER);
    ctx.clip();
    ctx.fill(shape);
    ctx.stroke(edge);
    ctx.restore();
  }
  ctx.font = `500 10px ${FONT}`;
  ctx.fillStyle = scene.palette.muted;
  ctx.textAlign = "right";
  ctx.fillText(counterText(track.highest ?? high, track.unit), width - 6, top + 8);
  ctx.textAlign = "left";
}

// -- over the tracks ------------------------------------------------------------------------------------------------

/** Thin lines where steps begin, behind everything. */
export function paintStepLines(ctx: CanvasRenderingContext2D, scene: Scene, height: number): void {
  const steps = scene.model.steps.peek();
  if (!steps) return;
  ctx.fillStyle = scene.isDark ? "rgb(255 255 255 / 7%)" : "rgb(20 24 31 / 7%)";
  let last = -10;
  for (const edges of [steps.start_ps, steps.end_ps.slice(-1)]) {
    for (const time of edges) {
      const x = Math.round(toX(scene.span, scene.width, time));
      if (x < 0 || x > scene.width || x - last < 4) continue;
      ctx.fillRect(x, 0, 1, height);
      last = x;
    }
  }
}

export function paintRegion(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  region: Region | Span,
  height: number,
  withLabel: boolean,
): void {
  const x0 = toX(scene.span, scene.width, region.begin);
  const x1 = toX(scene.span, scene.width, region.end);
  ctx.fillStyle = scene.isDark ? "rgb(130 170 255 / 13%)" : "rgb(31 85 208 / 9%)";
  ctx.fillRect(x0, 0, x1 - x0, height);
  ctx.fillStyle = scene.palette.accent;
  ctx.fillRect(Math.round(x0), 0, 1, height);
  ctx.fillRect(Math.round(x1), 0, 1, height);
  if (withLabel) paintMeasure(ctx, scene, x0, x1, duration(region.end - region.begin));
}

/** The marks, and from the start of each to the next how long it is. */
export function paintMarks(ctx: CanvasRenderingContext2D, scene: Scene, height: number): void {
  const marks = scene.model.marks.peek();
  const starts = marks.map((mark) => mark.begin).sort((a, b) => a - b);
  for (const mark of marks) paintRegion(ctx, scene, mark, height, false);
  for (let at = 1; at < starts.length; at += 1) {
    const [from, to] = [starts[at - 1] as number, starts[at] as number];
    const [x0, x1] = [toX(scene.span, scene.width, from), toX(scene.span, scene.width, to)];
    if (x1 > 0 && x0 < scene.width) paintMeasure(ctx, scene, x0, x1, duration(to - from));
  }
}

const EVIDENCE = "#e5a100";

/** What a page points to: a band in a colour of its own, with its name. */
export function paintEvidence(ctx: CanvasRenderingContext2D, scene: Scene, height: number): void {
  const evidence = scene.model.evidence.peek();
  if (!evidence) return;
  const x0 = Math.round(toX(scene.span, scene.width, evidence.begin));
  const x1 = Math.max(x0 + 2, Math.round(toX(scene.span, scene.width, evidence.end)));
  ctx.fillStyle = scene.isDark ? "rgb(229 161 0 / 16%)" : "rgb(229 161 0 / 17%)";
  ctx.fillRect(x0, 0, x1 - x0, height);
  ctx.fillStyle = EVIDENCE;
  ctx.fillRect(x0, 0, 2, height);
  ctx.fillRect(x1 - 2, 0, 2, height);
  ctx.fillRect(x0, 0, x1 - x0, 3);
}

function paintMeasure(ctx: CanvasRenderingContext2D, scene: Scene, x0: number, x1: number, text: string): void {
  ctx.font = `600 12px ${FONT}`;
  ctx.textBaseline = "middle";
  const wide = ctx.measureText(text).width + 16;
  const middle = Math.min(
    scene.width - wide / 2 - 4,
    Math.max(wide / 2 + 4, (Math.max(x0, 0) + Math.min(x1, scene.width)) / 2),
  );
  ctx.fillStyle = scene.palette.accent;
  ctx.beginPath();
  ctx.roundRect(middle - wide / 2, 6, wide, 22, 11);
  ctx.fill();
  ctx.fillStyle = scene.isDark ? "#0d1117" : "#ffffff";
  ctx.textAlign = "center";
  ctx.fillText(text, middle, 17.5);
  ctx.textAlign = "left";
}

/** The middle of an event's row, and its height; null where it is not on the page. */
function rowOf(items: readonly Item[], offset: number, line: number, lane: number): { y: number; tall: number } | null {
  const item = items.find((each) => each.track?.line === line);
  if (!item || lane < 0) return null;
  return { y: item.top - offset + 2 + Math.min(lane, item.rows - 1) * item.row + (item.row - 2) / 2, tall: item.row };
}

/** The outlines of the selected event and of the chosen stretch of a ribbon. */
export function paintChosen(ctx: CanvasRenderingContext2D, scene: Scene, items: readonly Item[], offset: number): void {
  const [spot, run] = [scene.model.selected.peek(), scene.model.run.peek()];
  const row = spot && rowOf(items, offset, spot.line, spot.lane);
  if (spot && row) {
    const span = { begin: spot.start_ps, end: spot.start_ps + spot.duration_ps };
    outline(ctx, scene, span, row.y - row.tall / 2 + 1, row.tall - 2);
  }
  const item = run && items.find((each) => each.group?.ribbon === run.ribbon);
  if (run && item) outline(ctx, scene, run, item.top - offset + 2, item.height - 5);
}

function outline(ctx: CanvasRenderingContext2D, scene: Scene, { begin, end }: Span, y: number, tall: number): void {
  const x0 = Math.max(-4, toX(scene.span, scene.width, begin));
  const wide = Math.max(3, Math.min(scene.width + 4, toX(scene.span, scene.width, end)) - x0 - 1);
  ctx.lineWidth = 2;
  ctx.strokeStyle = scene.palette.surface;
  ctx.strokeRect(x0 - 0.5, y - 0.5, wide + 1, tall + 1);
  ctx.strokeStyle = scene.isDark ? "#ffffff" : "#10141b";
  ctx.strokeRect(x0, y, wide, tall);
}

/** Arrows that begin and end in the same few pixels look like one, and many of them like a blot. */
const APART = 8;

/** Of arrows that lie side by side the first. */
function apart(scene: Scene, pairs: readonly ArrowPair[]): readonly ArrowPair[] {
  const seen = new Set<string>();
  const place = (time: number) => Math.round(toX(scene.span, scene.width, time) / APART);
  return pairs.filter(([from, to]) => {
    const key = [from[1], from[2], to[1], to[2], place(from[3]), place(to[3])].join();
    return !seen.has(key) && seen.add(key);
  });
}

/** Arrows from causes to effects. */
export function paintArrows(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  items: readonly Item[],
  offset: number,
  pairs: readonly ArrowPair[],
): void {
  ctx.lineWidth = 1.75;
  ctx.strokeStyle = ctx.fillStyle = scene.palette.accent;
  for (const [from, to] of apart(scene, pairs)) {
    const y0 = rowOf(items, offset, from[1], from[2])?.y;
    const y1 = rowOf(items, offset, to[1], to[2])?.y;
    if (y0 === undefined || y1 === undefined) continue;
    const start = from[4] <= to[3] ? from[4] : from[3];
    const x0 = toX(scene.span, scene.width, start);
    const x1 = toX(scene.span, scene.width, to[3]);
    if (Math.max(x0, x1) < -200 || Math.min(x0, x1) > scene.width + 200) continue;
    const bend = Math.min(120, Math.max(18, Math.abs(x1 - x0) / 2));
    ctx.beginPath();
    ctx.moveTo(x0, y0);
    ctx.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5, y1);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.lineTo(x1 - 6, y1 - 3.5);
    ctx.lineTo(x1 - 6, y1 + 3.5);
    ctx.fill();
  }
}

// -- the ruler ------------------------------------------------------------------------------------------------------

export function paintRuler(ctx: CanvasRenderingContext2D, scene: Scene): void {
  const { span, width, palette } = scene;
  const { ticks, step, minor } = ticksOf(span, width);
  ctx.textBaseline = "middle";
  ctx.font = `450 11px ${FONT}`;
  ctx.fillStyle = palette.strong;
  const small = step / minor;
  for (let n = Math.ceil(span.begin / small); n * small <= span.end; n += 1)
    ctx.fillRect(Math.round(toX(span, width, n * small)), RULER - 4, 1, 4);
  for (const { time, label } of ticks) {
    const x = Math.round(toX(span, width, time));
    ctx.fillStyle = palette.strong;
    ctx.fillRect(x, RULER - 9, 1, 9);
    if (x + 4 + ctx.measureText(label).width > width) continue; // half a time is a wrong one
    ctx.fillStyle = palette.muted;
    ctx.fillText(label, x + 4, RULER / 2 - 2);
  }
}

/** The steps as a band below the ruler. */
export function paintSteps(ctx: CanvasRenderingContext2D, scene: Scene, y: number): void {
  const { span, width, palette, model } = scene;
  const steps = model.steps.peek();
  if (!steps) return;
  ctx.font = `500 10.5px ${FONT}`;
  ctx.textBaseline = "middle";
  let lastX = -10;
  for (let at = 0; at < steps.start_ps.length; at += 1) {
    const x0 = Math.max(-2, toX(span, width, steps.start_ps[at] as number));
    const x1 = Math.min(width + 2, toX(span, width, steps.end_ps[at] as number));
    if (x1 < 0 || x0 > width || (x1 - x0 < 3 && x0 - lastX < 3)) continue;
    lastX = x0;
    ctx.fillStyle = mix(palette.accent, palette.surface, at % 2 ? 0.8 : 0.88);
    ctx.beginPath();
    ctx.roundRect(x0 + 0.5, y + 1, Math.max(1, x1 - x0 - 1), STEP_BAND - 3, 3);
    ctx.fill();
    const left = Math.max(x0, 0);
    const room = Math.min(x1, width) - left - 8;
    const name =
      steps.source === "none"
        ? "whole capture"
        : /^\d+$/.test(steps.name[at] as string)
          ? `step ${steps.name[at]}`
          : (steps.name[at] as string);
    const text = room > 12 ? (room < ctx.measureText(name).width ? String(steps.number[at]) : name) : "";
    if (text && ctx.measureText(text).width <= room) {
      ctx.fillStyle = palette.text;
      ctx.fillText(text, left + 5, y + STEP_BAND / 2 - 0.5);
    }
  }
}

// -- the overview ---------------------------------------------------------------------------------------------------

export const OVERVIEW = 62;

/** What the overview shows: the two devices with most events, and the host. */
export function overviewGroups(groups: readonly GroupInfo[]): readonly GroupInfo[] {
  const size = (group: GroupInfo) => group.tracks.reduce((sum, track) => sum + track.events, 0);
  const devices = groups.filter((group) => group.kind === "device");
  const busiest = [...devices].sort((a, b) => size(b) - size(a)).slice(0, 2);
  return groups.filter((group) => busiest.includes(group) || group.kind === "host").slice(0, 3);
}

/** The whole trace: how busy each device and the host are, the steps, what was found, and the window as a frame. */
export function paintOverview(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  groups: readonly GroupInfo[],
  window: Span,
): void {
  const { span, width, palette, model } = scene;
  const shown = overviewGroups(groups);
  const tall = (OVERVIEW - 14) / Math.max(1, shown.length);
  shown.forEach((group, at) => {
    if (group.ribbon && paintRibbon(ctx, scene, group.ribbon, 3 + at * tall, tall - 2, false)) return;
    const pieces = model.tiles.pieces(group.id, span, width);
    paintLoad(ctx, scene, pieces, peakOf(model, group, pieces), 3 + at * tall, tall - 2, groupColour(group), 0.8);
  });
  const steps = model.steps.peek();
  if (steps && steps.source !== "none") {
    ctx.fillStyle = palette.muted;
    let last = -10;
    for (const time of steps.start_ps) {
      const x = Math.round(toX(span, width, time));
      if (x - last < 3) continue;
      ctx.fillRect(x, OVERVIEW - 9, 1, 6);
      last = x;
    }
  }
  paintFound(ctx, scene);
  const x0 = toX(span, width, window.begin);
  const x1 = Math.max(x0 + 2, toX(span, width, window.end));
  ctx.fillStyle = scene.isDark ? "rgb(13 17 23 / 62%)" : "rgb(245 246 248 / 72%)";
  ctx.fillRect(0, 0, x0, OVERVIEW);
  ctx.fillRect(x1, 0, width - x1, OVERVIEW);
  ctx.lineWidth = 1.5;
  ctx.strokeStyle = palette.accent;
  ctx.beginPath();
  ctx.roundRect(x0 + 0.75, 0.75, Math.max(2, x1 - x0 - 1.5), OVERVIEW - 1.5, 3);
  ctx.stroke();
}

function paintFound(ctx: CanvasRenderingContext2D, scene: Scene): void {
  const found = scene.model.found.peek();
  if (!found?.total) return;
  const { whole } = scene.model;
  const most = Math.max(...found.bins, 1);
  const wide = Math.max(
    1.5,
    toX(scene.span, scene.width, whole.begin + (whole.end - whole.begin) / found.bins.length) -
      toX(scene.span, scene.width, whole.begin),
  );
  ctx.fillStyle = scene.palette.accent;
  found.bins.forEach((count, at) => {
    if (!count) return;
    const x = toX(scene.span, scene.width, whole.begin + ((whole.end - whole.begin) * at) / found.bins.length);
    const tall = 4 + 10 * Math.sqrt(count / most);
    ctx.fillRect(x, OVERVIEW - tall, wide, tall);
  });
}
