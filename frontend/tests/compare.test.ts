import { describe, expect, it } from "vitest";
import type { Report } from "../src/api";
import { averages, COMPARABLE, comparablesOf, savings, shared, spreadOf, type Comparable } from "../src/pages/comparable";
import { compared, isBeyondNoise, toneOf } from "../src/pages/compare";
import type { Advice, StepRow } from "../src/pages/reports";

const KERNELS = COMPARABLE["kernel-stats"] as Comparable;
const row = (kernel: string, total_us: number, occurrences = 1) => ({ kernel, total_us, occurrences });
const table = (data: ReturnType<typeof compared>) => Array.from({ length: data.rowCount }, (_, at) => Object.fromEntries(data.fields.map((field) => [field.name, data.columns[field.name]?.[at]])));

describe("two sides of a table", () => {
  it("adds up rows of one name, divides by steps, and puts the largest difference first", () => {
    const mine = [row("gemm", 30, 4), row("gemm", 10, 4), row("copy", 6, 2)];
    const theirs = [row("gemm", 24, 4), row("copy", 100, 8)];
    expect(table(compared(KERNELS, mine, theirs, { mine: 2, theirs: 4 }))).toEqual([
      { kernel: "copy", this: 3, other: 25, difference: -22, change_percent: -88, this_count: 1, other_count: 2 },
      { kernel: "gemm", this: 20, other: 6, difference: 14, change_percent: (100 * 14) / 6, this_count: 4, other_count: 1 },
    ]);
  });

  it("says unknown, not zero, where one side has no such row", () => {
    expect(table(compared(KERNELS, [row("new", 5)], [row("old", 4)], null))).toEqual([
      { kernel: "new", this: 5, other: null, difference: 5, change_percent: null, this_count: 1, other_count: null },
      { kernel: "old", this: null, other: 4, difference: -4, change_percent: null, this_count: null, other_count: 1 },
    ]);
  });

  it("leaves out what neither side spends time on", () => {
    expect(compared(KERNELS, [row("nothing", 0)], [row("nothing", 0)], null).rowCount).toBe(0);
  });

  it("calls more time bad, less good, and hardly any difference neither", () => {
    const data = compared(KERNELS, [row("a", 20), row("b", 10), row("c", 70.01)], [row("a", 10), row("b", 20), row("c", 70)], null);
    expect([0, 1, 2].map((at) => toneOf(data, at))).toEqual(["bad", "good", null]);
  });

  it("takes the categories of the mean step as they are, however many steps there are", () => {
    const spec = COMPARABLE["overview"] as Comparable;
    const side = (input: number) => spec.rows({ breakdown_ms: { input, other: 0 } } as unknown as Report) ?? [];
    expect(table(compared(spec, side(6), side(8), { mine: 2, theirs: 4 }))).toEqual([{ category: "input", this: 6, other: 8, difference: -2, change_percent: -25 }]);
  });
});

describe("the scatter of steps", () => {
  it.each([
    [{ mean: 10, std: 1, count: 25 }, { mean: 12, std: 1, count: 25 }, true],
    [{ mean: 10, std: 4, count: 4 }, { mean: 12, std: 4, count: 4 }, false],
    [{ mean: 10, std: null, count: 1 }, { mean: 12, std: 1, count: 4 }, null],
    [{ mean: null, std: null, count: 0 }, { mean: 12, std: 1, count: 4 }, null],
  ])("%o and %o: %s", (a, b, expected) => expect(isBeyondNoise(a, b)).toBe(expected));
});

describe("what of a report is laid side by side", () => {
  const sideOf = (tool: string, report: object) => (COMPARABLE[tool] as Comparable).rows(report as unknown as Report);
  const step = (number: number, duration_ms: number, complete = true, host = "a") => ({ step: number, host, duration_ms, complete }) as unknown as StepRow;

  it("is of steps the spread of their times, of each on its slowest host, without those that are cut", () => {
    const rows = [step(1, 10), step(1, 12, true, "b"), step(2, 20), step(3, 16), step(4, 14), step(5, 900, false)];
    expect(spreadOf(rows)).toEqual([
      { step_time: "mean", ms: 15.5 },
      { step_time: "shortest", ms: 12 },
      { step_time: "a quarter are shorter than", ms: 13.5 },
      { step_time: "median", ms: 15 },
      { step_time: "a quarter are longer than", ms: 17 },
      { step_time: "one in ten is longer than", ms: 18.8 },
      { step_time: "longest", ms: 20 },
      { step_time: "standard deviation", ms: Math.sqrt(35 / 3) },
    ]);
    expect(spreadOf([])).toEqual([]);
  });

  it("keeps the order of a spread, whatever differs most", () => {
    const side = (...times: number[]) => spreadOf(times.map((ms, at) => step(at, ms))) ?? [];
    const names = table(compared(COMPARABLE["steps"] as Comparable, side(10, 12), side(10, 90), null)).map((row) => row["step_time"]);
    expect(names).toEqual(side(1, 2).map((row) => row["step_time"]));
  });

  it("is of an idle stream each reason by itself", () => {
    const rows = [{ host: "h", device: "GPU:0", stream: "s", host_wait_ms: 3, kernel_wait_ms: 2, other_ms: 0 }];
    expect(table(compared(COMPARABLE["idle"] as Comparable, sideOf("idle", { rows }) ?? [], [], null))).toEqual([
      { device: "GPU:0", stream: "s", waits_for: "the host", this: 3, other: null, difference: 3, change_percent: null },
      { device: "GPU:0", stream: "s", waits_for: "a kernel", this: 2, other: null, difference: 2, change_percent: null },
    ]);
  });

  it("is of a collective its operation, ranks and size, whatever its group is called", () => {
    const row = (group: string, total_us: number) => ({ operation: "all_reduce", ranks: 2, group, bytes: 1024, total_us, count: 3 });
    const [mine, theirs] = [[row("0", 30), row("1", 10)], [row("7", 20)]];
    const data = compared(COMPARABLE["distributed"] as Comparable, mine, theirs, null);
    expect(table(data)).toEqual([{ operation: "all_reduce", ranks: 2, bytes: 1024, this: 40, other: 20, difference: 20, change_percent: 100, this_count: 6, other_count: 3 }]);
    expect(data.fields.slice(0, 3).map(({ kind, unit }) => [kind, unit])).toEqual([
      ["str", ""],
      ["int", ""],
      ["int", "bytes"],
    ]);
  });

  it("is of advice the time that each kind saves at most, and which kinds only one side gets", () => {
    const advice = (kind: string, now: number | null, then: number | null) => ({ class: kind, step_time_ms: now, predicted_step_time_ms: then }) as unknown as Advice;
    const mine = [advice("input_python", 40, 30), advice("input_python", 40, 25), advice("host_sync", 40, 38), advice("low_precision", null, null)];
    const theirs = [advice("host_sync", 20, 17), advice("none", null, null)];
    const data = compared(COMPARABLE["advice"] as Comparable, savings(mine), savings(theirs), { mine: 5, theirs: 10 });
    expect(table(data)).toEqual([
      { advice: "input python", this: 15, other: null, difference: 15, change_percent: null },
      { advice: "host sync", this: 2, other: 3, difference: -1, change_percent: (100 * -1) / 3 },
    ]);
    expect(shared(mine, theirs)).toEqual(["Advised here only: input python, low precision.", "In both: host sync."]);
    expect(shared(theirs, [])).toEqual(["Advised here only: host sync."]);
  });

  it("is of a counter the mean of all samples of all hosts, in the order of the report, and no news", () => {
    const row = (host: string, counter: string, mean: number, samples: number) => ({ host, place: "System", counter, unit: counter.slice(-1), mean, samples });
    const mine = averages([row("a", "CPU %", 40, 30), row("a", "power W", 250, 10), row("b", "CPU %", 80, 10)]) ?? [];
    const spec = COMPARABLE["system"] as Comparable;
    expect(table(compared(spec, mine, averages([row("c", "CPU %", 100, 5)]) ?? [], { mine: 2, theirs: 2 }))).toEqual([
      { place: "System", counter: "CPU %", unit: "%", this: 50, other: 100, difference: -50, change_percent: -50 },
      { place: "System", counter: "power W", unit: "W", this: 250, other: null, difference: 250, change_percent: null },
    ]);
    expect(spec.isNeutral).toBe(true);
  });

  it("is of tf.data the iterators of the slow call, and the pipelines per step", () => {
    const report = (self_us: number, total_ms: number) => ({
      graph: [{ name: "Map", self_us }, { name: "BatchV2", self_us: 5 }, { name: "Map", self_us: 1 }],
      pipelines: [{ host: "a", name: "Host:0", total_ms, calls: 10 }, { host: "b", name: "Host:0", total_ms, calls: 10 }],
      bottleneck: { iterator: "Map", self_us },
    }) as unknown as Report;
    const [iterators, pipelines] = comparablesOf("tf-data") as [Comparable, Comparable];
    const [mine, theirs] = [report(99, 30), report(9, 10)];
    const counts = { mine: 10, theirs: 5 };
    expect(table(compared(iterators, iterators.rows(mine) ?? [], iterators.rows(theirs) ?? [], counts))).toEqual([
      { iterator: "Map", this: 100, other: 10, difference: 90, change_percent: 900 },
      { iterator: "BatchV2", this: 5, other: 5, difference: 0, change_percent: 0 },
    ]);
    expect(table(compared(pipelines, pipelines.rows(mine) ?? [], pipelines.rows(theirs) ?? [], counts))).toEqual([
      { pipeline: "Host:0", this: 6, other: 4, difference: 2, change_percent: 50, this_count: 2, other_count: 4 },
    ]);
    expect(iterators.lines?.(mine, { ...theirs, bottleneck: null } as Report)).toEqual(["Bottleneck here: Map, 99.0 µs of its own. In the other: none, no call was slow."]);
  });

  it("is nothing of a tool that is not known", () => {
    expect([comparablesOf("zork"), comparablesOf("constructor")]).toEqual([[], []]);
  });

  it.each(["steps", "idle", "op-shapes", "sequences", "op-stats"])("is unknown where the report of %s came without its rows", (tool) => {
    expect(sideOf(tool, {})).toBeNull();
  });
});
