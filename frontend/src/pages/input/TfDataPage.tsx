/** Which stage of a tf.data pipeline is slow: the graph with its critical path, and what to change. */
import { useMemo } from "preact/hooks";
import type { Report, ToolAnswer } from "../../api";
import { duration } from "../../format";
import { intervalInTimeline } from "../../links";
import { route, setParams } from "../../router";
import { tableOf } from "../../sections";
import { Card } from "../../ui/basics";
import { Choice } from "../../ui/controls";
import { hint } from "../../ui/hint";
import { Icon } from "../../ui/icons";
import { ParamChoice } from "../../ui/ParamChoice";
import { Findings } from "../shared/Findings";
import { TableCard } from "../shared/sections";
import { WhatToDo } from "../shared/WhatToDo";
import { type Edge, type GraphNode, layout, NODE, type Placed } from "./graph";
import { isSaidHere } from "./InputPage";

interface Execution {
  readonly host: string;
  readonly pipeline: string;
  readonly rank: number;
  readonly start_ms: number;
  readonly duration_us: number;
  readonly bottleneck: string;
  readonly graph: readonly GraphNode[];
}

interface TfDataReport extends Report {
  readonly summary: readonly string[];
  readonly bottleneck: {
    readonly host: string;
    readonly pipeline: string;
  } | null;
  readonly graph: readonly GraphNode[];
  readonly executions?: readonly Execution[];
}

export default function TfData({ report, sections }: ToolAnswer<"tf-data", TfDataReport>) {
  return (
    <>
      <Findings lines={report.summary.filter(isSaidHere)}>
        <WhatToDo />
      </Findings>
      {report.graph.length > 0 && <GraphCard report={report} />}
      <TableCard section={tableOf(sections, "pipelines")} />
      <TableCard section={tableOf(sections, "executions")} />
    </>
  );
}

/** One execution of one pipeline; which one, three lists say: host, pipeline, rank by time. */
function GraphCard({ report }: { report: TfDataReport }) {
  const executions = report.executions ?? [];
  const params = route.value.params;
  const first = report.bottleneck;
  const host = params.tfhost ?? first?.host ?? executions[0]?.host;
  const ofHost = executions.filter((each) => each.host === host);
  const pipeline = params.pipeline ?? (host === first?.host ? first?.pipeline : undefined) ?? ofHost[0]?.pipeline;
  const ofPipeline = ofHost.filter((each) => each.pipeline === pipeline);
  const shown =
    ofPipeline.find((each) => String(each.rank) === params.rank) ??
    ofPipeline.find((each) => sameGraph(each.graph, report.graph)) ??
    ofPipeline[0];
  const nodes = shown?.graph ?? report.graph;
  const places = [...new Set(executions.map(placeOf))];
  return (
    <Card
      title="Input pipeline graph"
      note={
        shown
          ? `an execution of ${duration(shown.duration_us / 1e3)}, ${duration(shown.start_ms)} into the capture`
          : ""
      }
      actions={
        <>
          <ParamChoice
            label="Size of the graph"
            name="size"
            value={params.size === "whole" ? "whole" : "full"}
            options={{ full: "Full size", whole: "Whole graph" }}
          />
          {places.length > 1 && (
            <Choice
              label="Pipeline"
              value={placeOf({ host, pipeline })}
              options={places}
              onChange={(value) => {
                const chosen = executions.find((each) => placeOf(each) === value);
                setParams({ tfhost: chosen?.host ?? null, pipeline: chosen?.pipeline ?? null, rank: null });
              }}
            />
          )}
          {ofPipeline.length > 1 && (
            <Choice
              label="Execution"
              value={String(shown?.rank ?? "")}
              options={ofPipeline.map((each) => [
                String(each.rank),
                `${each.rank}: ${duration(each.duration_us / 1e3)}`,
              ])}
              onChange={(value) => setParams({ tfhost: host ?? null, pipeline: pipeline ?? null, rank: value })}
            />
          )}
          {shown && (
            <a
              class="button quiet"
              href={intervalInTimeline(
                shown.start_ms,
                shown.start_ms + shown.duration_us / 1e3,
                report.hosts.length > 1 ? shown.host : null,
              )}
            >
              In the timeline <Icon name="arrow" size={14} />
            </a>
          )}
        </>
      }
    >
      <Graph
        nodes={nodes}
        host={report.hosts.length > 1 ? (shown?.host ?? null) : null}
        whole={params.size === "whole"}
      />
      <p class="muted above-l minor">
        <span class="key-line critical" /> on the critical path: the slow call waited for it{" "}
        <span class="key-line bottleneck" /> the bottleneck: the longest self time on that path{" "}
        <span class="key-line" /> not waited for. Data flows upwards, to the training at the top.
      </p>
    </Card>
  );
}

function sameGraph(a: readonly GraphNode[], b: readonly GraphNode[]): boolean {
  return a.length === b.length && a[0]?.start_ms === b[0]?.start_ms && a[0]?.total_us === b[0]?.total_us;
}

/** A pipeline with its host: many hosts have one of the same name. */
function placeOf({ host = "", pipeline = "" }: { host?: string | undefined; pipeline?: string | undefined }): string {
  return `${pipeline} on ${host}`;
}

/** Long pipelines are taller than a screen: scaled down they are seen whole, and in their own size they can be read. */
function Graph({ nodes, host, whole }: { nodes: readonly GraphNode[]; host: string | null; whole: boolean }) {
  const { nodes: placed, edges, width, height } = useMemo(() => layout(nodes), [nodes]);
  const longest = Math.max(...nodes.map((node) => node.self_us));
  return (
    <div class={whole ? "graph whole" : "graph"} data-marks={placed.length}>
      <svg
        width={width + 8}
        height={height + 8}
        viewBox={`-4 -4 ${width + 8} ${height + 8}`}
        role="group"
        aria-label={`Input pipeline of ${placed.length} iterators`}
      >
        <defs>
          <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" orient="auto">
            <path d="M0 0 8 4 0 8z" class="graph-tip" />
          </marker>
        </defs>
        {edges.map((edge) => (
          <path
            key={edge.from.node.id}
            class={`graph-edge ${edge.critical ? "critical" : ""}`}
            d={curve(edge)}
            marker-end="url(#tip)"
          />
        ))}
        {placed.map((each) => (
          <NodeBox key={each.node.id} placed={each} longest={longest} host={host} />
        ))}
      </svg>
    </div>
  );
}

function curve({ from, to }: Edge): string {
  const [x1, y1] = [from.x + NODE.width / 2, from.y];
  const [x2, y2] = [to.x + NODE.width / 2, to.y + NODE.height + 2];
  const middle = (y1 + y2) / 2;
  return `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`;
}

/** An iterator; it leads to its first call in the timeline. */
function NodeBox({ placed: { node, x, y }, longest, host }: { placed: Placed; longest: number; host: string | null }) {
  const name = node.bottleneck ? "bottleneck" : node.critical ? "critical" : "";
  const share = longest > 0 ? node.self_us / longest : 0;
  const shortName = node.name.length > 27 ? `${node.name.slice(0, 14)}…${node.name.slice(-11)}` : node.name;
  const times = `self ${duration(node.self_us / 1e3)}, total ${duration(node.total_us / 1e3)}`;
  return (
    <a
      class={`graph-node ${name}`}
      href={intervalInTimeline(node.start_ms, node.start_ms + Math.max(node.total_us / 1e3, 1e-3), host)}
      aria-label={`${node.name}: ${times}, ${node.calls} calls${node.bottleneck ? ", the bottleneck" : ""}`}
      {...hint(
        node.long_name,
        [
          node.dataset_op ? `dataset op ${node.dataset_op}` : "",
          node.parallel ? "runs on another thread than its reader" : "",
        ]
          .filter(Boolean)
          .join("; "),
        `self ${node.self_us} µs, total ${node.total_us} µs`,
      )}
    >
      <g transform={`translate(${x} ${y})`}>
        <rect width={NODE.width} height={NODE.height} rx="8" />
        <rect
          class="graph-self"
          x="12"
          y={NODE.height - 11}
          height="4"
          rx="2"
          width={Math.max(1, share * (NODE.width - 24))}
        />
        <text x="12" y="22" class="graph-name">
          {shortName}
        </text>
        <text x="12" y="42">
          self {duration(node.self_us / 1e3)}
        </text>
        <text x={NODE.width - 12} y="42" text-anchor="end">
          total {duration(node.total_us / 1e3)}
        </text>
        <text x="12" y="61" class="graph-faint">
          {node.calls === 1 ? "1 call" : `${node.calls.toLocaleString("en-US")} calls`}
        </text>
        <text x={NODE.width - 12} y="61" text-anchor="end" class="graph-faint">
          starts {duration(node.start_ms)}
        </text>
      </g>
    </a>
  );
}
