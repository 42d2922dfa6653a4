/** The timeline of one host: everything between the page's address and the server's routes. */

import { useSignalEffect } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../api";
import { otherName } from "../frame/ComparePicker";
import { evidenceInTimeline } from "../links";
import { linkTo, route, setParams } from "../router";
import {
  fact,
  session as openSession,
  other,
  otherId,
  otherSteps,
  sessionId,
  sessionInfo,
  shownHost,
  steps,
} from "../session";
import { remembered } from "../storage";
import { toolEntry } from "../tools";
import { Code, Failed, Loading, sentence } from "../ui/basics";
import { IconButton } from "../ui/controls";
import { type Binding, useKeys } from "../ui/keys";
import { type Address, evidenceOf, fromAddress, toAddress } from "./address";
import { Model, TOOLS } from "./model";
import { askTracks } from "./query";
import { type Lane, rankLanes, Stacked } from "./Stacked";
import { Stage } from "./Stage";
import { Tip } from "./Tip";
import { TOOL_TEXT, Toolbar } from "./Toolbar";
import { duration } from "./ticks";
import { around } from "./viewport";
import { setTab, Workbench } from "./Workbench";
import { Source } from "./wire";

/** What the page hands to the timeline; everything else lives in the address (see `route` in ../router). */
export interface TimelineProps {
  session: string;
  host: string | null;
  /** Who answers, where it is not the page's server; it has no files to send and no SQL. */
  sourceOf?: ((own: boolean) => Source) | undefined;
}

export function Timeline({ session, host, sourceOf }: TimelineProps) {
  const hosts = openSession.value?.hosts.filter((each) => !each.error).map((each) => each.name) ?? [];
  const shown = host ?? shownHost();
  const own = isOwnCode();
  const { stack } = route.value.params;
  if (stack !== "off" && isOtherOpening()) return <Loading what={`Opening ${otherName()}`} />;
  const lanes =
    comparedLanes(session, shown) ?? (stack === "ranks" && hosts.length > 1 ? rankLanes(session, hosts) : null);
  if (lanes && stack !== "off")
    return (
      <Stacked
        lanes={lanes}
        own={own}
        title={otherId.value ? "A step of each session" : `${hosts.length} ranks`}
        areRanks={!otherId.value}
      />
    );
  return <OfHost key={`${session} ${shown} ${own}`} session={session} host={shown} own={own} sourceOf={sourceOf} />;
}

/** Whether calls of libraries are folded: as the address says, else as the reader last chose, else yes. */
export function isOwnCode(): boolean {
  const { code } = route.value.params;
  return code ? code === "own" : remembered("ownCode") !== false;
}

function isOtherOpening(): boolean {
  const now = other.value;
  return otherId.value !== null && now !== null && !now.error && (!now.state || now.state.state === "loading");
}

/** A step of the open session and one of what it is compared with; null without a comparison. */
function comparedLanes(session: string, shown: string | null): Lane[] | null {
  const id = otherId.value;
  const theirs = other.value?.state;
  if (!id || theirs?.state !== "ready") return null;
  const there = theirs.hosts.find((each) => each.name === shown)?.name ?? theirs.hosts[0]?.name ?? null;
  const away = { session: id, with: session, steps: otherSteps.value, withSteps: steps.value };
  return [
    {
      session: id,
      host: there,
      label: `before: ${otherName()}`,
      href: () => linkTo("timeline", { ...away, stack: "off" }),
    },
    {
      ...{ session, host: shown, label: `after: ${sessionInfo.value?.run ?? "this session"}` },
      href: (begin, end, why) => `${evidenceInTimeline(begin, end, why, shown)}&stack=off`,
    },
  ];
}

type State = { readonly model: Model } | { readonly error: ApiError } | null;

function OfHost({ session, host, own, sourceOf }: TimelineProps & { own: boolean }) {
  const [state, setState] = useState<State>(null);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    let isGone = false;
    const source = sourceOf?.(own) ?? new Source(session, host, own);
    source.tracks().then(
      (tracks) => !isGone && setState({ model: new Model(source, tracks) }),
      (error: unknown) => !isGone && setState({ error: asApiError(error) }),
    );
    return () => {
      isGone = true;
    };
  }, [session, host, own, attempt]);
  if (!state) return <Loading what="Opening the timeline" />;
  if ("error" in state) {
    const again = () => {
      setState(null);
      setAttempt(attempt + 1);
    };
    return <Failed error={state.error} retry={again} />;
  }
  if (!state.model.tracks.groups.length) return <p class="state">This host recorded no events.</p>;
  return <Ready model={state.model} session={session} />;
}

interface ReadyProps {
  model: Model;
  session: string;
}

function Ready({ model, session }: ReadyProps) {
  const search = useRef<HTMLInputElement | null>(null);
  useAddress(model);
  model.unfold = (event) => setParams({ code: "all", selected: String(event) });
  useKeys(
    useMemo(() => keysOf(model, search), [model]),
    [model],
  );
  return (
    <div class="timeline">
      <h1 class="offscreen">Timeline</h1>
      <Toolbar model={model} search={search} />
      <Said model={model} />
      <Notices model={model} />
      <EvidenceNote model={model} />
      <Alone />
      <QueryNote model={model} session={session} />
      <Stage model={model} />
      <Workbench model={model} />
      <Tip model={model} />
    </div>
  );
}

/** What the Summary says, unless a page says what it points to. */
function Said({ model }: { model: Model }) {
  const said = fact("verdict");
  if (!said || model.evidence.value || steps.value) return null;
  return (
    <div class="tl-notices flex gap-l minor tl-said">
      <span class="muted">
        <Code text={sentence(String(said).replace(/^unknown: /, ""))} />
      </span>
      <a href={linkTo("overview")}>Summary</a>
    </div>
  );
}

/** The tracks of the query in the address, and why there are none if it has no answer that lies in time. */
function useQuery(model: Model, session: string): string {
  const { track } = route.value.params;
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let isGone = false;
    setProblem("");
    model.showQuery(null);
    if (track)
      askTracks(session, track).then(
        (found) => {
          if (isGone) return;
          model.showQuery(found);
          if (!found) setProblem("The query’s answer has no start and duration, so it is no track.");
        },
        (error: unknown) => !isGone && setProblem(`The query: ${asApiError(error).message}`),
      );
    return () => {
      isGone = true;
    };
  }, [model, session, track]);
  return problem;
}

/** What the query's tracks are, and a way to remove them. */
function QueryNote({ model, session }: { model: Model; session: string }) {
  const problem = useQuery(model, session);
  const query = model.query.value;
  if (!query && !problem) return null;
  const text = route.value.params.track ?? "";
  return (
    <div class="tl-notices flex gap-l minor" role="note">
      <span class="muted">
        {problem || `Query: ${query?.stretches.length.toLocaleString("en-US")} rows above the tracks`}
      </span>
      <a href={linkTo("sql", { query: text })}>Edit the query</a>
      <button type="button" class="button quiet" onClick={() => setParams({ track: null })}>
        Remove
      </button>
    </div>
  );
}

function Notices({ model }: { model: Model }) {
  const { partial, not_drawn: notDrawn } = model.tracks;
  const clocks = model.steps.value?.clocks ?? "";
  if (!partial && !notDrawn && !clocks) return null;
  return (
    <div class="tl-notices flex gap-l minor">
      {partial && <span class="badge cut inline-row gap-m muted minor">partial recording</span>}
      {notDrawn > 0 && (
        <span class="muted">
          {notDrawn.toLocaleString("en-US")} records are sums without a position in time; they are in the tables, not
          here.
        </span>
      )}
      {clocks && <span class="muted">{clocks}</span>}
    </div>
  );
}

/** What a page points to, in words, and the way back to it. */
function EvidenceNote({ model }: { model: Model }) {
  const evidence = model.evidence.value;
  if (!evidence) return null;
  const entry = evidence.from && evidence.from !== "timeline" ? toolEntry(evidence.from) : null;
  const { begin, end } = evidence;
  return (
    <div class="tl-notices flex gap-l minor tl-evidence" role="note">
      <span class="tl-evidence-key" />
      <strong>{evidence.why || "What the page points to"}</strong>
      <span class="muted">{duration(end - begin)}</span>
      <button type="button" class="button quiet" onClick={() => model.show(around(evidence, model.whole))}>
        Show it again
      </button>
      {entry && <a href={linkTo(entry.name)}>{`Back to ${entry.heading}`}</a>}
      <IconButton icon="close" label="Remove the highlight" onClick={() => (model.evidence.value = null)} />
    </div>
  );
}

/** Two traces have no common time, so a comparison shows only the open session. */
function Alone() {
  const id = otherId.value;
  if (!id) return null;
  const back = { session: id, steps: otherSteps.value, with: sessionId.value, withSteps: steps.value, host: null };
  return (
    <div class="tl-notices flex gap-l minor" role="note">
      <span class="muted">Two recordings have no common time; this is the open session alone.</span>
      <a href={linkTo("timeline", { stack: null })}>Show a step of each</a>
      <a href={linkTo("timeline", { ...back, stack: "off" })}>Show {otherName()} instead</a>
    </div>
  );
}

const WRITE_MS = 200;
const TOOL = "timeline";

/** Keeps the page's address and the timeline in sync. */
function useAddress(model: Model): void {
  const written = useRef<Partial<Address> | null>(null);
  const timer = useRef(0);
  // Effects of signals outlive their component by a picture; by then the address belongs to another page.
  const isGone = useRef(false);
  useSignalEffect(() => {
    const { tool, params } = route.value;
    if (tool !== TOOL || isGone.current) return;
    const own = written.current;
    if (own && Object.entries(own).every(([key, value]) => (params[key] ?? null) === value)) return;
    apply(model, params);
    written.current = current(model);
  });
  useSignalEffect(() => {
    const { span, selected, sought, choices, marks, region, evidence, run } = model;
    const parts = [span, selected, sought, choices, marks, region, evidence, run];
    for (const each of parts) void each.value;
    window.clearTimeout(timer.current);
    if (isGone.current) return;
    timer.current = window.setTimeout(() => {
      const next = current(model);
      written.current = next;
      const gone = model.evidence.peek() ? {} : { evidence: null, why: null, from: null };
      setParams({ ...next, ...gone, longest: null });
    }, WRITE_MS);
  });
  useLayoutEffect(
    () => () => {
      isGone.current = true;
      window.clearTimeout(timer.current);
    },
    [],
  );
}

function current(model: Model): Address {
  const sought = model.sought.peek();
  return toAddress(
    {
      span: model.span.peek(),
      home: model.home(),
      selected: model.chosen,
      find: sought?.text ?? "",
      regex: sought?.regex ?? false,
      choices: model.choices.peek(),
      marks: model.marks.peek(),
      region: model.region.peek(),
      run: model.run.peek(),
    },
    model.tracks.groups,
  );
}

function apply(model: Model, params: Readonly<Record<string, string>>): void {
  const shown = fromAddress(params, model.home(), model.tracks.groups);
  model.choices.value = shown.choices;
  model.marks.value = shown.marks;
  model.evidence.value = evidenceOf(params);
  if (shown.region && !model.region.peek()) void model.choose(shown.region);
  if (shown.run && !model.run.peek()) void model.chooseRun(shown.run);
  model.show(shown.span, "at once");
  const hasWindow = Boolean(params.begin);
  if (shown.selected !== model.chosen && !shown.run) void model.select(shown.selected);
  const sought = model.sought.peek();
  if (shown.find !== (sought?.text ?? "") || shown.regex !== (sought?.regex ?? false)) {
    // A link that only names what to find leads to the first of them.
    void model.search(shown.find, shown.regex).then(() => {
      if (!shown.find || hasWindow || shown.selected !== null) return undefined;
      return params.longest ? model.goToLongest() : model.step("next");
    });
  }
}

function keysOf(model: Model, search: { current: HTMLInputElement | null }): Binding[] {
  const group = "Timeline";
  const scroll = (by: number) => model.scrollTo(model.scrollTop + by);
  return [
    { keys: "w", does: "Zoom in at the mouse", group, run: () => model.zoomKey(1) },
    { keys: "s", does: "Zoom out", group, run: () => model.zoomKey(-1) },
    { keys: "a", does: "Move left", group, run: () => model.panKey(-1) },
    { keys: "d", does: "Move right", group, run: () => model.panKey(1) },
    {
      keys: "ArrowLeft",
      does: "Select the previous event; without a selection, move left",
      group,
      run: () => void (model.neighbour("previous") || model.panKey(-1)),
    },
    {
      keys: "ArrowRight",
      does: "Select the next event; without a selection, move right",
      group,
      run: () => void (model.neighbour("next") || model.panKey(1)),
    },
    {
      keys: "ArrowUp",
      does: "Select the enclosing event; without a selection, scroll up",
      group,
      run: () => void (model.neighbour("above") || scroll(-60)),
    },
    {
      keys: "ArrowDown",
      does: "Select the first nested event; without a selection, scroll down",
      group,
      run: () => void (model.neighbour("below") || scroll(60)),
    },
    ...TOOLS.map((tool, at) => ({
      keys: String(at + 1),
      does: `${TOOL_TEXT[tool].label}: ${TOOL_TEXT[tool].does.replace(/ \(.*\)$/, "").toLowerCase()}`,
      group,
      run: () => {
        model.tool.value = tool;
      },
    })),
    {
      keys: "f",
      does: "Zoom to the selection; without one, to all steps",
      group,
      run: () => model.fit(),
    },
    { keys: "m", does: "Mark or unmark the selection", group, run: () => model.mark() },
    { keys: "/", does: "Find events by name", group, run: () => search.current?.select() },
    { keys: "n", does: "Next match", group, run: () => void model.step("next") },
    { keys: "N", does: "Previous match", group, run: () => void model.step("previous") },
    {
      keys: "b",
      does: "Open the workbench: longest events, flame graph, durations",
      group,
      run: () => setTab("slices"),
    },
    { keys: "Escape", does: "Clear the selection, the search or the highlight", group, run: () => void model.escape() },
  ];
}

export default Timeline;
