/** The SQL console: what it suggests, and what an answer can be drawn as. */
import { describe, expect, test } from "vitest";
import type { Field } from "../src/api";
import { barChart, barsOf, lanesOf, stretches } from "../src/pages/sql/result";
import { complete, type Schema, suggest, wordAt } from "../src/pages/sql/schema";
import { toTracks } from "../src/timeline/query";

const column = (name: string, unit = "") => ({ name, type: "BIGINT", unit, doc: `the ${name}` });
const SCHEMA: Schema = {
  tables: [
    { name: "events", tool: null, doc: "all events", columns: [column("event"), column("self_ps", "ps")] },
    { name: "kernels", tool: null, doc: "device work", columns: [column("stream"), column("self_bytes", "bytes")] },
  ],
  functions: [
    { call: "self_time(pattern)", doc: "self time by name", is_table: true },
    { call: "seconds(ps)", doc: "as seconds", is_table: false },
  ],
  limits: { seconds: 30, rows: 10_000, memory_bytes: 1 },
};
const texts = (text: string, cursor = text.length) => suggest(SCHEMA, text, cursor).map((each) => each.text);

describe("suggestions", () => {
  test("the columns of a named table come first, then functions and words of SQL", () => {
    expect(texts("SELECT se FROM kernels", 9)).toEqual(["self_bytes", "self_time(", "seconds(", "SELECT"]);
    expect(texts("SELECT self", 11)).toEqual(["self_ps", "self_bytes", "self_time("]);
  });
  test("after FROM and JOIN only what is a table", () => {
    expect(texts("SELECT * FROM se")).toEqual(["self_time("]);
    expect(texts("SELECT * FROM events JOIN ke")).toEqual(["kernels"]);
  });
  test("a single letter, a whole word and a word in the middle", () => {
    expect(texts("SELECT s")).toEqual([]);
    expect(texts("FROM kernels")).toEqual([]);
    expect(wordAt("SELECT name FROM", 9)).toEqual({ word: "na", from: 7 });
  });
  test("a suggestion takes the place of its word", () => {
    const [first] = suggest(SCHEMA, "SELECT se FROM kernels", 9);
    expect(first && complete("SELECT se FROM kernels", 9, first)).toEqual({
      text: "SELECT self_bytes FROM kernels",
      cursor: 17,
    });
  });
});

const field = (name: string, kind: Field["kind"], unit = "", role: Field["role"] = "measure"): Field => ({
  ...{ name, label: name, unit, doc: "", kind, role },
});

describe("an answer", () => {
  const kernels = {
    fields: [
      field("name", "str", "", "name"),
      field("stream", "str", "", "place"),
      field("start_ps", "int", "ps", "instant"),
      field("duration_ps", "int", "ps", "duration"),
    ],
    columns: {
      name: ["a", "b", "c"],
      stream: ["x", "y", "x"],
      start_ps: [1e9, 2e9, null],
      duration_ps: [5e8, 1e9, 1],
    },
    rowCount: 3,
  };
  test("with a start and a length is a track, a lane for each stream", () => {
    const found = stretches(kernels) ?? [];
    expect(found.map(({ row, begin, end, name }) => [row, begin, end, name])).toEqual([
      [0, 1e9, 1.5e9, "a"],
      [1, 2e9, 3e9, "b"],
    ]);
    expect(lanesOf(found).map(({ label, parts }) => [label, parts.length])).toEqual([
      ["x", 1],
      ["y", 1],
    ]);
  });
  test("is a group of tracks of the timeline, in rows in which nothing overlaps", () => {
    const stretch = (row: number, begin: number, end: number, lane = "x") => ({
      ...{ row, begin, end, lane, name: `n${row % 2}`, host: null },
    });
    const { group, rows, names } = toTracks([
      stretch(0, 10, 20),
      stretch(1, 15, 18),
      stretch(2, 20, 30),
      stretch(3, 5, 6, "y"),
    ]);
    expect(group.tracks.map(({ id, name, rows, events }) => [id, name, rows, events])).toEqual([
      ["q0", "x", 2, 3],
      ["q1", "y", 1, 1],
    ]);
    const lane = rows.get("q0.0");
    expect([...(lane?.event ?? [])]).toEqual([0, 2]);
    expect(lane && lane.begin + lane.unit * (lane.end[1] as number)).toBeCloseTo(30);
    expect([...(rows.get("q0.1")?.type ?? [])].map((type) => names[-1 - type])).toEqual(["n1"]);
  });
  test("with a start and an end is one too, in whichever unit", () => {
    const data = {
      fields: [field("start_ms", "float", "ms"), field("end_ms", "float", "ms")],
      columns: { start_ms: [1], end_ms: [3] },
      rowCount: 1,
    };
    expect(stretches(data)).toEqual([{ row: 0, begin: 1e9, end: 3e9, name: "", lane: "", host: null }]);
    expect(stretches({ ...data, fields: data.fields.slice(0, 1) })).toBeNull();
  });
  test("is a chart by what its rows are, not by the column that comes first", () => {
    const steps = {
      fields: [
        field("host", "str", "", "host"),
        field("step", "int", "", "step"),
        field("duration_ms", "float", "ms", "duration"),
      ],
      columns: { host: ["vm", "vm"], step: [7, 8], duration_ms: [20, 21] },
      rowCount: 2,
    };
    expect(barsOf(steps)).toMatchObject({ axis: "step", labels: ["7", "8"] });
    const ranks = { ...steps, columns: { ...steps.columns, host: ["a", "b"], step: [7, 7] } };
    expect(barsOf(ranks)).toMatchObject({ axis: "host", labels: ["a", "b"] });
    const [many, ones] = [Array.from({ length: 300 }, (_, at) => at), Array<number>(300).fill(1)];
    const long = barsOf({
      ...steps,
      columns: { host: many.map(String), step: many, duration_ms: ones },
      rowCount: 300,
    });
    expect(long && barChart(long, ["red"]).curves?.[0]?.y).toHaveLength(300);
  });
  test("is a chart of its times, in ms, by its name", () => {
    expect(barsOf(kernels)).toMatchObject({ unit: "ms", labels: ["a", "b", "c"] });
    expect(barsOf(kernels)?.series.map(({ field, values }) => [field.name, values])).toEqual([
      ["duration_ps", [0.5, 1, 1e-9]],
    ]);
    expect(barsOf({ ...kernels, rowCount: 1 })).toBeNull();
    expect(barsOf({ ...kernels, fields: kernels.fields.slice(0, 3) })).toBeNull();
  });
});
