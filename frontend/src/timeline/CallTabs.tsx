/** Flame graph and call tree of what the workbench is about. */

import { useEffect, useMemo, useState } from "preact/hooks";
import type { Field } from "../api";
import { Flame, Trail } from "../charts/Flame";
import { CATEGORY_COLOUR, categoryOf, mix } from "../design/colours";
import { palette } from "../design/theme";
import { route, setParams } from "../router";
import { fromRows, type TableData } from "../table/model";
import { Table } from "../table/Table";
import { Failed, Loading } from "../ui/basics";
import { Icon } from "../ui/icons";
import { ParamChoice } from "../ui/ParamChoice";
import { fieldNamed, PS_A_US } from "./columns";
import type { Model } from "./model";
import { hash } from "./paint-colours";
import { duration } from "./ticks";
import { type CallNode, type Calls, callsOf, flameOf, hotPath, pathOf } from "./tree";
import { dataOf, scopeText, useScope } from "./useScope";

const SEPARATOR = "\u0001";

interface Shown {
  readonly calls: Calls | null;
  readonly failed: preact.ComponentChildren;
  readonly inverted: boolean;
  readonly hidden: readonly string[];
}

function useCalls(model: Model): Shown {
  const { params } = route.value;
  const inverted = params.calls === "inverted";
  const hidden = useMemo(() => (params.without ?? "").split(SEPARATOR).filter(Boolean), [params.without]);
  const asked = useScope(
    model,
    (scope, abort) => model.source.callTree(model.callScope(scope), inverted, hidden, abort),
    [inverted, hidden],
  );
  const answer = dataOf(asked);
  const calls = useMemo(() => answer && callsOf(answer), [answer]);
  return { calls, failed: asked.state === "failed" && <Failed error={asked.error} />, inverted, hidden };
}

function hide(hidden: readonly string[], name: string): void {
  setParams({ without: [...hidden, name].join(SEPARATOR) }, "push");
}

const DIRECTIONS = { down: "Callers first", inverted: "Own time first" };

interface ControlsProps {
  model: Model;
  shown: Shown;
  /** The function that is looked at. */
  chosen: string | undefined;
}

function Controls({ model, shown, chosen }: ControlsProps) {
  return (
    <>
      <div class="wb-controls row wrap below-m minor">
        <ParamChoice label="Direction" name="calls" value={shown.inverted ? "inverted" : "down"} options={DIRECTIONS} />
        <span class="muted">{scopeText(model).replace(/^Matches of “.*” in/, "In")}</span>
        {shown.hidden.map((name) => (
          <button
            key={name}
            type="button"
            class="badge cut inline-row gap-m muted minor"
            title="Show it again"
            onClick={() =>
              setParams({ without: shown.hidden.filter((each) => each !== name).join(SEPARATOR) || null }, "push")
            }
          >
            {`without ${name.slice(-32)}`} <Icon name="close" size={12} />
          </button>
        ))}
        {chosen !== undefined && (
          <>
            <button type="button" class="button quiet" onClick={() => hide(shown.hidden, chosen)}>
              Hide this function
            </button>
            <button type="button" class="button quiet" onClick={() => void model.search(chosen.slice(0, 400), false)}>
              Find its calls
            </button>
          </>
        )}
      </div>
      {shown.failed}
      {!shown.calls && !shown.failed && <Loading what="Merging calls" />}
    </>
  );
}

// -- the flame graph --------------------------------------------------------------------------------------------

export function FlameTab({ model }: { model: Model }) {
  const shown = useCalls(model);
  const [focus, setFocus] = useState<number | null>(null);
  const { calls } = shown;
  useEffect(() => setFocus(null), [calls]);
  const blocks = useMemo(() => (calls ? flameOf(calls, focus) : []), [calls, focus]);
  const path = calls && focus !== null ? pathOf(calls, focus) : [];
  return (
    <div class="wb-tab">
      <Controls model={model} shown={shown} chosen={path.at(-1)?.name} />
      {calls && blocks.length === 0 && <p class="muted tl-wait">No nested events here.</p>}
      {path.length > 0 && <Trail all="Show all" path={path} open={setFocus} />}
      <Flame
        label="Flame graph"
        blocks={blocks}
        total={calls?.total ?? 1}
        write={duration}
        colourOf={({ name }) => colourOfCall(name, palette.value.surface)}
        onPick={setFocus}
      />
    </div>
  );
}

function colourOfCall(name: string, surface: string): string {
  const base = CATEGORY_COLOUR[categoryOf(name, "host")];
  return mix(base, surface, 0.12 + 0.1 * (hash(name) % 4));
}

// -- the call tree ----------------------------------------------------------------------------------------------

const MOST_ROWS = 1500;

const CALLS: readonly Field[] = [
  fieldNamed("function", "name", "The function; a click opens what it calls, or closes it"),
  fieldNamed("total_us", "us", "Time in it and in what it calls"),
  fieldNamed("share", "share", "Total as a share of all calls"),
  fieldNamed("self_us", "us", "Time in the function itself"),
  fieldNamed("calls", "count", "How often it was called"),
];

export function CallTreeTab({ model }: { model: Model }) {
  const shown = useCalls(model);
  const { calls } = shown;
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const [chosen, choose] = useState<CallNode | null>(null);
  useEffect(() => {
    setOpen(calls ? hotPath(calls) : new Set());
    choose(null);
  }, [calls]);
  const rows = useMemo(() => (calls ? openRows(calls, open) : []), [calls, open]);
  const data = useMemo(() => treeData(rows, calls?.total ?? 1), [rows]);
  const pick = ({ node }: TreeRow) => {
    const next = new Set(open);
    if (!next.delete(node.id)) next.add(node.id);
    setOpen(next);
    choose(node);
  };
  return (
    <div class="wb-tab">
      <Controls model={model} shown={shown} chosen={chosen?.name} />
      {calls && (
        <Table
          id="calls"
          title="Call tree"
          data={data}
          indent={(row) => rows[row]?.depth ?? 0}
          pick={(row) => pick(rows[row] as TreeRow)}
        />
      )}
      {calls && calls.leftOut > 0 && (
        <p class="muted">{`${calls.leftOut.toLocaleString("en-US")} smaller ones are left out.`}</p>
      )}
    </div>
  );
}

interface TreeRow {
  readonly node: CallNode;
  readonly depth: number;
}

function openRows({ nodes, roots }: Calls, open: ReadonlySet<number>): TreeRow[] {
  const rows: TreeRow[] = [];
  const walk = (list: readonly number[], depth: number) => {
    for (const id of list) {
      if (rows.length >= MOST_ROWS) return;
      const node = nodes[id] as CallNode;
      rows.push({ node, depth });
      if (open.has(id)) walk(node.children, depth + 1);
    }
  };
  walk(roots, 0);
  return rows;
}

function foldSign(rows: readonly TreeRow[], at: number): string {
  return (rows[at + 1]?.depth ?? 0) > (rows[at]?.depth ?? 0) ? "▾ " : "▸ ";
}

/** Of a function with calls inside, a sign says so. */
function treeData(rows: readonly TreeRow[], total: number): TableData {
  return fromRows(
    CALLS,
    rows.map(({ node }, at) => ({
      function: `${node.children.length ? foldSign(rows, at) : ""}${node.name}`,
      ...{ total_us: node.total / PS_A_US, share: (100 * node.total) / total, self_us: node.self / PS_A_US },
      calls: node.events,
    })),
  );
}
