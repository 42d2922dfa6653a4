/** The mouse and the fingers on a timeline: they move and zoom the window, and choose what lies under them. */
import { isProjected, isScoped, visibleItems } from "./layout";
import type { Model, Region } from "./model";
import { runAt } from "./ribbon";
import { nearestEdge, sliceAt } from "./slices";
import { around, clamp, pan, type Run, type Span, toTime, toX, zoomAt } from "./viewport";
import type { LaneSlices } from "./wire";

const DRAG = 4;
const WHEEL_ZOOM = 0.0016;
const REACH = 3;
/** A dragged edge moves to one that is so near, in pixels. */
const SNAP = 7;

/** Slices under the mouse. */
export interface Under {
  readonly lane: LaneSlices;
  readonly at: number;
}

export function under(model: Model): Under | null {
  const hover = model.hover.peek();
  if (!hover || hover.hit.lane < 0 || !hover.hit.item.track) return null;
  const { span, width } = { span: model.span.peek(), width: model.width };
  const reach = (REACH / width) * (span.end - span.begin);
  for (const { tile, begin, end } of model.tiles.pieces(`${hover.hit.item.id}.${hover.hit.lane}`, span, width)) {
    if (!tile.lane || hover.time < begin - reach || hover.time >= end + reach) continue;
    const at = sliceAt(tile.lane, hover.time, reach);
    if (at >= 0) return { lane: tile.lane, at };
  }
  return null;
}

/** The stretch of a ribbon under the mouse, or of what a device waits for in a gap of one of its streams. */
export function runUnder(model: Model): Run | null {
  const hover = model.hover.peek();
  const item = hover?.hit.item;
  if (!hover || !item) return null;
  if (!item.group?.ribbon) {
    const ribbon = item.track && !under(model) ? ribbonOfStream(model, item.id) : null;
    return ribbon ? runAt(model, ribbon, hover.time, 1) : null;
  }
  const height = 1 - (hover.y + model.scrollTop - item.top - 3) / (item.height - 7);
  return runAt(model, item.group.ribbon, hover.time, height);
}

/** The ribbon above a stream of a device; null for other tracks. */
function ribbonOfStream(model: Model, track: string): string | null {
  const group = model.tracks.groups.find(
    (each) => each.kind === "device" && each.tracks.some(({ id }) => id === track),
  );
  const kind = group?.tracks.find(({ id }) => id === track)?.kind;
  return kind === "stream" || kind === "ops" ? (group?.ribbon ?? null) : null;
}

/** The nearest edge of a slice in the row at a height, of a step or of a mark; the time itself without one. */
function snapped(model: Model, time: number, y: number): number {
  const span = model.span.peek();
  const reach = (SNAP / model.width) * (span.end - span.begin);
  const hit = model.hitAt(y);
  const pieces =
    hit?.item.track && hit.lane >= 0 ? model.tiles.pieces(`${hit.item.id}.${hit.lane}`, span, model.width) : [];
  const steps = model.steps.peek();
  const edges = [
    ...pieces.map(({ tile }) => (tile.lane ? nearestEdge(tile.lane, time, reach) : null)),
    ...(steps ? [...steps.start_ps, ...steps.end_ps] : []),
    ...model.marks.peek().flatMap((mark) => [mark.begin, mark.end]),
  ];
  let best = time;
  let distance = reach;
  for (const edge of edges)
    if (edge !== null && Math.abs(edge - time) < distance) {
      distance = Math.abs(edge - time);
      best = edge;
    }
  return best;
}

function spanOf({ lane, at }: Under): Span {
  const time = (place: number) => lane.begin + lane.unit * place;
  return { begin: time(lane.start[at] as number), end: time(lane.end[at] as number) };
}

type Gesture =
  | { readonly kind: "pan"; readonly span: Span; readonly top: number }
  | { readonly kind: "pinch"; readonly span: Span; readonly apart: number; readonly middle: number }
  | { readonly kind: "region" | "zoom"; readonly from: number; readonly y: number }
  | { readonly kind: "window"; readonly offset: number }
  | { readonly kind: "brush"; readonly from: number };

/** What the mouse is on. */
export interface Canvases {
  readonly overview: HTMLCanvasElement | null;
  readonly tracks: HTMLCanvasElement | null;
  readonly scroll: HTMLElement | null;
  redraw(): void;
}

export class Mouse {
  /** What is being dragged over. */
  band: Region | null = null;
  private gesture: Gesture | null = null;
  /** Where each finger or button is, by its id. */
  private readonly touching = new Map<number, number>();
  private downX = 0;
  private downY = 0;
  private moved = false;

  constructor(
    private readonly model: Model,
    private readonly on: Canvases,
  ) {}

  /** Follows the mouse on canvases: all but the overview zoom by the wheel, and the last is that of the tracks. */
  listen(canvases: readonly HTMLCanvasElement[], signal: AbortSignal): void {
    for (const canvas of canvases) {
      canvas.addEventListener("pointerdown", (event) => this.down(event, canvas), { signal });
      canvas.addEventListener("pointermove", (event) => this.move(event, canvas), { signal });
      canvas.addEventListener("pointerup", (event) => this.up(event), { signal });
      canvas.addEventListener("pointercancel", () => this.cancel(), { signal });
      canvas.addEventListener("pointerleave", () => this.leave(), { signal });
    }
    for (const canvas of canvases.filter((each) => each !== this.on.overview))
      canvas.addEventListener("wheel", (event) => this.wheel(event), { signal, passive: false });
    canvases.at(-1)?.addEventListener("dblclick", () => this.doubleClick(), { signal });
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const { model } = this;
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? model.height : 1;
    const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
    if (event.shiftKey) this.on.scroll?.scrollBy({ top: dy || dx });
    else if (Math.abs(dx) > Math.abs(dy)) model.show(pan(model.span.peek(), model.width, dx, model.whole), "at once");
    else
      model.show(
        zoomAt(
          model.span.peek(),
          model.width,
          event.offsetX,
          Math.exp(Math.max(-120, Math.min(120, dy)) * WHEEL_ZOOM * (event.ctrlKey ? 4 : 1)),
          model.whole,
        ),
        "at once",
      );
    if (event.target === this.on.tracks) this.hover(event.offsetX, event.offsetY);
  }

  private down(event: PointerEvent, canvas: HTMLCanvasElement): void {
    if (event.button !== 0) return;
    const { model } = this;
    canvas.setPointerCapture(event.pointerId);
    this.on.scroll?.focus({ preventScroll: true });
    this.touching.set(event.pointerId, event.offsetX);
    if (this.touching.size === 2) {
      const [a, b] = [...this.touching.values()] as [number, number];
      this.moved = true;
      this.band = null;
      this.gesture = {
        kind: "pinch",
        span: model.span.peek(),
        apart: Math.max(8, Math.abs(a - b)),
        middle: (a + b) / 2,
      };
      return;
    }
    [this.downX, this.downY, this.moved] = [event.offsetX, event.offsetY, false];
    const tool = event.shiftKey ? "measure" : model.tool.peek();
    if (canvas === this.on.overview) this.gesture = this.overviewGesture(event.offsetX);
    else if (tool === "pan") this.gesture = { kind: "pan", span: model.span.peek(), top: model.scrollTop };
    else
      this.gesture = {
        kind: tool === "zoom" ? "zoom" : "region",
        from: this.edgeAt(event, event.offsetX),
        y: tool === "select" ? event.offsetY : -1,
      };
  }

  /** Where what is dragged begins or ends: at an edge of what is drawn there, or, with Alt, just there. */
  private edgeAt(event: PointerEvent, x: number): number {
    const time = this.model.timeAt(x);
    return event.altKey ? time : snapped(this.model, time, event.offsetY);
  }

  private overviewGesture(x: number): Gesture {
    const { model } = this;
    const all = clamp({ begin: model.whole.begin, end: model.whole.end }, model.whole);
    const { begin, end } = model.span.peek();
    const [x0, x1] = [toX(all, model.width, begin), toX(all, model.width, end)];
    return x >= x0 - 3 && x <= x1 + 3
      ? { kind: "window", offset: toTime(all, model.width, x) - begin }
      : { kind: "brush", from: toTime(all, model.width, x) };
  }

  private move(event: PointerEvent, canvas: HTMLCanvasElement): void {
    const { model, gesture } = this;
    if (this.touching.has(event.pointerId)) this.touching.set(event.pointerId, event.offsetX);
    if (gesture?.kind === "pinch") {
      this.pinch(gesture);
      return;
    }
    if (Math.abs(event.offsetX - this.downX) > DRAG || Math.abs(event.offsetY - this.downY) > DRAG) this.moved = true;
    if (!gesture) {
      if (canvas === this.on.tracks) this.hover(event.offsetX, event.offsetY);
      return;
    }
    if (!this.moved) return;
    model.hover.value = null;
    if (gesture.kind === "pan") {
      model.show(pan(gesture.span, model.width, this.downX - event.offsetX, model.whole), "at once");
      if (canvas === this.on.tracks) this.on.scroll?.scrollTo({ top: gesture.top + this.downY - event.offsetY });
      return;
    }
    if (gesture.kind === "window" || gesture.kind === "brush") {
      this.moveOverview(gesture, event.offsetX);
      return;
    }
    const [a, b] = [gesture.from, this.edgeAt(event, Math.max(0, Math.min(model.width, event.offsetX)))];
    this.band = {
      begin: Math.min(a, b),
      end: Math.max(a, b),
      tracks: gesture.y < 0 ? null : this.tracksBetween(gesture.y, event.offsetY),
    };
    this.on.redraw();
  }

  /** Two fingers: what was below each of them stays there. */
  private pinch({ span, apart, middle }: Extract<Gesture, { kind: "pinch" }>): void {
    const { model } = this;
    if (this.touching.size < 2) return;
    const [a, b] = [...this.touching.values()] as [number, number];
    const zoomed = zoomAt(span, model.width, middle, apart / Math.max(8, Math.abs(a - b)), model.whole);
    model.show(pan(zoomed, model.width, middle - (a + b) / 2, model.whole), "at once");
  }

  private moveOverview(gesture: Gesture, x: number): void {
    const { model } = this;
    const all = clamp({ begin: model.whole.begin, end: model.whole.end }, model.whole);
    const time = toTime(all, model.width, Math.max(0, Math.min(model.width, x)));
    const { begin, end } = model.span.peek();
    if (gesture.kind === "window")
      model.show({ begin: time - gesture.offset, end: time - gesture.offset + end - begin }, "at once");
    else if (gesture.kind === "brush")
      model.show({ begin: Math.min(gesture.from, time), end: Math.max(gesture.from, time) }, "at once");
  }

  private tracksBetween(y0: number, y1: number): string[] {
    const top = Math.min(y0, y1) + this.model.scrollTop;
    const bottom = Math.max(y0, y1) + this.model.scrollTop;
    return visibleItems(this.model.layout.peek().items, top, Math.max(bottom, top + 1)).flatMap((item) => {
      if (item.track) return item.track.line >= 0 ? [item.id] : [];
      return item.collapsed && item.group?.kind !== "counters" ? [item.id] : [];
    });
  }

  private up(event: PointerEvent): void {
    const { gesture, band, model } = this;
    this.touching.delete(event.pointerId);
    this.gesture = null;
    this.band = null;
    if (!gesture) return;
    if (!this.moved) this.click(gesture, event.offsetX, event.offsetY);
    else if (gesture.kind === "region" && band) void model.choose(band);
    else if (gesture.kind === "zoom" && band) model.show(band);
    this.on.redraw();
  }

  private click(gesture: Gesture, x: number, y: number): void {
    const { model } = this;
    if (gesture.kind === "brush" || gesture.kind === "window") {
      const all = clamp({ begin: model.whole.begin, end: model.whole.end }, model.whole);
      const { begin, end } = model.span.peek();
      const time = toTime(all, model.width, x);
      if (gesture.kind === "brush") model.show({ begin: time - (end - begin) / 2, end: time + (end - begin) / 2 });
      return;
    }
    this.hover(x, y);
    const hit = model.hover.peek()?.hit;
    const found = under(model);
    const track = hit?.item.track;
    const stays = track ? isProjected(track) : false;
    const isOne = found && found.lane.count[found.at] === 1 && !(track && isScoped(track));
    const run = found ? null : runUnder(model);
    if (found && track?.kind === "query") model.show(around(spanOf(found), model.whole));
    else if (found && isOne) void model.select(found.lane.event[found.at] as number, stays);
    else if (found) this.open(found);
    else if (run) void model.chooseRun(run);
    else if (hit?.item.group) {
      if (!hit.item.group.ribbon) model.toggle("collapsed", hit.item.id);
    } else {
      void model.select(null);
      void model.choose(null);
    }
  }

  /** A click on a merged slice, or on a scope, shows what is in it. */
  private open({ lane, at }: Under): void {
    const { model } = this;
    const item = model.hover.peek()?.hit.item;
    const begin = lane.begin + (lane.start[at] as number) * lane.unit;
    const end = lane.begin + (lane.end[at] as number) * lane.unit;
    void model.choose({ begin, end: Math.max(end, begin + 1), tracks: item ? [item.id] : null });
  }

  private doubleClick(): void {
    const { model } = this;
    const found = under(model);
    if (!found) return;
    const { lane, at } = found;
    const begin = lane.begin + (lane.start[at] as number) * lane.unit;
    const end = lane.begin + (lane.end[at] as number) * lane.unit;
    const wide = Math.max(end - begin, 1000);
    model.show({ begin: begin - wide * 0.1, end: end + wide * 0.1 });
  }

  private hover(x: number, y: number): void {
    const { model } = this;
    const hit = model.hitAt(y);
    model.hover.value = hit ? { x, y, hit, time: model.timeAt(x) } : null;
  }

  private leave(): void {
    if (!this.gesture) this.model.hover.value = null;
  }

  private cancel(): void {
    this.touching.clear();
    this.gesture = null;
    this.band = null;
    this.on.redraw();
  }
}
