/** The canvases of a timeline: drawn at most once a frame, and only after a change. */
import { effect } from "@preact/signals";
import { palette, theme } from "../design/theme";
import type { Model } from "./model";
import { type Canvases, Mouse } from "./mouse";
import {
  OVERVIEW,
  paintArrows,
  paintChosen,
  paintEvidence,
  paintItems,
  paintMarks,
  paintOverview,
  paintRegion,
  paintRuler,
  paintStepLines,
  paintSteps,
  RULER,
  STEP_BAND,
} from "./paint";
import { Painter, type Scene } from "./paint-colours";
import { clamp, type Span } from "./viewport";

/** The canvases of one timeline; draws at most once per frame and only after a change. */
export class Frame implements Canvases {
  private pending = 0;
  overview: HTMLCanvasElement | null = null;
  private head: HTMLCanvasElement | null = null;
  tracks: HTMLCanvasElement | null = null;
  scroll: HTMLElement | null = null;
  private painter: { readonly of: Painter; readonly theme: string } | null = null;

  private readonly mouse: Mouse;

  constructor(private readonly model: Model) {
    this.mouse = new Mouse(model, this);
  }

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
    this.mouse.listen([overview, head, tracks], signal);
    const stopDrawing = effect(() => {
      const { span, selected, links, region, run, marks, found, steps, evidence } = model;
      const drawn = [span, selected, links, region, run, marks, found, steps, evidence, theme, palette];
      for (const each of drawn) void each.value;
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
      paintChosen(ctx, scene, layout.pinnedItems, 0);
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
    paintMarks(ctx, scene, model.height);
    const region = this.mouse.band ?? model.region.peek();
    if (region) paintRegion(ctx, scene, region, model.height, true);
    paintArrows(ctx, scene, items, model.scrollTop, this.ownArrows());
    paintChosen(ctx, scene, items, model.scrollTop);
  }

  private scene(span: Span): Scene {
    const { model } = this;
    if (this.painter?.theme !== theme.peek()) this.painter = { theme: theme.peek(), of: painterOf(model) };
    return sceneOf(model, this.painter.of, span, model.width);
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
}

/** A part of a timeline in the theme of the page. */
export function sceneOf(model: Model, painter: Painter, span: Span, width: number): Scene {
  return { model, painter, palette: palette.peek(), isDark: theme.peek() === "dark", span, width };
}

export function painterOf(model: Model): Painter {
  const isDark = theme.peek() === "dark";
  return new Painter(model.kinds, (type) => model.names.get(type), palette.peek().surface, isDark);
}

/** Runs a painter on a canvas that is as sharp as the screen. */
export function paint(
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
