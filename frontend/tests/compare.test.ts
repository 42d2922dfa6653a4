import { describe, expect, it } from "vitest";
import type { Report } from "../src/api";
import {
  averages,
  COMPARABLE,
  type Comparable,
  comparablesOf,
  isCompared,
  savings,
  shared,
} from "../src/pages/compare/comparable";
import { compared, stepCounts, toneOf } from "../src/pages/compare/compare";
import type { Advice, OverviewReport } from "../src/pages/shared/reports";

const MODULES = COMPARABLE.modules as Comparable;
const row = (module: string, device_us: number, calls = 1) => ({ module, device_us, calls });
const table = (data: ReturnType<typeof compared>) =>
  Array.from({ length: data.rowCount }, (_, at) =>
    Object.fromEntries(data.fields.map((field) => [field.name, data.columns[field.name]?.[at]])),
  );

describe("the steps that totals belong to", () => {
  const overview = (steps_a_host: number, steps_source = "markers") =>
    ({ steps_a_host, steps_source, steps: [] }) as unknown as OverviewReport;

  it("are all that a host recorded, also where the hosts have none in common", () => {
    expect(stepCounts(overview(7.5), overview(10))).toEqual({ mine: 7.5, theirs: 10 });
  });

  it("are unknown where the whole capture stands for a step, and while a side is read", () => {
    expect(stepCounts(overview(1, "none"), overview(10))).toBeNull();
    expect(stepCounts(null, overview(10))).toBeNull();
  });
});

describe("two sides of a table", () => {
  it("adds up rows of one name, divides by steps, and puts the largest difference first", () => {
    const mine = [row("gemm", 30, 4), row("gemm", 10, 4), row("copy", 6, 2)];
    const theirs = [row("gemm", 24, 4), row("copy", 100, 8)];
    expect(table(compared(MODULES, mine, theirs, { mine: 2, theirs: 4 }))).toEqual([
      { module: "copy", before: 25, after: 3, difference: -22, change_percent: -88, before_count: 2, after_count: 1 },
      {
        module: "gemm",
        before: 6,
        after: 20,
        difference: 14,
        change_percent: (100 * 14) / 6,
        before_count: 1,
        after_count: 4,
      },
    ]);
  });

  it("says unknown, not zero, where one side has no such row", () => {
    expect(table(compared(MODULES, [row("new", 5)], [row("old", 4)], null))).toEqual([
      {
        module: "new",
        before: null,
        after: 5,
        difference: 5,
        change_percent: null,
        before_count: null,
        after_count: 1,
      },
      {
        module: "old",
        before: 4,
        after: null,
        difference: -4,
        change_percent: null,
        before_count: 1,
        after_count: null,
      },
    ]);
  });

  it("leaves out what neither side spends time on", () => {
    expect(compared(MODULES, [row("nothing", 0)], [row("nothing", 0)], null).rowCount).toBe(0);
  });

  it("finds the columns by name, whatever unit is behind it", () => {
    const column = (name: string) => ({
      ...{ name, label: name, unit: "ms", doc: "" },
      ...{ kind: "float" as const, role: "measure" as const },
    });
    const fields = ["kernel", "before_ms", "after_ms", "difference_ms"].map(column);
    const data = {
      fields,
      columns: { kernel: ["a", "b"], before_ms: [10, 90], after_ms: [15, 80], difference_ms: [5, -10] },
      rowCount: 2,
    };
    expect([0, 1].map((at) => toneOf(data, at))).toEqual(["bad", "good"]);
  });

  it("calls more time bad, less good, and hardly any difference neither", () => {
    const data = compared(
      MODULES,
      [row("a", 20), row("b", 10), row("c", 70.01)],
      [row("a", 10), row("b", 20), row("c", 70)],
      null,
    );
    expect([0, 1, 2].map((at) => toneOf(data, at))).toEqual(["bad", "good", null]);
  });
});

describe("what of a report is laid side by side", () => {
  const sideOf = (tool: string, report: object) => (COMPARABLE[tool] as Comparable).rows(report as unknown as Report);

  it("is of an idle stream each reason by itself", () => {
    const rows = [{ host: "h", device: "GPU:0", stream: "s", host_wait_ms: 3, kernel_wait_ms: 2, other_ms: 0 }];
    expect(table(compared(COMPARABLE.idle as Comparable, sideOf("idle", { rows }) ?? [], [], null))).toEqual([
      {
        device: "GPU:0",
        stream: "s",
        waits_for: "the host",
        before: null,
        after: 3,
        difference: 3,
        change_percent: null,
      },
      {
        device: "GPU:0",
        stream: "s",
        waits_for: "a kernel",
        before: null,
        after: 2,
        difference: 2,
        change_percent: null,
      },
    ]);
  });

  it("is of a collective its operation, ranks and size, whatever its group is called", () => {
    const row = (group: string, total_us: number) => ({
      operation: "all_reduce",
      ranks: 2,
      group,
      bytes: 1024,
      total_us,
      count: 3,
    });
    const [mine, theirs] = [[row("0", 30), row("1", 10)], [row("7", 20)]];
    const data = compared(COMPARABLE.distributed as Comparable, mine, theirs, null);
    expect(table(data)).toEqual([
      {
        operation: "all_reduce",
        ranks: 2,
        bytes: 1024,
        before: 20,
        after: 40,
        difference: 20,
        change_percent: 100,
        before_count: 3,
        after_count: 6,
      },
    ]);
    expect(data.fields.slice(0, 3).map(({ kind, unit }) => [kind, unit])).toEqual([
      ["str", ""],
      ["int", ""],
      ["int", "bytes"],
    ]);
  });

  it("is of advice the time that each kind saves at most, and which kinds only one side gets", () => {
    const advice = (kind: string, now: number | null, then: number | null) =>
      ({ class: kind, step_time_ms: now, predicted_step_time_ms: then }) as unknown as Advice;
    const mine = [
      advice("input_python", 40, 30),
      advice("input_python", 40, 25),
      advice("host_sync", 40, 38),
      advice("low_precision", null, null),
    ];
    const theirs = [advice("host_sync", 20, 17), advice("none", null, null)];
    const data = compared(COMPARABLE.advice as Comparable, savings(mine), savings(theirs), { mine: 5, theirs: 10 });
    expect(table(data)).toEqual([
      { advice: "input python", before: null, after: 15, difference: 15, change_percent: null },
      { advice: "host sync", before: 3, after: 2, difference: -1, change_percent: (100 * -1) / 3 },
    ]);
    expect(shared(mine, theirs)).toEqual([
      "Advised after only: input python, low precision.",
      "Advised of both: host sync.",
    ]);
    expect(shared(theirs, [])).toEqual(["Advised after only: host sync."]);
  });

  it("is of a counter the mean of all samples of all hosts, in the order of the report, and no news", () => {
    const row = (host: string, counter: string, mean: number, samples: number) => ({
      host,
      place: "System",
      counter,
      unit: counter.slice(-1),
      mean,
      samples,
    });
    const mine = averages([row("a", "CPU %", 40, 30), row("a", "power W", 250, 10), row("b", "CPU %", 80, 10)]) ?? [];
    const spec = COMPARABLE.system as Comparable;
    expect(table(compared(spec, mine, averages([row("c", "CPU %", 100, 5)]) ?? [], { mine: 2, theirs: 2 }))).toEqual([
      { place: "System", counter: "CPU %", unit: "%", before: 100, after: 50, difference: -50, change_percent: -50 },
      {
        place: "System",
        counter: "power W",
        unit: "W",
        before: null,
        after: 250,
        difference: 250,
        change_percent: null,
      },
    ]);
    expect(spec.isNeutral).toBe(true);
  });

  it("is of tf.data the iterators of the slow call, and the pipelines per step", () => {
    const report = (self_us: number, total_ms: number) =>
      ({
        graph: [
          { name: "Map", self_us },
          { name: "BatchV2", self_us: 5 },
          { name: "Map", self_us: 1 },
        ],
        pipelines: [
          { host: "a", name: "Host:0", total_ms, calls: 10 },
          { host: "b", name: "Host:0", total_ms, calls: 10 },
        ],
        bottleneck: { iterator: "Map", self_us },
      }) as unknown as Report;
    const [iterators, pipelines] = comparablesOf("tf-data") as [Comparable, Comparable];
    const [mine, theirs] = [report(99, 30), report(9, 10)];
    const counts = { mine: 10, theirs: 5 };
    expect(table(compared(iterators, iterators.rows(mine) ?? [], iterators.rows(theirs) ?? [], counts))).toEqual([
      { iterator: "Map", before: 10, after: 100, difference: 90, change_percent: 900 },
      { iterator: "BatchV2", before: 5, after: 5, difference: 0, change_percent: 0 },
    ]);
    expect(table(compared(pipelines, pipelines.rows(mine) ?? [], pipelines.rows(theirs) ?? [], counts))).toEqual([
      { pipeline: "Host:0", before: 4, after: 6, difference: 2, change_percent: 50, before_count: 4, after_count: 2 },
    ]);
    expect(iterators.lines?.(mine, { ...theirs, bottleneck: null } as Report)).toEqual([
      "Bottleneck before: none, no call was slow. After: Map, 99.0 µs of its own.",
    ]);
  });

  it("is nothing of a tool that is not known", () => {
    expect([comparablesOf("zork"), comparablesOf("constructor")]).toEqual([[], []]);
    expect(["zork", "constructor", "timeline", "overview", "idle"].map(isCompared)).toEqual([
      false,
      false,
      false,
      true,
      true,
    ]);
  });

  it.each(["idle", "op-shapes", "sequences", "modules"])(
    "is unknown where the report of %s came without its rows",
    (tool) => {
      expect(sideOf(tool, {})).toBeNull();
    },
  );
});
