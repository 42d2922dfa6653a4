/** The timeline of one host: everything between the page's address and the server's routes. */
import { useSignalEffect } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../api";
import { otherName } from "../frame/ComparePicker";
import { linkTo, route, setParams } from "../router";
import { session as openSession, otherId, otherSteps, sessionId, steps } from "../session";
import { Failed, Loading } from "../ui/basics";
import { type Binding, useKeys } from "../ui/keys";
import { type Address, fromAddress, toAddress } from "./address";
import { Model, TOOLS } from "./model";
import { Pane } from "./Pane";
import { Stage } from "./Stage";
import { Tip } from "./Tip";
import { TOOL_TEXT, Toolbar } from "./Toolbar";
import { Source } from "./wire";
import "./timeline.css";

/** What the page hands to the timeline; everything else lives in the address (see `route` in ../router). */
export interface TimelineProps {
  session: string;
  host: string | null;
}

export function Timeline({ session, host }: TimelineProps) {
  const hosts = openSession.value?.hosts.filter((each) => !each.error).map((each) => each.name) ?? [];
  const shown = host ?? hosts[0] ?? null;
  return <OfHost key={`${session} ${shown}`} session={session} host={shown} hosts={hosts} />;
}

type State = { readonly model: Model } | { readonly error: ApiError } | null;

function OfHost({ session, host, hosts }: { session: string; host: string | null; hosts: readonly string[] }) {
  const [state, setState] = useState<State>(null);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    let isGone = false;
    const source = new Source(session, host);
    source.tracks().then(
      (tracks) => !isGone && setState({ model: new Model(source, tracks) }),
      (error: unknown) => !isGone && setState({ error: asApiError(error) }),
    );
    return () => {
      isGone = true;
    };
  }, [session, host, attempt]);
  if (!state) return <Loading what="Opening the timeline" />;
  if ("error" in state) {
    const again = () => {
      setState(null);
      setAttempt(attempt + 1);
    };
    return <Failed error={state.error} retry={again} />;
  }
  if (!state.model.tracks.groups.length) return <p class="state">This host recorded no events.</p>;
  return <Ready model={state.model} hosts={hosts} host={host} />;
}

function Ready({ model, hosts, host }: { model: Model; hosts: readonly string[]; host: string | null }) {
  const search = useRef<HTMLInputElement | null>(null);
  useAddress(model);
  useKeys(
    useMemo(() => keysOf(model, search), [model]),
    [model],
  );
  return (
    <div class="timeline">
      <h1 class="offscreen">Timeline</h1>
      <Toolbar model={model} hosts={hosts} host={host} search={search} />
      <Notices model={model} />
      <Alone />
      <Stage model={model} />
      <Pane model={model} />
      <Tip model={model} />
    </div>
  );
}

function Notices({ model }: { model: Model }) {
  const { partial, not_drawn: notDrawn } = model.tracks;
  if (!partial && !notDrawn) return null;
  return (
    <div class="tl-notices">
      {partial && <span class="badge">partial recording</span>}
      {notDrawn > 0 && (
        <span class="muted">
          {notDrawn.toLocaleString("en-US")} records are sums without a position in time; they are in the tables, not
          here.
        </span>
      )}
    </div>
  );
}

/** Two traces have no common time, so a comparison shows only the open session. */
function Alone() {
  const id = otherId.value;
  if (!id) return null;
  const back = { session: id, steps: otherSteps.value, with: sessionId.value, withSteps: steps.value, host: null };
  return (
    <div class="tl-notices" role="note">
      <span class="muted">The timeline shows only the open session: two recordings have no common time.</span>
      <a href={linkTo("timeline", back)}>Show {otherName()} instead</a>
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
    for (const each of [model.span, model.selected, model.sought, model.choices, model.marks]) void each.value;
    window.clearTimeout(timer.current);
    if (isGone.current) return;
    timer.current = window.setTimeout(() => {
      const next = current(model);
      written.current = next;
      setParams(next);
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
    },
    model.tracks.groups,
  );
}

function apply(model: Model, params: Readonly<Record<string, string>>): void {
  const shown = fromAddress(params, model.home(), model.tracks.groups);
  model.choices.value = shown.choices;
  model.marks.value = shown.marks;
  model.show(shown.span, "at once");
  const hasWindow = Boolean(params.begin);
  if (shown.selected !== model.chosen) void model.select(shown.selected);
  const sought = model.sought.peek();
  if (shown.find !== (sought?.text ?? "") || shown.regex !== (sought?.regex ?? false)) {
    // A link that only names what to find leads to the first of them.
    void model
      .search(shown.find, shown.regex)
      .then(() => (shown.find && !hasWindow && shown.selected === null ? model.step("next") : undefined));
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
    { keys: "f", does: "Zoom to the selection; without one, to all activity", group, run: () => model.fit() },
    { keys: "m", does: "Mark or unmark the selection", group, run: () => model.mark() },
    { keys: "/", does: "Find events by name", group, run: () => search.current?.select() },
    { keys: "n", does: "Next match", group, run: () => void model.step("next") },
    { keys: "N", does: "Previous match", group, run: () => void model.step("previous") },
    { keys: "Escape", does: "Clear the selection, the search or the marks", group, run: () => void model.escape() },
  ];
}

export default Timeline;
