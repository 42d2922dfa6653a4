/** Positions of the nodes of an input pipeline's graph: each node below its reader. */
import type { Row } from "../shared/reports";

export interface GraphNode {
  readonly id: number;
  readonly parent: number | null;
  readonly name: string;
  readonly long_name: string;
  readonly start_ms: number;
  readonly total_us: number;
  readonly self_us: number;
  readonly calls: number;
  readonly critical: boolean;
  readonly bottleneck: boolean;
  readonly parallel?: boolean;
  readonly dataset_op?: string | null;
}

export interface Placed {
  readonly node: GraphNode;
  readonly x: number;
  readonly y: number;
}

export interface Edge {
  readonly from: Placed;
  readonly to: Placed;
  readonly critical: boolean;
}

export interface Layout {
  readonly nodes: readonly Placed[];
  readonly edges: readonly Edge[];
  readonly width: number;
  readonly height: number;
}

export const NODE = { width: 232, height: 86, gapX: 28, gapY: 46 } as const;

/** A tidy tree: leaves side by side, every reader above the middle of what it reads from. */
export function layout(nodes: readonly GraphNode[]): Layout {
  const known = new Set(nodes.map((node) => node.id));
  const children = new Map<number, GraphNode[]>();
  const roots = nodes.filter((node) => node.parent === null || !known.has(node.parent) || node.parent === node.id);
  for (const node of nodes)
    if (!roots.includes(node))
      children.set(node.parent as number, [...(children.get(node.parent as number) ?? []), node]);
  const placed = new Map<number, Placed>();
  let column = 0;
  let depth = 0;
  const place = (node: GraphNode, level: number): number => {
    depth = Math.max(depth, level);
    const below = (children.get(node.id) ?? []).filter((child) => !placed.has(child.id));
    const xs = below.map((child) => place(child, level + 1));
    const x = xs.length ? ((xs[0] as number) + (xs.at(-1) as number)) / 2 : column++ * (NODE.width + NODE.gapX);
    placed.set(node.id, { node, x, y: level * (NODE.height + NODE.gapY) });
    return x;
  };
  for (const root of roots) if (!placed.has(root.id)) place(root, 0);
  const all = nodes.flatMap((node) => placed.get(node.id) ?? []);
  return {
    nodes: all,
    edges: edgesOf(all, placed),
    width: Math.max(1, column) * (NODE.width + NODE.gapX) - NODE.gapX,
    height: (depth + 1) * (NODE.height + NODE.gapY) - NODE.gapY,
  };
}

function edgesOf(all: readonly Placed[], placed: ReadonlyMap<number, Placed>): Edge[] {
  return all.flatMap((from) => {
    const to = from.node.parent === null ? undefined : placed.get(from.node.parent);
    return to && to !== from ? [{ from, to, critical: from.node.critical && to.node.critical }] : [];
  });
}

/** Whether the host itself computes, so that the host and not a device waits. */
export function isWithoutDevice(steps: readonly Row[]): boolean {
  return steps.length > 0 && steps.every((row) => String(row.waiting_most).endsWith(" host"));
}
