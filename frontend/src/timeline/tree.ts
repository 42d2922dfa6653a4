/** A tree of times, as flame graphs and the table of calls draw it. */
import type { CallTreeAnswer } from "./wire";

export interface CallNode {
  readonly id: number;
  readonly parent: number;
  readonly name: string;
  readonly events: number;
  readonly total: number;
  readonly self: number;
  readonly children: readonly number[];
}

export interface Calls {
  readonly nodes: readonly CallNode[];
  readonly roots: readonly number[];
  readonly total: number;
  readonly leftOut: number;
}

/** What is in a node comes in the order of time, the longest first, unless it `keepsOrder`. */
export function callsOf(answer: CallTreeAnswer, keepsOrder = false): Calls {
  const children: number[][] = answer.parent.map(() => []);
  const roots: number[] = [];
  for (const [id, parent] of answer.parent.entries()) {
    if (parent < 0) roots.push(id);
    else (children[parent] as number[]).push(id);
  }
  const timeOf = (id: number) => (keepsOrder ? 0 : (answer.total_ps[id] as number));
  const byTime = (list: number[]) => list.sort((a, b) => timeOf(b) - timeOf(a) || a - b);
  const nodes = answer.parent.map((parent, id) => ({
    ...{ id, parent, name: answer.name[id] as string, events: answer.events[id] as number },
    ...{ total: answer.total_ps[id] as number, self: answer.self_ps[id] as number },
    children: byTime(children[id] as number[]),
  }));
  byTime(roots);
  const total = roots.reduce((sum, id) => sum + (nodes[id] as CallNode).total, 0);
  return { nodes, roots, total, leftOut: answer.left_out };
}

export interface FlameBlock {
  readonly node: CallNode;
  /** Shares of the width, 0 to 1. */
  readonly left: number;
  readonly width: number;
  readonly level: number;
}

/** Narrower ones cannot be seen or hit. */
const THINNEST = 0.001;

/** The blocks of a flame graph, of all or of one node and what it calls. */
export function flameOf({ nodes, roots, total }: Calls, focus: number | null): FlameBlock[] {
  const top = focus === null ? roots : nodes[focus] ? [focus] : roots;
  const whole = focus === null || !nodes[focus] ? total : (nodes[focus] as CallNode).total;
  const blocks: FlameBlock[] = [];
  if (!(whole > 0)) return blocks;
  const place = (list: readonly number[], from: number, level: number) => {
    let left = from;
    for (const id of list) {
      const node = nodes[id] as CallNode;
      const width = node.total / whole;
      if (width >= THINNEST) {
        blocks.push({ node, left, width, level });
        place(node.children, left, level + 1);
      }
      left += width;
    }
  };
  place(top, 0, 0);
  return blocks;
}

/** The nodes from a root down to one. */
export function pathOf({ nodes }: Calls, id: number): CallNode[] {
  const path: CallNode[] = [];
  for (let at = id; at >= 0 && nodes[at]; at = (nodes[at] as CallNode).parent) path.unshift(nodes[at] as CallNode);
  return path;
}

/** What is open at first: the way along the longest callees while one of them holds most of the time. */
export function hotPath({ nodes, roots }: Calls): ReadonlySet<number> {
  const open = new Set<number>();
  let list = roots;
  for (;;) {
    const first = nodes[list[0] ?? -1];
    if (!first?.children.length) return open;
    open.add(first.id);
    if ((nodes[first.children[0] as number] as CallNode).total < first.total * 0.5) return open;
    list = first.children;
  }
}
