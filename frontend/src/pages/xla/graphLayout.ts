/** Where the nodes of a graph stand: layers from operands down to users; an open node is as large as what is inside. */
import { Graph, layout } from "@dagrejs/dagre";
import type { GraphEdge, GraphNode, GraphPart, Picture } from "./graphData";

export const BOX = { width: 208, height: 62, head: 34, padding: 14 } as const;

export interface PlacedNode {
  readonly node: GraphNode;
  /** The upper left corner, within the part that it lies in. */
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  /** What is inside an open node. */
  readonly inside: PlacedPart | null;
}

export interface PlacedEdge {
  readonly edge: GraphEdge;
  readonly points: readonly { readonly x: number; readonly y: number }[];
  /** Both ends lie on the expensive path. */
  readonly onPath: boolean;
}

export interface PlacedPart {
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly PlacedEdge[];
  readonly width: number;
  readonly height: number;
}

/** Above so many edges a quicker way to choose layers is taken, which leaves some edges longer. */
const MANY_EDGES = 300;

export function placePicture(picture: Picture): PlacedPart {
  return placePart(picture, picture.inside);
}

export function placePart(part: GraphPart, inside: Picture["inside"]): PlacedPart {
  const opened = new Map<number, PlacedPart>();
  for (const node of part.nodes) {
    const content = inside[String(node.id)];
    if (content) opened.set(node.id, placePart(content, {}));
  }
  const graph = new Graph();
  const ranker = part.edges.length > MANY_EDGES ? "longest-path" : "network-simplex";
  graph.setGraph({ rankdir: "TB", nodesep: 22, ranksep: 38, ranker });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of part.nodes) graph.setNode(String(node.id), sizeOf(opened.get(node.id)));
  for (const [from, to] of part.edges) graph.setEdge(String(from), String(to));
  layout(graph);
  const nodes = part.nodes.map((node) => placed(node, graph, opened.get(node.id) ?? null));
  const onPath = new Set(part.nodes.filter((node) => node.on_path).map((node) => node.id));
  const edges = part.edges.map((edge) => ({
    edge,
    points: graph.edge(String(edge[0]), String(edge[1]))?.points ?? [],
    onPath: onPath.has(edge[0]) && onPath.has(edge[1]),
  }));
  return { nodes, edges, ...extent(nodes, edges) };
}

function sizeOf(content: PlacedPart | undefined): { width: number; height: number } {
  if (!content) return { width: BOX.width, height: BOX.height };
  return {
    width: Math.max(BOX.width, content.width + 2 * BOX.padding),
    height: content.height + BOX.head + 2 * BOX.padding,
  };
}

function placed(node: GraphNode, graph: Graph, inside: PlacedPart | null): PlacedNode {
  const { x, y, width, height } = graph.node(String(node.id)) as Required<{
    x: number;
    y: number;
    width: number;
    height: number;
  }>;
  return { node, x: x - width / 2, y: y - height / 2, width, height, inside };
}

function extent(nodes: readonly PlacedNode[], edges: readonly PlacedEdge[]): { width: number; height: number } {
  const right = [...nodes.map((each) => each.x + each.width), ...edges.flatMap((e) => e.points.map((p) => p.x))];
  const bottom = nodes.map((each) => each.y + each.height);
  return { width: right.reduce((a, b) => Math.max(a, b), 0), height: bottom.reduce((a, b) => Math.max(a, b), 0) };
}

/** A smooth line through the points of an edge. */
export function curve(points: PlacedEdge["points"]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let path = `M${first.x} ${first.y}`;
  for (let at = 0; at < rest.length; at++) {
    const [here, next] = [rest[at], rest[at + 1]];
    if (!here) continue;
    if (!next) path += `L${here.x} ${here.y}`;
    else path += `Q${here.x} ${here.y} ${(here.x + next.x) / 2} ${(here.y + next.y) / 2}`;
  }
  return path;
}
