import { describe, expect, it } from "vitest";
import { sharesSentence, tellApart } from "../src/names";
import {
  heatRange,
  heatTable,
  scaleOfSlowdowns,
  scaleOfWaits,
  slowdownsOfKinds,
  slowdownsOfRanks,
  waitsTable,
} from "../src/pages/ranks/heat";

describe("the heat map of steps and ranks", () => {
  const columns = {
    step: [1, 1, 2, 2, 1],
    rank: [10, 2, 10, 2, null],
    host: ["a", "b", "a", "b", "extra"],
    duration_ms: [5, 6, 7, null, 9],
  };

  it("orders ranks by number and leaves what was not recorded open", () => {
    const table = heatTable(columns, "duration_ms");
    expect(table.rows.map((rank) => rank.label)).toEqual(["Rank 2", "Rank 10", "extra"]);
    expect(table.columns).toEqual(["1", "2"]);
    expect([...table.values]).toEqual([6, Number.NaN, 5, 7, 9, Number.NaN]);
    expect(heatRange(table.values)).toEqual([5, 9]);
    expect(heatRange(new Float64Array([Number.NaN]))).toBeNull();
  });

  it("takes a thousand ranks of a hundred steps", () => {
    const cells = Array.from({ length: 100_000 }, (_, at) => at);
    const table = heatTable(
      {
        step: cells.map((at) => at % 100),
        rank: cells.map((at) => Math.floor(at / 100)),
        host: cells.map((at) => `h${Math.floor(at / 100)}`),
        duration_ms: cells,
      },
      "duration_ms",
    );
    expect(table.rows).toHaveLength(1000);
    expect(table.values[99_999]).toBe(99_999);
  });
});

describe("slowdowns", () => {
  const heat = {
    table: ["worker_by_step", "worker_by_step", "worker_by_step", "stage_by_kind", "stage_by_kind"],
    row: ["rank 0", "rank 0", "rank 1", "0", "1"],
    column: ["7", "8", "8", "forward", "forward"],
    slowdown: [1.3, 0.98, 1, 1, 1.2],
  };

  it("are told by rank and step, with the rank's host", () => {
    const table = slowdownsOfRanks(heat, new Map([["rank 0", "a"]]));
    expect(table.rows).toEqual([
      { label: "Rank 0", host: "a" },
      { label: "Rank 1", host: "" },
    ]);
    expect(table.columns).toEqual(["7", "8"]);
    expect([...table.values]).toEqual([1.3, 0.98, Number.NaN, 1]);
  });

  it("are told by kind and stage", () => {
    const table = slowdownsOfKinds(heat);
    expect(table.rows.map((row) => row.label)).toEqual(["forward"]);
    expect(table.columns).toEqual(["0", "1"]);
    expect([...table.values]).toEqual([1, 1.2]);
  });

  it("are neutral at 1, full where the job is slowest, paler where it is faster", () => {
    const scale = scaleOfSlowdowns(Float64Array.of(0.98, 1.3, Number.NaN));
    expect(scale?.marks.map(scale.text)).toEqual(["0.98x", "1.00x", "1.30x"]);
    expect([0.98, 1, 1.3].map((value) => scale?.share(value))).toEqual([-1, 0, 1]);
    expect(scaleOfSlowdowns(new Float64Array(0))).toBeNull();
  });

  it("of a healthy job have no full colour", () => {
    const scale = scaleOfSlowdowns(Float64Array.of(1, 1.01));
    expect(scale?.marks).toEqual([1, 1.1]);
    expect(scale?.share(1.01)).toBeCloseTo(0.1);
  });
});

describe("who waits for whom", () => {
  const names = new Map([
    ["a", "Rank 0"],
    ["b", "Rank 1"],
  ]);
  const table = waitsTable({ host: ["a"], for_host: ["b"], waiting_ms: [8] }, names);

  it("is a matrix of ranks, empty where nobody waits", () => {
    expect(table.columns).toEqual(["Rank 0", "Rank 1"]);
    expect([...table.values]).toEqual([Number.NaN, 8, Number.NaN, Number.NaN]);
  });
  it("has the full colour where one waits longest", () => expect(scaleOfWaits(table.values)?.share(8)).toBe(1));
});

describe("names that are shortened together", () => {
  it("keep what differs", () => {
    const long = (middle: string) =>
      `${"void_some_engine_with_a_long_name_".repeat(3)}${middle}${"_and_a_tail".repeat(4)}`;
    const cut = tellApart([long("512"), long("256")]);
    expect(new Set(cut.values()).size).toBe(2);
    expect(cut.get(long("512"))).toContain("512");
    expect(cut.get(long("256"))).toMatch(/^void_some_engi…/);
  });

  it("stay as they are where there is room", () => expect(tellApart(["add", "mul"]).get("add")).toBe("add"));

  it("are put into one sentence with their shares", () => {
    const shares = [
      { name: "conv", percent: 23.52 },
      { name: "norm", percent: 21.7 },
    ];
    expect(sharesSentence(shares, "the device time")).toBe("`conv` takes 23.5 % of the device time");
    expect(sharesSentence([], "the device time")).toBe("");
  });
});
