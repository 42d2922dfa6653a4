/** Flame graph and call tree of what the workbench is about. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { Flame } from "../charts/Flame";
import { CATEGORY_COLOUR, categoryOf, mix } from "../design/colours";
import { palette } from "../design/theme";
import { percent } from "../format";
import { route, setParams } from "../router";
import { Failed, Loading, LongName, Segmented } from "../ui/basics";
import { IconButton } from "../ui/controls";
import { Icon } from "../ui/icons";
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

function Controls({ model, shown, children }: { model: Model; shown: Shown; children?: preact.ComponentChildren }) {
  return (
    <div class="wb-controls row wrap below-m minor">
      <Segmented
        label="Direction"
        value={shown.inverted ? "inverted" : "down"}
        options={[
          { value: "down", label: "Callers first" },
          { value: "inverted", label: "Own time first" },
        ]}
        onChange={(value) => setParams({ calls: value === "inverted" ? "inverted" : null })}
      />
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
      {children}
    </div>
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
  const focused = path.at(-1);
  return (
    <div class="wb-tab">
      <Controls model={model} shown={shown}>
        {focused && (
          <span class="wb-focus">
            <button type="button" class="button quiet" onClick={() => setFocus(null)}>
              Show all
            </button>
            <button type="button" class="button quiet" onClick={() => hide(shown.hidden, focused.name)}>
              Hide this function
            </button>
            <button
              type="button"
              class="button quiet"
              onClick={() => void model.search(focused.name.slice(0, 400), false)}
            >
              Find its calls
            </button>
          </span>
        )}
      </Controls>
      {shown.failed}
      {!calls && !shown.failed && <Loading what="Merging calls" />}
      {calls && blocks.length === 0 && <p class="muted tl-wait">No nested events here.</p>}
      {path.length > 1 && (
        <p class="wb-path flex wrap minor">
          {path.slice(0, -1).map((node) => (
            <button key={node.id} type="button" onClick={() => setFocus(node.id)}>
              {node.name.slice(-48)}
            </button>
          ))}
        </p>
      )}
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

export function CallTreeTab({ model }: { model: Model }) {
  const shown = useCalls(model);
  const { calls } = shown;
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  useEffect(() => setOpen(calls ? hotPath(calls) : new Set()), [calls]);
  const rows = useMemo(() => (calls ? openRows(calls, open) : []), [calls, open]);
  const toggle = (id: number) => {
    const next = new Set(open);
    if (!next.delete(id)) next.add(id);
    setOpen(next);
  };
  return (
    <div class="wb-tab">
      <Controls model={model} shown={shown} />
      {shown.failed}
      {!calls && !shown.failed && <Loading what="Merging calls" />}
      {calls && (
        <div class="tl-table of-calls">
          <table class="wb-calls">
            <thead>
              <tr>
                <th>Function</th>
                <th>Total</th>
                <th>Share</th>
                <th>Self</th>
                <th>Calls</th>
                <th aria-label="Actions" />
              </tr>
            </thead>
            <tbody>
              {rows.map(({ node, depth }) => (
                <CallRow
                  key={node.id}
                  {...{ node, depth, model }}
                  total={calls.total}
                  isOpen={open.has(node.id)}
                  toggle={() => toggle(node.id)}
                  hide={() => hide(shown.hidden, node.name)}
                />
              ))}
            </tbody>
          </table>
          {calls.leftOut > 0 && (
            <p class="muted">{`${calls.leftOut.toLocaleString("en-US")} smaller ones are left out.`}</p>
          )}
        </div>
      )}
    </div>
  );
}

function openRows({ nodes, roots }: Calls, open: ReadonlySet<number>): { node: CallNode; depth: number }[] {
  const rows: { node: CallNode; depth: number }[] = [];
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

interface CallRowProps {
  model: Model;
  node: CallNode;
  depth: number;
  total: number;
  isOpen: boolean;
  toggle: () => void;
  hide: () => void;
}

function CallRow({ model, node, depth, total, isOpen, toggle, hide: hideIt }: CallRowProps) {
  return (
    <tr>
      <td style={{ paddingLeft: `${6 + Math.min(depth, 40) * 14}px` }}>
        <span class="row gap-s shrinks">
          {node.children.length > 0 ? (
            <button
              type="button"
              class="tl-fold rigid muted"
              aria-expanded={isOpen}
              aria-label={`${isOpen ? "Close" : "Open"} ${node.name}`}
              onClick={toggle}
            >
              <Icon name={isOpen ? "down" : "right"} size={13} />
            </button>
          ) : (
            <span class="tl-fold rigid muted" />
          )}
          <button
            type="button"
            title="Find its calls"
            onClick={() => void model.search(node.name.slice(0, 400), false)}
          >
            <LongName text={node.name} />
          </button>
        </span>
      </td>
      <td>{duration(node.total)}</td>
      <td class="tl-share">
        <span style={{ width: `${(100 * node.total) / total}%` }} />
        <b>{percent((100 * node.total) / total)}</b>
      </td>
      <td>{duration(node.self)}</td>
      <td>{node.events.toLocaleString("en-US")}</td>
      <td>
        <IconButton icon="close" size={12} label={`Hide ${node.name}`} title="Hide" onClick={hideIt} />
      </td>
    </tr>
  );
}
