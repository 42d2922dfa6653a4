/**
 * One step of several ranks, or of two sessions, one above the other and aligned at its start: recordings of different
 * clocks can be compared step by step.
 */
import { computed, type Signal, signal, useSignalEffect } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { address, useResource } from "../api";
import { theme } from "../design/theme";
import type { LateRanks } from "../generated/reports";
import { evidenceInTimeline } from "../links";
import { linkTo, route, setParams } from "../router";
import { Loading, LongName } from "../ui/basics";
import { IconButton, SearchBox } from "../ui/controls";
import { Icon } from "../ui/icons";
import { useKeys } from "../ui/keys";
import { paint, painterOf, sceneOf } from "./frame";
import { type Drawn, LateLines } from "./LateLines";
import { type Item, isProjected, RIBBON, ROW } from "./layout";
import { heightOf, Model } from "./model";
import { Mouse } from "./mouse";
import { paintChosen, paintItems, paintRegion } from "./paint";
import { Legend } from "./Stage";
import { Tip } from "./Tip";
import { duration } from "./ticks";
import type { Span } from "./viewport";
import { Workbench } from "./Workbench";
import { Source, type Steps, type TrackInfo, type Tracks } from "./wire";

export interface Lane {
  readonly session: string;
  readonly host: string | null;
  readonly label: string;
  /** The timeline of this lane alone. */
  readonly href: (begin_ms: number, end_ms: number, why: string) => string;
}

/** What the lanes share: the window from the start of the step on, and the selection of one of them. */
class Shared {
  readonly drawn = signal<readonly Drawn[]>([]);
  /** Null for the whole step. */
  readonly span: Signal<Span | null> = signal(null);
  readonly active = signal<Model | null>(null);
  readonly whole = computed(() => {
    const longest = Math.max(1, ...this.drawn.value.map(({ length }) => length));
    return { begin: -0.02 * longest, end: 1.04 * longest };
  });
  readonly shown = computed(() => this.span.value ?? this.whole.value);

  /** Shows a window in all lanes, unless they show it already. */
  show(span: Span): void {
    const now = this.shown.peek();
    const near = 1e-6 * (now.end - now.begin);
    if (Math.abs(span.begin - now.begin) > near || Math.abs(span.end - now.end) > near) this.span.value = span;
  }

  /** Makes the lane whose event was chosen the only one with a selection. */
  activate(model: Model): void {
    const before = this.active.peek();
    if (before === model) return;
    this.active.value = model;
    void before?.choose(null);
    void before?.select(null);
  }
}

const AT_ONCE = 12;
const PS_PER_MS = 1e9;

interface StackedProps {
  lanes: readonly Lane[];
  own: boolean;
  title: string;
  /** The lanes are ranks of one session, of which one comes last. */
  areRanks: boolean;
}

export function Stacked({ lanes, own, title, areRanks }: StackedProps) {
  const [shown, setShown] = useState(AT_ONCE);
  const shared = useMemo(() => new Shared(), []);
  const search = useRef<HTMLInputElement>(null);
  const some = lanes.slice(0, shown);
  const { step = "", find = "" } = route.value.params;
  const late = useResource<LateRanks>(areRanks ? addressOfLate(some, step) : null);
  const found = late.state === "ready" ? late.data : null;
  const chosen = step || (found?.step ?? "").toString();
  const models = shared.drawn.value.map(({ model }) => model);
  useKeys(
    [
      { keys: "f", does: "Show the whole step", group: "Timeline", run: () => (shared.span.value = null) },
      { keys: "/", does: "Find events by name in all lanes", group: "Timeline", run: () => search.current?.select() },
      {
        keys: "Escape",
        does: "Clear the selection",
        group: "Timeline",
        run: () => void shared.active.peek()?.escape(),
      },
    ],
    [shared],
  );
  const active = shared.active.value;
  return (
    <div class="timeline stacked-lanes">
      <h1 class="offscreen">Timeline</h1>
      <div class="tl-toolbar row gap-l rigid">
        <strong>{title}</strong>
        <StepChoice step={chosen} steps={models[0]?.steps.value ?? null} />
        <SearchBox
          label="Find events by name"
          placeholder="Find events in all lanes ( / )"
          value={find}
          box={search}
          onChange={(text) => setParams({ find: text || null })}
        >
          <Found models={models} />
        </SearchBox>
        <span class="tl-space fills" />
        <button type="button" class="button" onClick={() => (shared.span.value = null)}>
          Fit
        </button>
        <a class="button quiet" href={linkTo("timeline", { stack: "off" })}>
          One timeline
        </a>
      </div>
      <div class="tl-notices flex gap-l minor">
        {found?.sentence && <strong>{`${found.sentence}.`}</strong>}
        <span class="muted">aligned at the start of the step</span>
      </div>
      <div class="stacked-scroll">
        {areRanks && late.state === "loading" ? (
          <Loading what="Comparing the ranks" />
        ) : (
          <div class="stacked-inner">
            {some.map((lane) => (
              <LaneRow
                key={`${lane.session} ${lane.host} ${chosen}`}
                {...{ lane, own, shared, find }}
                step={chosen}
                isLate={found?.host === lane.host && found !== null}
              />
            ))}
            {found && <LateLines late={found} drawn={shared.drawn.value} shown={shared.shown.value} />}
          </div>
        )}
        {lanes.length > shown && (
          <button type="button" class="button" onClick={() => setShown(shown + AT_ONCE)}>
            {`Show ${Math.min(AT_ONCE, lanes.length - shown)} more of ${lanes.length}`}
          </button>
        )}
      </div>
      <Legend models={models} />
      {active && <Workbench model={active} />}
    </div>
  );
}

function addressOfLate(lanes: readonly Lane[], step: string): string | null {
  const session = lanes[0]?.session;
  if (!session) return null;
  const query = new URLSearchParams(lanes.map(({ host }) => ["ranks", host ?? ""]));
  if (step) query.set("step", step);
  return address(`api/sessions/${encodeURIComponent(session)}/timeline/late?${query}`);
}

/** How many events of all lanes have the name that is looked for. */
function Found({ models }: { models: readonly Model[] }) {
  const found = models.flatMap(({ found: { value } }) => (value ? [value.total] : []));
  const wrong = models.find(({ searchProblem }) => searchProblem.value)?.searchProblem.value;
  if (wrong) return <span class="muted minor">{wrong}</span>;
  if (!found.length) return null;
  const total = found.reduce((sum, count) => sum + count, 0);
  return (
    <span class="muted minor oneline">{`${total.toLocaleString("en-US")} in ${found.filter(Boolean).length}`}</span>
  );
}

function StepChoice({ step, steps }: { step: string; steps: Steps | null }) {
  const numbers = steps?.number ?? [];
  const at = numbers.indexOf(Number(step));
  const to = (place: number) => setParams({ step: String(numbers[place]) }, "push");
  return (
    <span class="row gap-m">
      <label class="select">
        <span class="muted">Step</span>
        <input
          type="text"
          inputMode="numeric"
          size={6}
          placeholder="median"
          value={step}
          onChange={(event) => setParams({ step: event.currentTarget.value.trim() || null }, "push")}
        />
      </label>
      <IconButton icon="left" label="Previous step" disabled={at < 1} onClick={() => to(at - 1)} />
      <IconButton
        icon="right"
        label="Next step"
        disabled={at < 0 || at > numbers.length - 2}
        onClick={() => to(at + 1)}
      />
    </span>
  );
}

interface Loaded {
  readonly model: Model;
  readonly steps: Steps;
}

function useLane({ session, host }: Lane, own: boolean): Loaded | "failed" | null {
  const [loaded, setLoaded] = useState<Loaded | "failed" | null>(null);
  useEffect(() => {
    let isGone = false;
    const source = new Source(session, host, own);
    Promise.all([source.tracks(), source.steps()]).then(
      ([tracks, steps]) => !isGone && setLoaded({ model: new Model(source, tracks), steps }),
      () => !isGone && setLoaded("failed"),
    );
    return () => {
      isGone = true;
    };
  }, [session, host, own]);
  return loaded;
}

/** The place of the step with a number; without one, of the step of median length. */
export function placeOfStep(steps: Pick<Steps, "number" | "start_ps" | "end_ps">, wanted: string): number {
  const named = wanted === "" ? -1 : steps.number.indexOf(Number(wanted));
  if (named >= 0) return named;
  const length = (at: number) => (steps.end_ps[at] as number) - (steps.start_ps[at] as number);
  const order = steps.number.map((_, at) => at).sort((a, b) => length(a) - length(b));
  return order[Math.floor((order.length - 1) / 2)] ?? -1;
}

interface LaneRowProps {
  lane: Lane;
  own: boolean;
  step: string;
  find: string;
  isLate: boolean;
  shared: Shared;
}

function LaneRow(props: LaneRowProps) {
  const loaded = useLane(props.lane, props.own);
  const { label } = props.lane;
  if (loaded === "failed") return <p class="state">{`${label} could not be read.`}</p>;
  if (!loaded) return <Loading what={`Opening ${label}`} />;
  const at = placeOfStep(loaded.steps, props.step);
  if (at < 0) return <p class="state">{`${label} has no steps.`}</p>;
  return <LaneCanvas {...props} loaded={loaded} at={at} />;
}

function LaneCanvas({ lane, find, isLate, shared, loaded, at }: LaneRowProps & { loaded: Loaded; at: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { model, steps } = loaded;
  const begin = steps.start_ps[at] as number;
  const length = (steps.end_ps[at] as number) - begin;
  const items = useMemo(() => laneItems(model.tracks), [model]);
  const mouse = useRef<Mouse | null>(null);
  useLayoutEffect(() => {
    const element = canvas.current;
    if (!element) return undefined;
    const abort = new AbortController();
    const drawn = { host: lane.host, label: lane.label, model, items, canvas: element, begin, length };
    let pending = 0;
    const draw = () => {
      pending = 0;
      paintLane(element, model, items, mouse.current);
    };
    model.redraw = () => {
      if (!pending) pending = requestAnimationFrame(draw);
    };
    model.fixed.value = items;
    mouse.current = new Mouse(model, { overview: null, tracks: element, scroll: null, redraw: model.redraw });
    mouse.current.listen([element], abort.signal);
    shared.drawn.value = [...shared.drawn.peek(), drawn];
    const watch = new ResizeObserver(() => {
      shared.drawn.value = [...shared.drawn.peek()];
      model.redraw();
    });
    watch.observe(element);
    return () => {
      cancelAnimationFrame(pending);
      watch.disconnect();
      abort.abort();
      model.redraw = () => undefined;
      shared.drawn.value = shared.drawn.peek().filter((each) => each !== drawn);
      if (shared.active.peek() === model) shared.active.value = null;
    };
  }, [model, items, begin, length]);
  useSignalEffect(() => {
    const { begin: from, end } = shared.shown.value;
    model.span.value = { begin: begin + from, end: begin + end };
  });
  useSignalEffect(() => {
    const { begin: from, end } = model.span.value;
    shared.show({ begin: from - begin, end: end - begin });
  });
  useSignalEffect(() => {
    if (model.selected.value || model.region.value || model.run.value) shared.activate(model);
  });
  useSignalEffect(() => {
    const { span, arrived, selected, region, run, found, links } = model;
    for (const each of [span, arrived, selected, region, run, found, links, theme]) void each.value;
    model.redraw();
  });
  useEffect(() => void model.search(find, false, true), [model, find]);
  const why = `Step ${steps.number[at]} of ${lane.label}`;
  return (
    <section class="lane" aria-label={why}>
      <header>
        <LongName text={lane.label} />
        <strong>{duration(length)}</strong>
        <span class="muted">{`step ${steps.number[at]}`}</span>
        {isLate && <span class="badge minor warn">comes last</span>}
        <a href={lane.href(begin / PS_PER_MS, (begin + length) / PS_PER_MS, why)}>
          Open <Icon name="arrow" size={12} />
        </a>
      </header>
      <div class="lane-picture">
        {items.map((item) => item.track && <LaneName key={item.id} item={item} />)}
        <canvas class="tl-tracks" ref={canvas} style={{ height: `${heightOf(items)}px` }} />
        <Tip model={model} />
      </div>
    </section>
  );
}

function LaneName({ item }: { item: Item }) {
  const name = [item.track?.name, item.track?.detail].filter(Boolean).join(" ");
  return (
    <span class="lane-name cut muted minor" style={{ top: item.top }}>
      {name}
    </span>
  );
}

const ROWS_OF = { device: 3, host: 3 };
const TRACKS_OF_DEVICE = 2;

/** What a lane shows: streams of the busiest device and the main thread, and all on which ranks communicate. */
function laneItems(tracks: Tracks): readonly Item[] {
  const size = (list: readonly TrackInfo[]) => list.reduce((sum, track) => sum + track.events, 0);
  const devices = tracks.groups.filter((group) => group.kind === "device");
  const busiest = [...devices].sort((a, b) => size(b.tracks) - size(a.tracks))[0];
  const work = busiest?.tracks.filter((track) => !isProjected(track)) ?? [];
  const ranked = work.sort((a, b) => b.events - a.events);
  // What ranks exchange is what they are compared for: streams of collectives are never left out.
  const streams = [
    ...ranked.filter((track) => !track.communicates).slice(0, TRACKS_OF_DEVICE),
    ...ranked.filter((track) => track.communicates),
  ];
  const threads = tracks.groups.filter((group) => group.kind === "host").flatMap((group) => group.tracks);
  const main = threads.find((track) => track.main) ?? threads[0];
  const own = threads.filter((track) => track === main || track.communicates);
  const above = busiest ?? tracks.groups.find((group) => group.ribbon);
  const none = { depth: 0, collapsed: true, pinned: false, rows: 0, row: ROW, track: null, top: 0 };
  const ribbon = above?.ribbon ? [{ ...none, id: above.id, height: RIBBON, group: above }] : [];
  let top = ribbon.length * RIBBON;
  const rest = [
    ...streams.map((track) => [track, ROWS_OF.device] as const),
    ...own.map((track) => [track, ROWS_OF.host] as const),
  ].map(([track, most]) => {
    const rows = Math.min(track.rows, most);
    const item = { id: track.id, top, height: rows * ROW + 5, depth: 0, group: null, track, rows, row: ROW };
    top += item.height;
    return { ...item, collapsed: false, pinned: false };
  });
  return [...ribbon, ...rest];
}

function paintLane(canvas: HTMLCanvasElement, model: Model, items: readonly Item[], mouse: Mouse | null): void {
  const span = model.span.peek();
  if (!(span.end > span.begin)) return;
  model.width = Math.max(50, canvas.clientWidth);
  model.height = heightOf(items);
  const scene = sceneOf(model, painterOf(model), span, model.width);
  model.tiles.startFrame();
  paint(canvas, model.height, scene, (ctx) => {
    paintItems(ctx, scene, items, 0, model.height);
    const region = mouse?.band ?? model.region.peek();
    if (region) paintRegion(ctx, scene, region, model.height, true);
    paintChosen(ctx, scene, items, 0);
  });
  model.tiles.endFrame();
}

/** The lanes of all hosts of a session. */
export function rankLanes(session: string, hosts: readonly string[]): Lane[] {
  return hosts.map((host) => ({
    ...{ session, host, label: host },
    href: (begin, end, why) => `${evidenceInTimeline(begin, end, why, host)}&stack=off`,
  }));
}
