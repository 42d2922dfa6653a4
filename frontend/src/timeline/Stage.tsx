/** The tracks: labels on the left, the drawing on the right, and the mouse on it. */
import { effect, useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { colourOfCause } from "../design/causes";
import { palette, theme } from "../design/theme";
import { narrow } from "../table/narrow";
import { termText } from "../terms";
import { Icon } from "../ui/icons";
import { type Item, isProjected, isScoped, visibleItems } from "./layout";
import type { Model, Region } from "./model";
import { nearestActivity } from "./nearest";
import {
  OVERVIEW,
  overviewGroups,
  paintArrows,
  paintEvidence,
  paintItems,
  paintOverview,
  paintRegion,
  paintRuler,
  paintRun,
  paintSelected,
  paintStepLines,
  paintSteps,
  RULER,
  type Scene,
  STEP_BAND,
} from "./paint";
import { Painter } from "./paint-colours";
import { type Run, runAt, shownCauses } from "./ribbon";
import { sliceAt } from "./slices";
import { duration } from "./ticks";
import { around, clamp, pan, type Span, toTime, toX, zoomAt } from "./viewport";
import type { LaneSlices, TrackInfo } from "./wire";

const DRAG = 4;
const WHEEL_ZOOM = 0.0016;
const REACH = 3;

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

/** The stretch of a ribbon under the mouse. */
export function runUnder(model: Model): Run | null {
  const hover = model.hover.peek();
  const item = hover?.hit.item;
  if (!hover || !item?.group?.ribbon) return null;
  const height = 1 - (hover.y + model.scrollTop - item.top - 3) / (item.height - 7);
  return runAt(model, item.group.ribbon, hover.time, height);
}

function spanOf({ lane, at }: Under): Span {
  const time = (place: number) => lane.begin + lane.unit * place;
  return { begin: time(lane.start[at] as number), end: time(lane.end[at] as number) };
}

export function Stage({ model }: { model: Model }) {
  const overview = useRef<HTMLCanvasElement>(null);
  const head = useRef<HTMLCanvasElement>(null);
  const tracks = useRef<HTMLCanvasElement>(null);
  const scroll = useRef<HTMLDivElement>(null);
  const frame = useMemo(() => new Frame(model), [model]);
  const layout = model.layout.value;
  useLayoutEffect(() => frame.mount(overview.current, head.current, tracks.current, scroll.current), [frame]);
  useSignalEffect(() => {
    void model.layout.value;
    frame.redraw();
  });
  return (
    <div class={`tl-stage tl-tool-${model.tool.value}`}>
      <div class="tl-corner tl-corner-overview">
        <OverviewCaption model={model} />
      </div>
      <canvas class="tl-overview" ref={overview} style={{ height: OVERVIEW }} />
      <div class="tl-corner tl-corner-rows" title={aboutSteps(model)}>
        <span class="muted">Time</span>
        <span class="muted">Steps</span>
      </div>
      <canvas class="tl-head" ref={head} style={{ height: RULER + STEP_BAND + layout.pinnedHeight }} tabIndex={-1} />
      {layout.pinnedItems.length > 0 && (
        <div class="tl-pinned" style={{ top: OVERVIEW + RULER + STEP_BAND + 2, height: layout.pinnedHeight }}>
          {layout.pinnedItems.map((item) => (
            <Label key={item.id} item={item} model={model} />
          ))}
        </div>
      )}
      <Nearest model={model} />
      <div
        class="tl-scroll"
        ref={scroll}
        tabIndex={0}
        role="application"
        aria-label="Tracks. W and S zoom, A and D pan, arrows move the selection, question mark lists all keys."
      >
        <div class="tl-inner" style={{ height: layout.height }}>
          <canvas class="tl-tracks" ref={tracks} />
          <Labels model={model} />
        </div>
      </div>
      <Legend model={model} />
    </div>
  );
}

function aboutSteps(model: Model): string {
  const steps = model.steps.value;
  return steps ? [`Steps: ${steps.how}.`, steps.clocks].filter(Boolean).join("\n") : "";
}

/** Where a window is empty: the way to what is nearest, as far as the overview knows. */
function Nearest({ model }: { model: Model }) {
  const { begin, end } = model.span.value;
  void model.arrived.value; // more of the overview may have come
  const near = nearestActivity(model, begin, end);
  if (!near) return null;
  const go = (at: number) => {
    const half = (end - begin) / 2;
    model.show({ begin: at - half, end: at + half });
  };
  return (
    <div class="tl-nearest row wrap gap-m minor" role="status">
      <span>Nothing ran here.</span>
      {near.before !== null && (
        <button type="button" class="button" onClick={() => go(near.before as number)}>
          {`← ${duration(begin - near.before)} before`}
        </button>
      )}
      {near.after !== null && (
        <button type="button" class="button" onClick={() => go(near.after as number)}>
          {`${duration(near.after - end)} after →`}
        </button>
      )}
    </div>
  );
}

/** What the colours of the ribbons mean. */
function Legend({ model }: { model: Model }) {
  void model.arrived.value; // colours come with the tiles
  void model.span.value;
  const shown = shownCauses(model);
  if (!shown.length) return null;
  return (
    <ul class="tl-legend" aria-label="What the step waits for">
      {shown.map((cause) => (
        <li key={cause}>
          <span class="swatch" style={{ background: colourOfCause(cause, palette.value.surface) }} />
          {termText(cause)}
        </li>
      ))}
    </ul>
  );
}

function OverviewCaption({ model }: { model: Model }) {
  const shown = overviewGroups(model.tracks.groups);
  return (
    <>
      {shown.map((group) => (
        <span key={group.id} title={group.detail}>
          {group.name} <span class="muted">{group.lanes > 1 ? "at work" : "busy"}</span>
        </span>
      ))}
    </>
  );
}

// -- labels ---------------------------------------------------------------------------------------------------------

function Labels({ model }: { model: Model }) {
  const { items } = model.layout.value;
  return (
    <div class="tl-labels">
      {items.map((item) => (
        <Label key={item.id} item={item} model={model} />
      ))}
    </div>
  );
}

function Label({ item, model }: { item: Item; model: Model }) {
  const name = item.track?.name ?? item.group?.name ?? "";
  const detail = item.track?.detail || (item.group ? groupDetail(item) : "");
  const canCollapse = item.group ? !item.pinned : (item.track?.rows ?? 0) > 1;
  const title = [
    name,
    detail,
    item.track && item.track.line >= 0
      ? `${item.track.events.toLocaleString("en-US")} events in ${item.track.rows} rows`
      : "",
    item.track?.kind === "steps" ? (model.steps.value?.clocks ?? "") : "",
    item.track ? aboutProjected(item.track) : "",
    emptyOnes(item),
  ]
    .filter(Boolean)
    .join("\n");
  return (
    <div
      class={`tl-label ${item.group ? "tl-group" : ""}`}
      style={{ top: item.top, height: item.height, "--depth": item.depth } as Record<string, string | number>}
      title={title}
    >
      <button
        type="button"
        class="tl-fold"
        disabled={!canCollapse}
        aria-expanded={canCollapse ? !item.collapsed : undefined}
        aria-label={`${item.collapsed ? "Open" : "Collapse"} ${name}`}
        onClick={() => model.toggle("collapsed", item.id)}
      >
        {canCollapse && <Icon name={item.collapsed ? "right" : "down"} size={13} />}
      </button>
      <span class="cut fills">
        {narrow.value ? lastPart(name) : name}
        {detail && <span class="tl-detail"> {detail}</span>}
      </span>
      {item.track?.main && <span class="tl-badge">main</span>}
      <span class="tl-acts">
        <button
          type="button"
          aria-pressed={model.choices.value.pinned.includes(item.id)}
          aria-label={`Pin ${name}`}
          title="Pin to the top"
          onClick={() => model.togglePin(item.id)}
        >
          <svg width="13" height="13" viewBox="0 0 20 20" class="icon" aria-hidden="true">
            <path d="M7 3h6l-1 6 3 3H5l3-3zM10 12v5" />
          </svg>
        </button>
        {!item.pinned && (
          <button
            type="button"
            aria-label={`Hide ${name}`}
            title="Hide"
            onClick={() => model.toggle("hidden", item.id)}
          >
            <Icon name="close" size={12} />
          </button>
        )}
      </span>
    </div>
  );
}

/** `Memory in use: GPU_0` as `GPU_0`, and with a number alone as `Memory 0`: what tells rows apart. */
function lastPart(name: string): string {
  const part = /: (.+)$/.exec(name)?.[1] ?? name;
  return part.length > 2 ? part : `${name.split(" ")[0]} ${part}`;
}

function aboutProjected(track: TrackInfo): string {
  if (isScoped(track)) return "Named scopes of the compiled program, by the op that each kernel belongs to";
  return isProjected(track) ? "From the first to the last piece of work launched in each range" : "";
}

function groupDetail(item: Item): string {
  const group = item.group;
  if (!group || group.kind === "counters") return "";
  if (group.kind === "pool") return group.detail;
  return group.kind === "host" ? (group.lanes === 1 ? "1 thread" : `${group.lanes} threads`) : "";
}

function emptyOnes(item: Item): string {
  const empty = item.group?.empty ?? [];
  return empty.length ? `without events: ${empty.join(", ")}` : "";
}

// -- the picture ----------------------------------------------------------------------------------------------------

type Gesture =
  | { readonly kind: "pan"; readonly span: Span; readonly top: number }
  | { readonly kind: "pinch"; readonly span: Span; readonly apart: number; readonly middle: number }
  | { readonly kind: "region" | "zoom"; readonly from: number; readonly y: number }
  | { readonly kind: "window"; readonly offset: number }
  | { readonly kind: "brush"; readonly from: number };

/** The canvases of one timeline; draws at most once per frame and only after a change. */
class Frame {
  private pending = 0;
  private overview: HTMLCanvasElement | null = null;
  private head: HTMLCanvasElement | null = null;
  private tracks: HTMLCanvasElement | null = null;
  private scroll: HTMLElement | null = null;
  private gesture: Gesture | null = null;
  /** Where each finger or button is, by its id. */
  private readonly touching = new Map<number, number>();
  private downX = 0;
  private downY = 0;
  private moved = false;
  private band: Region | null = null;
  private painter: { readonly of: Painter; readonly theme: string } | null = null;

  constructor(private readonly model: Model) {}

  mount(
    overview: HTMLCanvasElement | null,
    head: HTMLCanvasElement | null,
    tracks: HTMLCanvasElement | null,
    scroll: HTMLElement | null,
  ): () => void {
    if (!overview || !head || !tracks || !scroll) return () => undefined;
    Object.assign(this, { overview, head, tracks, scroll });
    const { model } = this;
    model.redraw = () => this.redraw();
    model.scrollTo = (top) => scroll.scrollTo({ top });
    const abort = new AbortController();
    const { signal } = abort;
    const sizes = new ResizeObserver(() => this.resize());
    for (const element of [overview, head, scroll]) sizes.observe(element);
    scroll.addEventListener("scroll", () => this.scrolled(), { signal, passive: true });
    tracks.addEventListener("wheel", (event) => this.wheel(event), { signal, passive: false });
    head.addEventListener("wheel", (event) => this.wheel(event), { signal, passive: false });
    for (const canvas of [overview, head, tracks]) {
      canvas.addEventListener("pointerdown", (event) => this.down(event, canvas), { signal });
      canvas.addEventListener("pointermove", (event) => this.move(event, canvas), { signal });
      canvas.addEventListener("pointerup", (event) => this.up(event), { signal });
      canvas.addEventListener("pointercancel", () => this.cancel(), { signal });
      canvas.addEventListener("pointerleave", () => this.leave(), { signal });
    }
    tracks.addEventListener("dblclick", () => this.doubleClick(), { signal });
    const stopDrawing = effect(() => {
      for (const each of [
        model.span,
        model.selected,
        model.links,
        model.region,
        model.run,
        model.marks,
        model.found,
        model.steps,
        model.evidence,
        theme,
        palette,
      ])
        void each.value;
      this.redraw();
    });
    this.resize();
    return () => {
      stopDrawing();
      abort.abort();
      sizes.disconnect();
      cancelAnimationFrame(this.pending);
      model.redraw = () => undefined;
    };
  }

  redraw(): void {
    if (!this.pending) this.pending = requestAnimationFrame(() => this.draw());
  }

  private resize(): void {
    const { scroll, model, tracks } = this;
    if (!scroll || !tracks) return;
    const gutter = parseFloat(getComputedStyle(scroll).getPropertyValue("--labels")) || 240;
    model.resized(Math.max(50, scroll.clientWidth - gutter), scroll.clientHeight);
    tracks.style.width = `${model.width}px`;
    tracks.style.height = `${model.height}px`;
    for (const canvas of [this.overview, this.head]) if (canvas) canvas.style.width = `${model.width}px`;
    this.redraw();
  }

  private scrolled(): void {
    this.model.scrollTop = this.scroll?.scrollTop ?? 0;
    this.model.hover.value = null;
    this.redraw();
  }

  private draw(): void {
    this.pending = 0;
    const { model, overview, head, tracks } = this;
    if (!overview || !head || !tracks) return;
    const begun = performance.now();
    const scene = this.scene(model.span.peek());
    const layout = model.layout.peek();
    model.tiles.startFrame();
    paint(overview, OVERVIEW, scene, (ctx) =>
      paintOverview(
        ctx,
        this.scene(clamp({ begin: model.whole.begin, end: model.whole.end }, model.whole)),
        model.tracks.groups,
        scene.span,
      ),
    );
    paint(head, RULER + STEP_BAND + layout.pinnedHeight, scene, (ctx) => {
      paintRuler(ctx, scene);
      paintSteps(ctx, scene, RULER);
      ctx.translate(0, RULER + STEP_BAND);
      paintItems(ctx, scene, layout.pinnedItems, 0, layout.pinnedHeight);
      paintSelected(ctx, scene, layout.pinnedItems, 0);
      paintRun(ctx, scene, layout.pinnedItems, 0);
    });
    paint(tracks, model.height, scene, (ctx) => this.drawTracks(ctx, scene));
    model.tiles.endFrame();
    performance.measure("timeline frame", { start: begun });
  }

  private drawTracks(ctx: CanvasRenderingContext2D, scene: Scene): void {
    const { model } = this;
    const { items } = model.layout.peek();
    paintStepLines(ctx, scene, model.height);
    paintItems(ctx, scene, items, model.scrollTop, model.height);
    paintEvidence(ctx, scene, model.height);
    for (const mark of model.marks.peek()) paintRegion(ctx, scene, mark, model.height, false);
    const region = this.band ?? model.region.peek();
    if (region) paintRegion(ctx, scene, region, model.height, true);
    paintArrows(ctx, scene, items, model.scrollTop, this.ownArrows());
    paintSelected(ctx, scene, items, model.scrollTop);
    paintRun(ctx, scene, items, model.scrollTop);
  }

  private scene(span: Span): Scene {
    const { model } = this;
    if (this.painter?.theme !== theme.peek()) {
      const isDark = theme.peek() === "dark";
      this.painter = {
        theme: theme.peek(),
        of: new Painter(model.kinds, (type) => model.names.get(type), palette.peek().surface, isDark),
      };
    }
    return {
      model,
      painter: this.painter.of,
      palette: palette.peek(),
      isDark: theme.peek() === "dark",
      span,
      width: model.width,
    };
  }

  /** The arrows of the selected event. */
  private ownArrows() {
    const spot = this.model.selected.peek();
    const links = this.model.links.peek();
    if (!spot || !links) return [];
    const end = (each: typeof spot) =>
      [each.event, each.line, each.lane, each.start_ps, each.start_ps + each.duration_ps] as const;
    return [
      ...(links.cause ? [[end(links.cause), end(spot)] as const] : []),
      ...links.effects.map((effect) => [end(spot), end(effect)] as const),
    ];
  }

  // -- the mouse -------------------------------------------------------------------------------------------------

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const { model } = this;
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? model.height : 1;
    const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
    if (event.shiftKey) this.scroll?.scrollBy({ top: dy || dx });
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
    if (event.target === this.tracks) this.hover(event.offsetX, event.offsetY);
  }

  private down(event: PointerEvent, canvas: HTMLCanvasElement): void {
    if (event.button !== 0) return;
    const { model } = this;
    canvas.setPointerCapture(event.pointerId);
    this.scroll?.focus({ preventScroll: true });
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
    if (canvas === this.overview) this.gesture = this.overviewGesture(event.offsetX);
    else if (tool === "pan") this.gesture = { kind: "pan", span: model.span.peek(), top: model.scrollTop };
    else
      this.gesture = {
        kind: tool === "zoom" ? "zoom" : "region",
        from: model.timeAt(event.offsetX),
        y: tool === "select" ? event.offsetY : -1,
      };
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
      if (canvas === this.tracks) this.hover(event.offsetX, event.offsetY);
      return;
    }
    if (!this.moved) return;
    model.hover.value = null;
    if (gesture.kind === "pan") {
      model.show(pan(gesture.span, model.width, this.downX - event.offsetX, model.whole), "at once");
      if (canvas === this.tracks) this.scroll?.scrollTo({ top: gesture.top + this.downY - event.offsetY });
      return;
    }
    if (gesture.kind === "window" || gesture.kind === "brush") {
      this.moveOverview(gesture, event.offsetX);
      return;
    }
    const [a, b] = [gesture.from, model.timeAt(Math.max(0, Math.min(model.width, event.offsetX)))];
    this.band = {
      begin: Math.min(a, b),
      end: Math.max(a, b),
      tracks: gesture.y < 0 ? null : this.tracksBetween(gesture.y, event.offsetY),
    };
    this.redraw();
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
    this.redraw();
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
    if (found && track?.kind === "query") model.show(around(spanOf(found), model.whole));
    else if (found && isOne) void model.select(found.lane.event[found.at] as number, stays);
    else if (found) this.open(found);
    else if (hit?.item.group?.ribbon) {
      const run = runUnder(model);
      if (run) void model.chooseRun(run);
    } else if (hit?.item.group) model.toggle("collapsed", hit.item.id);
    else {
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
    this.redraw();
  }
}

/** Runs a painter on a canvas that is as sharp as the screen. */
function paint(
  canvas: HTMLCanvasElement,
  height: number,
  scene: Scene,
  draw: (ctx: CanvasRenderingContext2D) => void,
): void {
  const ratio = window.devicePixelRatio || 1;
  const [wide, tall] = [Math.round(scene.width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== tall) Object.assign(canvas, { width: wide, height: tall });
  const ctx = canvas.getContext("2d", { alpha: false });
  if (!ctx) return;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = scene.palette.surface;
  ctx.fillRect(0, 0, scene.width, height);
  draw(ctx);
}
