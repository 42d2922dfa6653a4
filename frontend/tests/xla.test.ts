import { describe, expect, it } from "vitest";
import { type MemoryPoint, peakOf, programMemory } from "../src/charts/programMemory";
import {
  boundsOf,
  countUnmarked,
  drawable,
  isAboveRoof,
  power,
  type Roof,
  type RoofPoint,
  roofLines,
  usedRoofs,
} from "../src/charts/roofline";
import { operations } from "../src/format";
import { ownRows } from "../src/pages/shared/ownRows";
import { type GraphNode, type GraphPart, hloAddress, type Picture } from "../src/pages/xla/graphData";
import { BOX, curve, placePart, placePicture } from "../src/pages/xla/graphLayout";

const node = (id: number, more: Partial<GraphNode> = {}): GraphNode => ({
  ...{ id, name: `n${id}`, category: "add", shape: "f32[8]", hops: 0, occurrences: 1, self_us: 1, on_path: false },
  ...{ opens: "", framework_op: "", source: "", flops: 8, bytes: 96 },
  ...more,
});

//  0 -> 1 -> 3
//  0 -> 2 -> 3
const DIAMOND: GraphPart = {
  nodes: [0, 1, 2, 3].map((id) => node(id, { on_path: id !== 2 })),
  edges: [
    [0, 1, 32, 0],
    [0, 2, 32, 0],
    [1, 3, 32, 0],
    [2, 3, 32, 0],
  ],
  cut: false,
};

describe("the layout of a graph", () => {
  it("puts users below their operands, side by side where neither uses the other", () => {
    const { nodes } = placePart(DIAMOND, {});
    const at = (id: number) => nodes.find((each) => each.node.id === id) as (typeof nodes)[number];
    expect(at(0).y).toBeLessThan(at(1).y);
    expect(at(1).y).toBe(at(2).y);
    expect(Math.abs(at(1).x - at(2).x)).toBeGreaterThanOrEqual(BOX.width);
    expect(at(3).y).toBeGreaterThan(at(1).y + BOX.height);
  });

  it("knows which edges lie on the expensive path", () => {
    const { edges } = placePart(DIAMOND, {});
    expect(edges.map(({ edge, onPath }) => [edge[0], edge[1], onPath])).toEqual([
      [0, 1, true],
      [0, 2, false],
      [1, 3, true],
      [2, 3, false],
    ]);
  });

  it("makes an open node as large as what is inside", () => {
    const inside = { "1": { nodes: [node(10), node(11)], edges: [[10, 11, 32, 0]], cut: false } } as Picture["inside"];
    const { nodes } = placePicture({
      ...DIAMOND,
      ...{ program: "p", instructions: 6, self_us: 4, path_us: 3, centre: -1 },
      inside,
    });
    const open = nodes.find((each) => each.node.id === 1);
    expect(open?.inside?.nodes.map((each) => each.node.id)).toEqual([10, 11]);
    expect(open?.height).toBeGreaterThan(2 * BOX.height);
    expect(nodes.find((each) => each.node.id === 2)?.height).toBe(BOX.height);
  });

  it("draws a graph with a circle, and one of a single node", () => {
    const circle = placePart(
      {
        nodes: [node(0), node(1)],
        edges: [
          [0, 1, 4, 0],
          [1, 0, 4, 0],
        ],
        cut: false,
      },
      {},
    );
    expect(circle.edges.every((edge) => edge.points.length > 1)).toBe(true);
    expect(placePart({ nodes: [node(0)], edges: [], cut: false }, {})).toMatchObject({ ...sizeOfOne, edges: [] });
  });

  it("draws smooth lines from the first point to the last", () => {
    expect(
      curve([
        { x: 0, y: 0 },
        { x: 0, y: 10 },
        { x: 20, y: 20 },
      ]),
    ).toBe("M0 0Q0 10 10 15L20 20");
    expect(curve([])).toBe("");
  });
});

const sizeOfOne = { width: BOX.width, height: BOX.height };

describe("addresses of graphs", () => {
  it("hold what is given and leave out what is not", () => {
    expect(hloAddress("a b", "graph", { host: null, program: "jit_f(1)", hops: 2, node: "" })).toBe(
      "api/sessions/a%20b/hlo/graph?program=jit_f%281%29&hops=2",
    );
  });
});

describe("operations", () => {
  it("are written in thousands of thousands", () => {
    expect([0, 98_304, 171_798_691_840, 2.5e15].map(operations)).toEqual([
      "0 FLOP",
      "98.3 kFLOP",
      "172 GFLOP",
      "2.5 PFLOP",
    ]);
  });
});

const point = (more: Partial<RoofPoint>): RoofPoint => ({
  ...{ rank: 1, kind: "op", name: "dot", category: "dot", self_us: 1, self_percent: 10, flop_per_byte: 10 },
  ...{
    gflop_per_s: 1000,
    gib_per_s: 1,
    compute_percent: 10,
    memory_percent: 1,
    efficiency_percent: 10,
    roof_gflop_per_s: 10_000,
  },
  ...{ bound_by: "compute", precision: "bf16", program: null, shapes: null, occurrences: 1, flops: null, bytes: null },
  ...more,
});
const compute = (name: string, tflop_per_s: number): Roof => ({
  ...{ device: "d", kind: "compute", name, tflop_per_s, gb_per_s: null },
});
const HBM: Roof = { device: "d", kind: "memory", name: "memory", tflop_per_s: null, gb_per_s: 1000 };

describe("the roofline", () => {
  it("marks what is above a roof", () => {
    expect([100, 101].map((share) => isAboveRoof(point({ memory_percent: share })))).toEqual([false, true]);
  });

  it("draws rows whose operations and bytes are known and not zero", () => {
    const rows = [point({ rank: 1 }), point({ rank: 2, flop_per_byte: null }), point({ rank: 3, gflop_per_s: 0 })];
    expect(drawable(rows).map((row) => row.rank)).toEqual([1]);
  });

  it("counts each row without a mark once", () => {
    const marked = point({ rank: 1, bound_by: "transfer" });
    const others = [point({ rank: 2, gflop_per_s: 0 }), point({ rank: 3, flop_per_byte: null, bound_by: null })];
    const rows = [marked, ...others, point({ rank: 4 })];
    expect(countUnmarked(rows, [marked])).toEqual({ moving: 1, unknown: 1, small: 1 });
  });

  it("shows the roofs that ops are measured against, equal ones as one", () => {
    const roofs = [compute("bf16 matrix", 10), compute("fp16 matrix", 10), compute("fp32 plain", 1), HBM];
    expect(usedRoofs(roofs, [point({})]).map((roof) => roof.name)).toEqual(["bf16, fp16 matrix", "memory"]);
    expect(usedRoofs(roofs, [point({ compute_percent: null })]).map((roof) => roof.name)).toEqual([
      "bf16, fp16 matrix",
      "fp32 plain",
      "memory",
    ]);
  });

  it("lets memory's roof end, and that of computing start, at the ridge", () => {
    const roofs = [compute("bf16 matrix", 10), HBM];
    const bounds = boundsOf([point({ flop_per_byte: 0.3, gflop_per_s: 20 })], roofs);
    expect(bounds).toEqual({ x: [0.01, 100], y: [10, 1e5] });
    expect(roofLines(roofs, bounds)).toEqual([
      { name: "memory", kind: "memory", from: [0.01, 10], to: [10, 10_000] },
      { name: "bf16 matrix", kind: "compute", from: [10, 10_000], to: [100, 10_000] },
    ]);
  });

  it("has bounds without any roof or point", () => {
    expect(boundsOf([], [])).toEqual({ x: [0.1, 100], y: [0.1, 100] });
    expect(roofLines([], boundsOf([], []))).toEqual([]);
  });

  it("writes powers of ten", () => {
    expect([0.001, 0.01, 0.1, 1, 100, 1000, 1e12].map(power)).toEqual([
      "10⁻³",
      "0.01",
      "0.1",
      "1",
      "100",
      "10³",
      "10¹²",
    ]);
  });
});

describe("the memory of a program", () => {
  const POINTS: MemoryPoint[] = [
    { position: 0, bytes: 100 },
    { position: 1, bytes: 300 },
    { position: 2, bytes: 300 },
    { position: 3, bytes: 150 },
  ];

  it("is fullest at the first of its highest points", () => {
    expect(peakOf(POINTS)).toEqual({ position: 1, bytes: 300 });
    expect(peakOf([])).toBeNull();
  });

  it("stacks temporaries on what lasts", () => {
    const { curves = [] } = programMemory(POINTS, 100);
    expect(curves.map(({ y, base }) => [y, base])).toEqual([
      [[100, 100, 100, 100], undefined],
      [
        [100, 300, 300, 150],
        [100, 100, 100, 100],
      ],
    ]);
  });
});

describe("the rows of one program", () => {
  it("are those of its name, without the column that names it", () => {
    const field = (name: string) => ({ name, label: name, unit: "", doc: "", kind: "str", role: "text" }) as const;
    const data = {
      fields: [field("program"), field("name")],
      columns: { program: ["f", "g", "f"], name: ["a", "b", "c"] },
      rowCount: 3,
    };
    const found = ownRows(data as unknown as Parameters<typeof ownRows>[0], { program: "f" });
    expect([found.rowCount, found.columns.name, found.fields.map((each) => each.name)]).toEqual([
      2,
      ["a", "c"],
      ["name"],
    ]);
  });
});
