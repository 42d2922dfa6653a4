import { describe, expect, it } from "vitest";
import type { Field } from "../src/api";
import { compileFilter, parseFilter } from "../src/filter";

const FIELDS: Field[] = [
  { name: "name", label: "Name", unit: "text", doc: "", kind: "str", role: "name" },
  { name: "where", label: "Where", unit: "text", doc: "", kind: "str", role: "place" },
  { name: "self_percent", label: "Self_percent", unit: "percent", doc: "", kind: "float", role: "share" },
  { name: "self_us", label: "Self_us", unit: "us", doc: "", kind: "float", role: "duration" },
  { name: "eligible", label: "Eligible", unit: "", doc: "", kind: "bool", role: "flag" },
  { name: "block_dim", label: "Block_dim", unit: "", doc: "", kind: "ints", role: "shape" },
];
const COLUMNS = {
  name: ["aten::conv2d", "copy host to device", "Conv Backward", "<b>a > 5</b>"],
  where: ["device", "device", "device", "host"],
  self_percent: [60, 5, null, 0.5],
  self_us: [600, 50, 40, 5],
  eligible: [true, false, null, false],
  block_dim: [[512, 1, 1], null, [1, 1, 1], null],
};

function kept(text: string): number[] | string {
  const filter = compileFilter(text, FIELDS, COLUMNS);
  return filter.ok ? [0, 1, 2, 3].filter(filter.keeps) : filter.error;
}

describe("the filter box", () => {
  it.each([
    ["", [0, 1, 2, 3]],
    ["conv", [0, 2]],
    ["CONV back", [2]],
    ["-conv", [1, 3]],
    ['"host to"', [1]],
    ["host", [1, 3]],
    ["where=host", [3]],
    ["where = host", [3]],
    ["where!=host conv", [0, 2]],
    ["self_percent > 5", [0]],
    ["self_percent>=5", [0, 1]],
    ["self_us<50", [2, 3]],
    ["self_us = 50", [1]],
    ["name ~ conv", [0, 2]],
    ['name="Conv Backward"', [2]],
    ["eligible=yes", [0]],
    ["block_dim=512x1x1", [0]],
    ["self_us > 1,0", [0, 1, 2]],
    ["wh=device self_us>=50", [0, 1]],
  ])("%s keeps %j", (text, rows) => expect(kept(text)).toEqual(rows));

  it("takes a column by the start of its name, the first if there are several", () => {
    expect(kept("self > 5")).toEqual([0]);
  });

  it("never keeps what is unknown for a comparison", () => {
    expect(kept("self_percent < 1000")).toEqual([0, 1, 3]);
  });

  it("says what is wrong", () => {
    expect(kept("speed > 5")).toMatch(/no column “speed”; columns: name, where/);
    expect(kept("self_us > fast")).toMatch(/self_us needs a number: “fast” is not one/);
    expect(kept("name > 5")).toMatch(/name holds text/);
  });

  it("takes a column by its head in the unit shown, and by its name in its own", () => {
    const total: Field = { ...(FIELDS[3] as Field), name: "total_us", label: "Total time" };
    const kept = (text: string) => {
      const filter = compileFilter(text, [total], { total_us: [262_538, 5000, 40] });
      return filter.ok && [0, 1, 2].filter(filter.keeps);
    };
    expect(kept("total_time > 5")).toEqual([0]);
    expect(kept("total_us > 5")).toEqual([0, 1, 2]);
  });

  it("reads an unfinished quotation to its end", () => {
    expect(parseFilter('"host to')).toEqual([{ kind: "text", text: "host to", not: false }]);
  });
});
