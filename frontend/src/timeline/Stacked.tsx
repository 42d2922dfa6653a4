/**
 * One step of several ranks, or of two sessions, one above the other and aligned at its start: recordings of different
 * clocks can be compared step by step.
 */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { theme } from "../design/theme";
import { evidenceInTimeline } from "../links";
import { linkTo, route, setParams } from "../router";
import { Loading, LongName } from "../ui/basics";
import { Icon } from "../ui/icons";
import { paint, painterOf, sceneOf } from "./frame";
import { type Item, isProjected, RIBBON, ROW } from "./layout";
import { Model } from "./model";
import { paintItems } from "./paint";
import { duration } from "./ticks";
import { type Span, zoomAt } from "./viewport";
import { Source, type Steps, type TrackInfo, type Tracks } from "./wire";

export interface Lane {
  readonly session: string;
  readonly host: string | null;
  readonly label: string;
  /** The timeline of this lane alone. */
  readonly href: (begin_ms: number, end_ms: number, why: string) => string;
}

const AT_ONCE = 12;
const PS_PER_MS = 1e9;

export function Stacked({ lanes, own, title }: { lanes: readonly Lane[]; own: boolean; title: string }) {
  const [shown, setShown] = useState(AT_ONCE);
  const [lengths, setLengths] = useState<Readonly<Record<string, number>>>({});
  const [span, setSpan] = useState<Span | null>(null);
  const longest = Math.max(0, ...Object.values(lengths));
  const whole = { begin: -0.02 * longest, end: 1.04 * longest };
  const step = route.value.params.step ?? "";
  const some = lanes.slice(0, shown);
  return (
    <div class="timeline stacked-lanes">
      <h1 class="offscreen">Timeline</h1>
      <div class="tl-toolbar row gap-l rigid">
        <strong>{title}</strong>
        <StepChoice step={step} />
        <span class="muted">aligned at the start of the step; scroll to zoom, drag to move</span>
        <span class="tl-space fills" />
        <button type="button" class="button" onClick={() => setSpan(null)}>
          Fit
        </button>
        <a class="button quiet" href={linkTo("timeline", { stack: "off" })}>
          One timeline
        </a>
      </div>
      <div class="stacked-scroll">
        {some.map((lane) => (
          <LaneRow
            key={`${lane.session} ${lane.host}`}
            lane={lane}
            own={own}
            step={step}
            span={span ?? whole}
            whole={whole}
            setSpan={setSpan}
            setLength={(length) => setLengths((known) => ({ ...known, [`${lane.session} ${lane.host}`]: length }))}
          />
        ))}
        {lanes.length > shown && (
          <button type="button" class="button" onClick={() => setShown(shown + AT_ONCE)}>
            {`Show ${Math.min(AT_ONCE, lanes.length - shown)} more of ${lanes.length}`}
          </button>
        )}
      </div>
    </div>
  );
}

function StepChoice({ step }: { step: string }) {
  return (
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
  span: Span;
  whole: Span;
  setSpan: (span: Span) => void;
  setLength: (length: number) => void;
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

function LaneCanvas({
  lane,
  span,
  whole,
  setSpan,
  setLength,
  loaded,
  at,
}: LaneRowProps & { loaded: Loaded; at: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const drag = useRef<{ x: number; span: Span } | null>(null);
  const { model, steps } = loaded;
  const begin = steps.start_ps[at] as number;
  const length = (steps.end_ps[at] as number) - begin;
  const items = useMemo(() => laneItems(model.tracks), [model]);
  const height = items.reduce((sum, item) => sum + item.height, 0);
  useEffect(() => setLength(length), [length]);
  useLayoutEffect(() => {
    const element = canvas.current;
    if (!element) return undefined;
    let pending = 0;
    const draw = () => {
      pending = 0;
      paintLane(element, { model, items, height, begin, span });
    };
    model.redraw = () => {
      if (!pending) pending = requestAnimationFrame(draw);
    };
    model.redraw();
    const watch = new ResizeObserver(() => model.redraw());
    watch.observe(element);
    return () => {
      cancelAnimationFrame(pending);
      watch.disconnect();
      model.redraw = () => undefined;
    };
  }, [model, items, height, begin, span, theme.value]);
  useLayoutEffect(() => {
    const element = canvas.current;
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      setSpan(zoomAt(span, element?.clientWidth ?? 1, event.offsetX, Math.exp(event.deltaY * 0.0016), whole));
    };
    element?.addEventListener("wheel", wheel, { passive: false });
    return () => element?.removeEventListener("wheel", wheel);
  }, [span, whole]);
  const why = `Step ${steps.number[at]} of ${lane.label}`;
  return (
    <section class="lane" aria-label={why}>
      <header>
        <LongName text={lane.label} />
        <strong>{duration(length)}</strong>
        <span class="muted">{`step ${steps.number[at]}`}</span>
        <a href={lane.href(begin / PS_PER_MS, (begin + length) / PS_PER_MS, why)}>
          Open <Icon name="arrow" size={12} />
        </a>
      </header>
      <div class="lane-picture">
        {items.map((item) => item.track && <LaneName key={item.id} item={item} />)}
        <canvas
          ref={canvas}
          style={{ height: `${height}px` }}
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            drag.current = { x: event.clientX, span };
          }}
          onPointerMove={(event) => {
            if (!drag.current) return;
            const { x, span: from } = drag.current;
            const by = ((x - event.clientX) / event.currentTarget.clientWidth) * (from.end - from.begin);
            setSpan({ begin: from.begin + by, end: from.end + by });
          }}
          onPointerUp={() => {
            drag.current = null;
          }}
        />
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

interface Picture {
  readonly model: Model;
  readonly items: readonly Item[];
  readonly height: number;
  readonly begin: number;
  readonly span: Span;
}

function paintLane(canvas: HTMLCanvasElement, { model, items, height, begin, span }: Picture): void {
  if (!(span.end > span.begin)) return;
  const shown = { begin: begin + span.begin, end: begin + span.end };
  const scene = sceneOf(model, painterOf(model), shown, Math.max(50, canvas.clientWidth));
  model.tiles.startFrame();
  paint(canvas, height, scene, (ctx) => paintItems(ctx, scene, items, 0, height));
  model.tiles.endFrame();
}

/** The lanes of all hosts of a session. */
export function rankLanes(session: string, hosts: readonly string[]): Lane[] {
  return hosts.map((host) => ({
    ...{ session, host, label: host },
    href: (begin, end, why) => `${evidenceInTimeline(begin, end, why, host)}&stack=off`,
  }));
}
