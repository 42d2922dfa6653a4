import { describe, expect, it } from "vitest";
import { shapesText, shortKernel, shortPath } from "../src/names";
import { evidenceLink } from "../src/pages/advice/evidence";
import { isWithoutDevice } from "../src/pages/input/graph";
import { longestOps } from "../src/pages/shared/examples";
import { headline } from "../src/pages/shared/Findings";
import { tellingTypes } from "../src/pages/summary/topOps";
import { parseHash } from "../src/router";

describe("names", () => {
  it.each([
    ["void cudnn::detail::dgrad_engine<float, 512>(int, float const*)", "dgrad_engine<float, 512>"],
    [
      "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, " +
        "at::detail::Array<char*, 3> >(int)",
      "vectorized_elementwise_kernel<4, AddFunctor<float>, Array<char*, 3> >",
    ],
    ["void (anonymous namespace)::softmax<float>(float*)", "softmax<float>"],
    ["volta_sgemm_64x64_nt", "volta_sgemm_64x64_nt"],
    ["Memset (Device)", "Memset (Device)"],
    ["loop_transpose_fusion", "loop_transpose_fusion"],
    ["lib/transformers/image_transforms.py(390): normalize", "transformers/image_transforms.py:390 normalize"],
  ])("%s is written %s", (long, short) => expect(shortKernel(long)).toBe(short));

  it.each([
    ["/usr/lib/python3/site-packages/torch/nn/modules/module.py(12): f", "modules/module.py:12 f"],
    ["train.py(3): <module>", "train.py:3"],
  ])("%s is written %s", (long, short) => expect(shortPath(long)).toBe(short));

  it.each([
    ["[[32,3,224,224],[64],[]]", "32×3×224×224, 64"],
    ["[[[4,8],[4]],[2]]", "(4×8, 4), 2"],
    ["[[],[]]", "scalars"],
    ["float32[3,4]", "float32[3,4]"],
  ])("shapes %s are written %s", (raw, text) => expect(shapesText(raw)).toBe(text));
});

describe("the evidence of an advice", () => {
  it.each([
    [{ tool: "op-stats", key: 'aten::cat "x"', value_ms: 1 }, { "ops.filter": 'name="aten::cat x"' }],
    [{ tool: "steps", key: "input", value_ms: 1 }, { "steps.sort": "-input_ms" }],
    [{ tool: "pod-viewer", key: "worker1", value_ms: 1 }, { "rows.filter": 'host="worker1"' }],
    [{ tool: "overview", key: "input", value_ms: 1 }, {}],
  ])("%o leads to its row", (row, params) => {
    const { tool, params: found } = parseHash(evidenceLink(row));
    expect(tool).toBe(row.tool);
    expect({ ...found }).toEqual(params);
  });
});

describe("a stage of the input", () => {
  it("leads to its longest op", () => {
    const rows = [
      { op: "Map", category: "preprocessing", self_ms: 2 },
      { op: "Batch", category: "preprocessing", self_ms: 3 },
      { op: "Copy", category: "enqueue", self_ms: 1 },
      { op: "None", category: "other", self_ms: 0 },
    ];
    expect([...longestOps(rows)]).toEqual([
      ["preprocessing", "Batch"],
      ["enqueue", "Copy"],
    ]);
  });
});

describe("where the host computes", () => {
  const step = (input_ms: number, waiting_most = "h /device:GPU:0", complete = true) => ({
    input_ms,
    waiting_most,
    complete,
  });

  it("speak of devices only where one took part", () => {
    expect(isWithoutDevice([step(1, "vm host"), step(2, "vm host")])).toBe(true);
    expect(isWithoutDevice([step(1), step(2, "vm host")])).toBe(false);
    expect(isWithoutDevice([])).toBe(false);
  });
});

describe("the types of ops on the summary", () => {
  const field = (name: string) => ({
    ...{ name, label: name, unit: "", doc: `${name}, explained` },
    ...{ kind: "float" as const, role: "measure" as const },
  });
  const ops = {
    kind: "table" as const,
    id: "top_ops",
    title: "Top 10 ops",
    fields: ["name", "category", "self_time_ms", "self_percent", "calls"].map(field),
    row_count: 1,
    key: "top_ops",
  };
  const top_op_types = [{ category: "Cast", self_time_ms: 25.4, self_percent: 42.2, calls: 1568 }];

  it("stand there where no op by itself takes much", () => {
    expect(tellingTypes({ top_ops: [{ name: "layer_7/Cast", self_percent: 0.8 }], top_op_types }, ops)).toMatchObject({
      key: "top_op_types",
      row_count: 1,
      columns: { category: ["Cast"], self_time_ms: [25.4], self_percent: [42.2], calls: [1568] },
    });
  });

  it.each([
    ["one op takes much", [{ name: "MatMul", self_percent: 40 }], top_op_types],
    ["there are no ops", [], top_op_types],
    ["no types are known", [{ name: "Cast", self_percent: 1 }], []],
  ])("do not where %s", (_, top_ops, types) => {
    expect(tellingTypes({ top_ops, top_op_types: types }, ops)).toBeNull();
  });
});

describe("a headline", () => {
  const long = "37.4 % of each step is computation on the device; the largest part is `conv` (165 calls of 144 us)";
  it("ends with its first clause where a finding is long", () =>
    expect(headline(long)).toEqual([
      "37.4 % of each step is computation on the device",
      "the largest part is `conv` (165 calls of 144 us)",
    ]));
  it("has as many clauses as it has room for, and none that is cut in code or in brackets", () => {
    const waits = "Longest part: 60.3 % of each step is Python in the loop, while all 2 devices are idle";
    expect(headline(waits)[0]).toBe("Longest part: 60.3 % of each step is Python in the loop");
    expect(headline(`\`f(a, b)\` takes ${"very ".repeat(14)}long, in all`)[0]).toMatch(/long$/);
    expect(headline(`x (1, 2) takes ${"very ".repeat(14)}long, in all`)[0]).toMatch(/long$/);
  });
  it("is the whole of a short one", () => expect(headline("not input-bound: 0.8 % waits")).toHaveLength(1));
});
