import { describe, expect, expectTypeOf, it } from "vitest";
import type { Field, Section } from "../src/api";
import { findLinks } from "../src/pages/shared/sections";
import { docOf, figuresOf, type RowOf, type Sections, tableOf } from "../src/sections";
import { nameColumn } from "../src/table/model";

const field = (name: string, role: Field["role"], kind: Field["kind"] = "str"): Field => ({
  ...{ name, label: name.toUpperCase(), unit: "", doc: `what ${name} means`, kind },
  role,
});

const SECTIONS: readonly Section[] = [
  { kind: "prose", id: "findings", title: "Reworded", lines: [] },
  { kind: "table", id: "rows", title: "Reworded too", fields: [field("stream", "place")], row_count: 0 },
  { kind: "figures", id: "launches", title: "Launches", fields: [], values: {} },
];
const idle: Sections<"idle"> = SECTIONS;

describe("the sections of a report", () => {
  it("are found by their ids, whatever their titles are", () => {
    expect(tableOf(idle, "rows")).toBe(SECTIONS[1]);
    expect(figuresOf(idle, "launches")).toBe(SECTIONS[2]);
  });

  it("have ids that the compiler knows", () => {
    // @ts-expect-error no tool has a table of that id
    expect(() => tableOf(idle, "Reworded too")).toThrow("the report has no table “Reworded too”");
    // @ts-expect-error a table and no figures
    expect(() => figuresOf(idle, "rows")).toThrow("the report has no figures “rows”");
  });

  it("explain their fields, by names that the compiler knows", () => {
    expect(docOf(tableOf(idle, "rows"), "stream")).toBe("what stream means");
    // @ts-expect-error no column of that name
    expect(() => docOf(tableOf(idle, "rows"), "steam")).toThrow("has no “steam”");
    expectTypeOf<RowOf<"idle", "rows">["busy_ms"]>().toEqualTypeOf<number | null>();
  });
});

describe("a column", () => {
  it("names the row by its role", () => {
    expect(nameColumn([field("host", "host"), field("count", "count", "int"), field("x", "name")])).toBe(2);
    expect(nameColumn([field("host", "host"), field("x", "label"), field("kernel", "text")])).toBe(1);
    expect(nameColumn([field("count", "count", "int"), field("host", "host")])).toBe(1);
  });

  it("leads to the timeline if it names what ran", () => {
    const fields = [field("host", "host"), field("op", "name"), field("module", "label")];
    const data = { fields, columns: { host: ["a"], op: ["mm"], module: ["net"] }, rowCount: 1 };
    const [link, ...others] = findLinks(0, data);
    expect(others).toEqual([]);
    expect(link?.label).toBe("Find this op in the timeline");
    expect(link?.href).toContain("find=mm");
    expect(link?.href).toContain("host=a");
  });

  it("leads to its interval if it has one", () => {
    const fields = [field("step", "step", "int"), field("start_ms", "measure"), field("duration_ms", "duration")];
    const data = { fields, columns: { step: [3], start_ms: [20], duration_ms: [10] }, rowCount: 1 };
    const [link, ...others] = findLinks(0, data);
    expect(others).toEqual([]);
    expect(link?.label).toBe("Show in the timeline");
    expect(link?.href).toContain("evidence=20_30");
  });
});
