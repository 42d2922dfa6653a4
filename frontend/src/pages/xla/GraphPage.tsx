/** An XLA program as a graph: its expensive path first, then what is around any instruction. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { type Report, type Resource, type ToolAnswer, useResource } from "../../api";
import { bytes, duration, operations, percent } from "../../format";
import { findInTimeline } from "../../links";
import { linkTo, route, setParams } from "../../router";
import { docOf, type RowOf, tableOf } from "../../sections";
import { host, sessionId } from "../../session";
import type { TableData } from "../../table/model";
import { Card, Empty, Failed, Loading, LongName } from "../../ui/basics";
import { Choice, SearchBox } from "../../ui/controls";
import { FileMenu } from "../../ui/FileMenu";
import { hint } from "../../ui/hint";
import { Icon } from "../../ui/icons";
import { ParamChoice } from "../../ui/ParamChoice";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import { TableCard } from "../shared/sections";
import { GraphPicture } from "./GraphPicture";
import { type Found, type GraphNode, hloAddress, type Picture, type ProgramEntry, runMs, search } from "./graphData";

const MOST_HOPS = 8;
const USUAL_HOPS = 2;

const VIEWS = { path: "Expensive path", around: "Around an instruction" };
type View = keyof typeof VIEWS;

/** What the address says: the program, what is drawn of it, which nodes are open, which one is chosen. */
function useWanted(programs: readonly ProgramEntry[]) {
  const params = route.value.params;
  const program = programs.find((each) => each.program === params.program) ?? programs[0];
  const view: View = params.view === "around" || !program?.self_us ? "around" : "path";
  const hops = Math.min(MOST_HOPS, Math.max(1, Number(params.hops) || USUAL_HOPS));
  const opened = (params.open ?? "").split(",").filter(Boolean);
  return { program, view, hops, opened, node: params.node ?? "", chosen: params.at ? Number(params.at) : null };
}

export default function GraphView({ report, sections }: ToolAnswer<"graph-viewer", Report>) {
  const session = sessionId.value ?? "";
  const from = host.value ?? report.hosts[0] ?? null;
  const programs = useResource<readonly ProgramEntry[]>(hloAddress(session, "programs", { host: from }));
  return (
    <>
      {programs.state === "ready" && (
        <Findings
          lines={[pathSentence(programs.data)]}
          meaning={hint("Time of a program", "self time of its instructions, over all of its runs and devices")}
        />
      )}
      {programs.state === "loading" && <Loading what="Listing the programs" />}
      {programs.state === "failed" && <Failed error={programs.error} retry={programs.retry} />}
      {programs.state === "ready" && (
        <GraphCard
          programs={programs.data}
          host={from}
          session={session}
          meaning={(name) => docOf(tableOf(sections, "rows"), name)}
        />
      )}
      <TableCard section={tableOf(sections, "path")} links={nodeLinks} main />
      <More title="All programs and instructions" tables={["programs", "nodes"]}>
        <TableCard section={tableOf(sections, "programs")} links={programLinks} />
        <TableCard section={tableOf(sections, "rows")} id="nodes" links={nodeLinks} />
      </More>
    </>
  );
}

/** What the longest program takes of all. */
function pathSentence(programs: readonly ProgramEntry[]): string {
  const [longest] = [...programs].sort((one, other) => (other.self_us ?? 0) - (one.self_us ?? 0));
  if (!longest?.self_us) return "";
  if (programs.length === 1) return `\`${longest.program}\` is the only program, its expensive path first`;
  const share = percent((100 * longest.self_us) / programs.reduce((sum, { self_us }) => sum + (self_us ?? 0), 0));
  return `\`${longest.program}\` takes ${share} of the time of ${programs.length} programs; its expensive path first`;
}

interface GraphCardProps {
  programs: readonly ProgramEntry[];
  host: string | null;
  session: string;
  meaning: DetailsProps["meaning"];
}

function GraphCard({ programs, host: from, session, meaning }: GraphCardProps) {
  const wanted = useWanted(programs);
  const program = wanted.program?.program ?? "";
  const query = { host: from, program };
  const picture = useLast(
    useResource<Picture>(
      hloAddress(session, "graph", {
        ...query,
        view: wanted.view,
        open: wanted.opened.join(","),
        ...(wanted.view === "around" ? { node: wanted.node, hops: wanted.hops } : {}),
      }),
    ),
    program,
  );
  const centre = (node: GraphNode) => setParams({ view: "around", node: node.name, at: String(node.id) }, "push");
  const toggle = (node: GraphNode) => {
    const id = String(node.id);
    const open = wanted.opened.includes(id) ? wanted.opened.filter((each) => each !== id) : [...wanted.opened, id];
    setParams({ open: open.join(",") || null, at: id });
  };
  return (
    <Card
      title="Graph"
      note={picture.data ? summary(picture.data, wanted.view) : ""}
      class="hlo-card"
      actions={
        <>
          <ProgramPicker programs={programs} chosen={program} />
          <Exports session={session} query={query} node={wanted.node} hops={wanted.hops} />
        </>
      }
    >
      <div class="hlo-tools row wrap gap-l below-l">
        <ParamChoice label="What is drawn" name="view" value={wanted.view} options={VIEWS} how="push" />
        {wanted.view === "around" && <Hops hops={wanted.hops} />}
        <Search session={session} query={query} onPick={centre} />
      </div>
      {picture.error && <Failed {...picture.error} />}
      {picture.data && (
        <div class="hlo-body">
          {picture.data.nodes.length === 0 ? (
            <Empty
              title="Nothing to draw"
              text="no instruction of this program took time; choose Around an instruction"
            />
          ) : (
            <GraphPicture
              picture={picture.data}
              chosen={wanted.chosen}
              onChoose={(node) => setParams({ at: String(node.id) })}
              onCentre={centre}
              onToggle={toggle}
            >
              {picture.loading && <Loading what="Drawing" />}
            </GraphPicture>
          )}
          <Details
            picture={picture.data}
            chosen={wanted.chosen}
            onCentre={centre}
            onToggle={toggle}
            meaning={meaning}
          />
        </div>
      )}
      {!picture.data && !picture.error && <Loading what="Drawing" />}
      <p class="muted above-l minor">
        <span class="key-line critical" /> on the longest path, whose times a run of the program takes at least{" "}
        <span class="key-line" /> takes no time of its own. Data flows down. Click a node for details, double-click to
        put it in the middle, + to open a fusion.
      </p>
    </Card>
  );
}

/** The last picture of a program stays while the next one is computed. */
function useLast(found: Resource<Picture>, program: string) {
  const [last, setLast] = useState<Picture | null>(null);
  const data = found.state === "ready" ? found.data : null;
  useEffect(() => {
    if (data) setLast(data);
  }, [data]);
  const kept = last?.program === program ? last : null;
  return {
    data: data ?? (found.state === "loading" ? kept : null),
    loading: found.state === "loading",
    error: found.state === "failed" ? { error: found.error, retry: found.retry } : null,
  };
}

function summary(picture: Picture, view: View): string {
  const all = `${picture.instructions.toLocaleString("en-US")} instructions`;
  const shown = picture.nodes.length.toLocaleString("en-US");
  if (view === "around" || !picture.self_us) return `${all}, ${picture.cut ? "the nearest " : ""}${shown} shown`;
  const share = percent((100 * picture.path_us) / picture.self_us);
  const path = `${share} of the program’s time is on the longest path`;
  return `${path}; ${all}, shown are the ${shown} on that path that take most time`;
}

function ProgramPicker({ programs, chosen }: { programs: readonly ProgramEntry[]; chosen: string }) {
  return (
    <Choice
      label="Program"
      value={chosen}
      options={programs.map(({ program, self_us }) => [program, self_us ? program : `${program}: did not run`])}
      onChange={(program) => setParams({ program, node: null, at: null, open: null, view: null }, "push")}
    />
  );
}

function Hops({ hops }: { hops: number }) {
  return (
    <Choice
      label="Hops"
      value={String(hops)}
      options={Array.from({ length: MOST_HOPS }, (_, at) => String(at + 1))}
      onChange={(chosen) => setParams({ hops: chosen })}
    />
  );
}

interface QueryProps {
  session: string;
  query: { host: string | null; program: string };
}

function Exports({ session, query, node, hops }: QueryProps & { node: string; hops: number }) {
  const files = [
    { label: "All instructions as text", href: hloAddress(session, "text", query) },
    { label: "The surroundings for Graphviz", href: hloAddress(session, "dot", { ...query, node, hops }) },
  ];
  return <FileMenu label="Export the program" text="Program" files={files} />;
}

const WAIT_MS = 180;

/** Finds instructions by name, opcode, target or framework op. */
function Search({ session, query, onPick }: QueryProps & { onPick: (node: GraphNode) => void }) {
  const [text, setText] = useState("");
  const [found, setFound] = useState<Found | null>(null);
  useEffect(() => {
    setFound(null);
    if (text.trim().length < 2) return undefined;
    const abort = new AbortController();
    const timer = window.setTimeout(() => {
      search(hloAddress(session, "search", { ...query, find: text }), abort.signal)
        .then(setFound)
        .catch(() => undefined); // a newer search takes its place
    }, WAIT_MS);
    return () => {
      window.clearTimeout(timer);
      abort.abort();
    };
  }, [text, query.program, query.host]);
  const pick = (node: GraphNode) => {
    setText("");
    onPick(node);
  };
  return (
    <div class="hlo-search">
      <SearchBox
        label="Find an instruction"
        placeholder="Find an instruction: name, opcode, op"
        value={text}
        onChange={setText}
        onKeyDown={(event) => {
          if (event.key === "Escape") setText("");
          if (event.key === "Enter" && found?.nodes[0]) pick(found.nodes[0]);
        }}
      />
      {found && (
        <ul class="hlo-found link-list" aria-label="Instructions found">
          {found.nodes.length === 0 && <li class="muted">No instruction holds “{text}”</li>}
          {found.nodes.map((node) => (
            <li key={node.id}>
              <button
                type="button"
                onClick={() => pick(node)}
                {...hint(node.name, `${node.category} ${node.shape}`, node.framework_op)}
              >
                <span>{node.name}</span>
                <span class="muted">
                  {node.self_us ? `${duration(runMs(node))} · ` : ""}
                  {node.framework_op || node.category}
                </span>
              </button>
            </li>
          ))}
          {found.cut && <li class="muted">More instructions hold it; write more of the name</li>}
        </ul>
      )}
    </div>
  );
}

interface DetailsProps {
  picture: Picture;
  chosen: number | null;
  onCentre: (node: GraphNode) => void;
  onToggle: (node: GraphNode) => void;
  /** What a column of the nodes means. */
  meaning: (name: keyof RowOf<"graph-viewer", "rows"> & string) => string;
}

/** What is known of the chosen instruction, its operands and its users. */
function Details({ picture, chosen, onCentre, onToggle, meaning }: DetailsProps) {
  const nodes = useMemo(() => {
    const inside = Object.values(picture.inside).flatMap((part) => part.nodes);
    return new Map([...picture.nodes, ...inside].map((node) => [node.id, node]));
  }, [picture]);
  const slowest = picture.nodes.reduce<GraphNode | null>((a, b) => (a && a.self_us >= b.self_us ? a : b), null);
  const node = nodes.get(chosen ?? picture.centre) ?? slowest;
  if (!node) return null;
  const edges = [picture, ...Object.values(picture.inside)].flatMap((part) => part.edges);
  const near = (ids: readonly number[]) => ids.flatMap((id) => nodes.get(id) ?? []);
  const before = near(edges.filter(([, to]) => to === node.id).map(([from]) => from));
  const share = percent((100 * node.self_us) / Math.max(picture.self_us, 1e-9));
  const lines: (readonly [string, string, string])[] = [
    ["Category", node.category, meaning("category")],
    ["Shape", node.shape, meaning("shape")],
    ["Self time", node.self_us ? `${duration(runMs(node))} a run (${share})` : "none", meaning("self_us")],
    ["Count", node.occurrences ? node.occurrences.toLocaleString("en-US") : "–", meaning("occurrences")],
    ...(node.flops === 0
      ? []
      : [
          [
            "Operations",
            node.flops === null ? "unknown" : `${operations(node.flops)} a run`,
            meaning("flops"),
          ] as const,
        ]),
    ["Memory moved", movedText(node, before), meaning("bytes")],
    ...(node.framework_op ? [["Framework op", node.framework_op, meaning("framework_op")] as const] : []),
    ...(node.source ? [["Source", node.source, meaning("source")] as const] : []),
  ];
  return (
    <aside class="hlo-details" aria-label="The chosen instruction">
      <h3>
        <LongName text={node.name} room={30} />
      </h3>
      <div class="details-links flex wrap gap-m below-l">
        <button type="button" class="button" onClick={() => onCentre(node)}>
          What is around it
        </button>
        {node.opens && (
          <button type="button" class="button" onClick={() => onToggle(node)}>
            {picture.inside[String(node.id)] ? "Close" : "Open"}
          </button>
        )}
        {node.self_us > 0 && (
          <a class="button quiet" href={findInTimeline(node.name)}>
            In the timeline <Icon name="arrow" size={14} />
          </a>
        )}
      </div>
      <dl>
        {lines.map(([name, value, doc]) => (
          <div key={name} {...hint(name, doc)}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <Neighbours title="Takes" nodes={before} />
      <Neighbours title="Is taken by" nodes={near(edges.filter(([from]) => from === node.id).map(([, to]) => to))} />
    </aside>
  );
}

/** What XLA writes of memory of the host, in the layout of a shape. */
const ON_HOST = /S\(5\)/;

/** What a run moves; a wait for a copy moves what its start, among the nodes before it, set out to read and write. */
function movedText(node: GraphNode, before: readonly GraphNode[]): string {
  const start = before.find(({ category }) => node.category === "copy-done" && category === "copy-start");
  if (!start?.bytes) return node.bytes === null ? "unknown" : `${bytes(node.bytes)} a run`;
  const where = !ON_HOST.test(start.shape) ? "" : ON_HOST.test(node.shape) ? " to the host" : " from the host";
  const rate = `${bytes((start.bytes / 2 / (runMs(start) + runMs(node))) * 1e3)}/s`;
  return `${bytes(start.bytes / 2)}${where} a run, ${rate} or less`;
}

function Neighbours({ title, nodes }: { title: string; nodes: readonly GraphNode[] }) {
  if (!nodes.length) return null;
  return (
    <>
      <h4>{title}</h4>
      <ul class="link-list">
        {nodes.map((node) => (
          <li key={node.id}>
            <button type="button" onClick={() => setParams({ at: String(node.id) })}>
              {node.name}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

function nodeLinks(row: number, data: TableData) {
  const [program, name] = [data.columns.program?.[row], data.columns.name?.[row]];
  if (typeof program !== "string" || typeof name !== "string") return [];
  return [
    {
      label: "Show in the graph",
      href: linkTo("graph-viewer", { program, node: name, view: "around" }),
    },
    { label: "Find in the timeline", href: findInTimeline(name) },
  ];
}

function programLinks(row: number, data: TableData) {
  const program = data.columns.program?.[row];
  return typeof program === "string" ? [{ label: "Show its graph", href: linkTo("graph-viewer", { program }) }] : [];
}
