import { describe, expect, it } from "vitest";
import { type MemoryEvent, memoryOverTime, momentsUpTo } from "../src/charts/memory";
import { names, nearestPlace, outlines, roundTicks, seenPoints } from "../src/charts/plot";
import { type Column, markCount, stackedColumns } from "../src/charts/steps";
import { causeParts } from "../src/design/causes";
import { PALETTES } from "../src/design/colours";
import { type GraphNode, layout, NODE } from "../src/pages/input/graph";

const palette = PALETTES.light;
const column = (label: string, parts: Record<string, number>): Column => ({ label, title: label, total_ms: 10, parts });

describe("moments on an axis", () => {
  it("have one unit, and differ where they are near", () => {
    expect([0, 20_000, 20_000.5].map(momentsUpTo(98_000))).toEqual(["0 s", "20 s", "20.0005 s"]);
    expect([200, 1_000].map(momentsUpTo(1_030))).toEqual(["200 ms", "1,000 ms"]);
  });
});

describe("stacked columns", () => {
  const columns = [column("0", { input: 4, device_compute: 6, copy: 0 }), column("1", { input: 0, device_compute: 9 })];
  const parts = causeParts(palette.surface);
  const { columns: stacks = [] } = stackedColumns(columns, { parts, xName: "step" });

  it("hold exactly what they were given, and leave out what nothing happened in", () => {
    expect(stacks.map(({ name, boxes }) => [name, boxes.map(({ low, high }) => [low, high])])).toEqual([
      [
        "Input",
        [
          [0, 4],
          [0, 0],
        ],
      ],
      [
        "Device compute",
        [
          [4, 10],
          [0, 9],
        ],
      ],
    ]);
    expect(markCount(columns, parts)).toBe(3);
  });
});

describe("memory over time", () => {
  const event = (time_ms: number, heap: number | null): MemoryEvent => ({
    ...{
      event: null,
      requested_bytes: null,
      allocated_bytes: null,
      op: null,
      step: null,
      region: null,
      dtype: null,
      shape: null,
      stack_bytes: null,
      free_bytes: null,
      fragmentation_percent: null,
    },
    ...{ memory: null, host: null, reserved_bytes: null },
    time_ms,
    in_use_bytes: 5,
    heap_bytes: heap,
  });

  it("draws the heap, or what is in use where the heap is not known apart", () => {
    const { curves = [] } = memoryOverTime([event(1, 7), event(2, null)], { peak_ms: null, withFree: false });
    expect(curves.map(({ name, x, y }) => [name, x, y])).toEqual([["Heap", [1, 2], [7, 5]]]);
  });
});

describe("an axis", () => {
  it("has round values, and for bytes powers of two", () => {
    expect(roundTicks(0, 87, 5)).toEqual([0, 20, 40, 60, 80]);
    expect(roundTicks(-0.3, 0.3, 4)).toEqual([-0.2, 0, 0.2]);
    expect(roundTicks(0, 3000, 4, 2)).toEqual([0, 1024, 2048]);
    expect(names(["a", "b", "c"]).ticks(-0.5, 2.5, 9)).toEqual([0, 1, 2]);
    expect(names(Array(100).fill("")).ticks(-0.5, 99.5, 6)).toEqual([0, 20, 40, 60, 80]);
  });
});

describe("a curve", () => {
  const same = (value: number) => value;

  it("breaks where nothing is known, and holds each value until the next if it is stepped", () => {
    const curve = { name: "", colour: "", x: [0, 1, 2, 3], y: [1, 2, null, 4] };
    expect(outlines(curve, same, same, 9).line).toBe("M0.0 1.0L1.0 2.0M3.0 4.0");
    const stepped = { ...curve, y: [1, 2, 3, 4], isStepped: true, fill: 1 };
    expect(outlines(stepped, same, same, 9).area).toContain("M0.0 1.0L1.0 1.0L1.0 2.0L2.0 2.0");
  });

  it("keeps the least and the largest of what one pixel holds", () => {
    const x = Array.from({ length: 1000 }, (_, at) => at);
    const y = x.map((at) => (at === 501 ? 9 : at === 502 ? -9 : 0));
    const seen = seenPoints({ x, y }, 0, 1000, 10);
    expect(seen.length).toBeLessThan(40);
    expect(seen).toEqual(expect.arrayContaining([0, 501, 502, 999]));
  });
});

describe("what is under the mouse", () => {
  it("is the nearest place", () => {
    expect([-5, 0.4, 0.6, 9].map((at) => nearestPlace([0, 1, 2], at))).toEqual([0, 0, 1, 2]);
    expect(nearestPlace([], 1)).toBe(-1);
  });
});

describe("the graph of an input pipeline", () => {
  const node = (id: number, parent: number | null, critical = true): GraphNode => ({
    id,
    parent,
    name: `n${id}`,
    long_name: "",
    start_ms: 0,
    total_us: 1,
    self_us: 1,
    calls: 1,
    critical,
    bottleneck: false,
  });

  it("places readers above the middle of what they read from", () => {
    //     0
    //    / \
    //   1   2
    //   |
    //   3
    const { nodes, edges, width, height } = layout([node(0, null), node(1, 0), node(2, 0, false), node(3, 1)]);
    const step = NODE.width + NODE.gapX;
    const level = NODE.height + NODE.gapY;
    expect(nodes.map(({ x, y }) => [x, y])).toEqual([
      [step / 2, 0],
      [0, level],
      [step, level],
      [0, 2 * level],
    ]);
    expect(edges.map((edge) => [edge.from.node.id, edge.to.node.id, edge.critical])).toEqual([
      [1, 0, true],
      [2, 0, false],
      [3, 1, true],
    ]);
    expect([width, height]).toEqual([2 * step - NODE.gapX, 3 * level - NODE.gapY]);
  });

  it("survives a node that reads from itself or from nobody there", () => {
    expect(layout([node(0, 0), node(1, 7)]).nodes).toHaveLength(2);
    expect(layout([]).nodes).toEqual([]);
  });
});
