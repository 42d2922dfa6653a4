import { describe, expect, it } from "vitest";
import type { Report } from "../src/api";
import { COMPARABLE, compared, isBeyondNoise, toneOf, type Comparable } from "../src/pages/compare";

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
    const side = (input: number) => spec.rows({ breakdown_ms: { input, other: 0 } } as unknown as Report);
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
