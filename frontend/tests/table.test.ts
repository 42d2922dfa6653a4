import { describe, expect, it } from "vitest";
import type { Field } from "../src/api";
import { cellText } from "../src/format";
import { fromRows, nextSort, parseSort, shownFields, tellingFirst, toCsv, toTsv, viewOf } from "../src/table/model";
import { fittingIn, roomFor, share, wishes } from "../src/table/widths";
import { piecesOf, sentence, tailOf } from "../src/ui/basics";

const FIELDS: Field[] = [
  { name: "name", label: "Name", unit: "text", doc: "", kind: "str", role: "name" },
  { name: "self_us", label: "Self_us", unit: "us", doc: "", kind: "float", role: "duration" },
  { name: "shape", label: "Shape", unit: "", doc: "", kind: "ints", role: "shape" },
  { name: "region", label: "Region", unit: "", doc: "", kind: "str", role: "type" },
];
const DATA = fromRows(FIELDS, [
  { name: "op10", self_us: 3, shape: [2, 2] },
  { name: "op9", self_us: null, shape: null },
  { name: 'a "b", c', self_us: 12.5, shape: [64, 1] },
  { name: "two\nlines", self_us: 3, shape: [1] },
]);
const ALL = [0, 1, 2, 3];

describe("sorting", () => {
  it.each([
    ["", [0, 1, 2, 3]],
    ["self_us", [0, 3, 2, 1]],
    ["-self_us", [2, 0, 3, 1]],
    ["name", [2, 1, 0, 3]],
    ["-shape", [2, 0, 3, 1]],
    ["nothing", [0, 1, 2, 3]],
  ])("by %j", (sort, rows) => expect(viewOf(DATA, "", parseSort(sort, FIELDS)).rows).toEqual(rows));

  it("goes from largest to smallest to none for numbers, the other way for text", () => {
    const [name, self] = FIELDS as [Field, Field];
    const first = nextSort(null, self);
    expect(first).toEqual({ column: "self_us", descending: true });
    expect(nextSort(first, self)).toEqual({ column: "self_us", descending: false });
    expect(nextSort(nextSort(first, self), self)).toBeNull();
    expect(nextSort(first, name)).toEqual({ column: "name", descending: false });
  });
});

describe("what is shown", () => {
  it("is filtered and says what is wrong with a filter, keeping all rows", () => {
    expect(viewOf(DATA, "self_us > 3", null)).toEqual({ rows: [2], error: null });
    expect(viewOf(DATA, "speed > 3", null)).toMatchObject({ rows: ALL, error: expect.stringContaining("no column") });
  });

  it("has no columns that hold nothing, unless they are asked for", () => {
    expect(shownFields(DATA, undefined).map((field) => field.name)).toEqual(["name", "self_us", "shape"]);
    expect(shownFields(DATA, "region,name").map((field) => field.name)).toEqual(["region", "name"]);
    expect(shownFields(DATA, "nothing").map((field) => field.name)).toEqual(["name", "self_us", "shape"]);
  });

  it.each([
    [4, ["name"]],
    [3, ["name", "region"]],
  ])("are not those that tell none of %s rows apart, unless they are asked for", (count, names) => {
    const rows = Array.from({ length: count }, (_, at) => ({ name: `op${at}`, region: "temp" }));
    const data = fromRows(FIELDS, rows);
    expect(shownFields(data, undefined).map((field) => field.name)).toEqual(names);
    expect(shownFields(data, "region").map((field) => field.name)).toEqual(["region"]);
  });
});

describe("in a narrow window the first columns are", () => {
  const columns = (text: string): Field[] =>
    text.split(" ").map((part) => {
      const [name = "", role = ""] = part.split(":");
      const kind = ["name", "label", "term", "host", "place", "type", "text"].includes(role) ? "str" : "float";
      return { name, label: name, unit: "", doc: "", kind, role: role as Field["role"] };
    });

  it.each([
    ["rank:ordinal where:place type:type op:name count:count us:duration share:share", "op us share"],
    ["cause:term ms:duration share:share culprit:name", "cause ms share"],
    ["host:host device:place stream:place start:instant ms:duration before:label", "stream ms host"],
    ["step:step name:name host:host start:instant ms:duration", "step host ms"],
    ["length:count us:duration share:share kernels:label", "kernels us share"],
    ["purpose:term layer:label size:size share:share", "purpose size share"],
    ["cause:text ms:duration percent:share", "cause ms percent"], // of an answer in SQL
  ])("%s: %s", (fields, first) => {
    const shown = tellingFirst(columns(fields)).map((field) => field.name);
    expect(shown.slice(0, 3).join(" ")).toBe(first);
    expect([...shown].sort()).toEqual(
      fields
        .split(" ")
        .map((part) => part.split(":")[0])
        .sort(),
    );
  });

  it("the change between two sides before the sides", () => {
    const fields = columns("op:name before:duration after:duration difference:change");
    expect(tellingFirst(fields).map((field) => field.name)).toEqual(["op", "difference", "before", "after"]);
  });

  it("the one by which the table is sorted as well", () => {
    const fields = columns("op:name total:duration avg:duration share:share");
    expect(tellingFirst(fields, "avg").map((field) => field.name)).toEqual(["op", "avg", "total", "share"]);
  });
});

describe("out of the page", () => {
  it("writes CSV with exact values, quoted where needed", () => {
    expect(toCsv(DATA, [2, 3, 1], FIELDS)).toBe(
      'name,self_us,shape,region\r\n"a ""b"", c",12.5,64 1,\r\n"two\nlines",3,1,\r\nop9,,,\r\n',
    );
  });

  it("writes the rows for the clipboard without breaking them", () => {
    expect(toTsv(DATA, [3], FIELDS.slice(0, 2))).toBe("name\tself_us\r\ntwo lines\t3\r\n");
  });
});

describe("widths", () => {
  it.each([
    [1000, 5],
    [500, 5],
    [499, 4],
    [310, 3],
    [100, 3],
  ])("in %i pixels fit %i columns of at least 100", (available, count) => {
    expect(fittingIn(Array(5).fill({ tight: 100, least: 100, most: 300 }), available)).toBe(count);
  });

  it("fill what is available, and give numbers what they need", () => {
    const formats = FIELDS.map((field) => (value: Parameters<typeof cellText>[0]) => cellText(value, field.unit));
    const wanted = wishes(DATA, FIELDS, formats, (text, bold) => text.length * (bold ? 7.5 : 7));
    const widths = share(wanted, 900);
    expect(widths.reduce((sum, width) => sum + width, 0)).toBe(900);
    for (const [index, width] of widths.entries()) expect(width).toBeGreaterThanOrEqual(wanted[index]?.least ?? 0);
    expect(share(wanted, 100)).toEqual(wanted.map((wish) => wish.tight));
  });

  it("take from long names what numbers need, and no more than leaves a name to read", () => {
    const list = [
      { tight: 160, least: 280, most: 400 },
      { tight: 120, least: 120, most: 120 },
      { tight: 80, least: 80, most: 80 },
    ];
    expect(share(list, 330)).toEqual([130, 120, 80]);
    expect(share(list, 200)).toEqual([84, 120, 80]);
  });

  //  A kernel, its op, and ten numbers of 70 pixels.
  const KERNELS = [
    ...Array(2).fill({ tight: 150, least: 280, most: 900 }),
    ...Array(10).fill({ tight: 70, least: 70, most: 70 }),
  ];

  it.each([
    [780, 8, "names give way to the numbers behind them"],
    [650, 7, "but no further than they can be read"],
    [1000, 8, "and only so far that the main columns stay"],
    [1190, 11, "where those fit, names keep their room"],
  ])("in %i pixels of kernels %i columns fit: %s", (available, count) => {
    expect(fittingIn(KERNELS, available)).toBe(count);
    expect(share(KERNELS.slice(0, count), available).reduce((sum, width) => sum + width, 0)).toBe(available);
  });

  it("leave space for the dots of a name that is cut", () => {
    const measure = (text: string) => 2 * text.length;
    expect(roomFor("short", 10, measure)).toBe(5);
    expect(roomFor("a".repeat(30), 40, measure)).toBe(18);
    expect(roomFor("a".repeat(30), -3, measure)).toBe(0);
  });

  it.each([
    ["a/long/name/of/an/op", 40, 0],
    ["a/long/name/of/an/op", 12, 6],
    ["a/long/name/of/an/op", 0, 4],
    ["a name of more than two dozen letters", undefined, 12],
    ["short", undefined, 0],
  ])("of %s keeps with room for %s the last %i signs", (text, room, kept) => expect(tailOf(text, room)).toBe(kept));
});

describe("code in a sentence", () => {
  it.each([
    ["use `stepscope op-stats` or stepscope tf-data", ["stepscope op-stats", "stepscope tf-data"]],
    ["compile it: tf.function(jit_compile=True), which fuses", ["tf.function(jit_compile=True)"]],
    [
      "the largest op is jit(loss_fn)/transpose(jvp())/te_fused_attn_backward_ffi with 38.3 %",
      ["jit(loss_fn)/transpose(jvp())/te_fused_attn_backward_ffi"],
    ],
    ["jit(f)/jvp(bsd,de->bse)/dot_general; the rest", ["jit(f)/jvp(bsd,de->bse)/dot_general"]],
    ["replace f(x) by g(h(x)); 40 % of it (threshold 5 %)", ["f(x)", "g(h(x))"]],
  ])("%s", (text, code) => expect(piecesOf(text).filter((_, index) => index % 2)).toEqual(code));
});

describe("sentences of a report", () => {
  it.each([
    ["no counters: record them", "No counters: record them"],
    ["host-bound: the device waits", "Host-bound: the device waits"],
    ["mklcpu: 34 MiB", "mklcpu: 34 MiB"],
    ["cpu, cuda:0: no totals", "cpu, cuda:0: no totals"],
    ["calls longer than 50 us", "Calls longer than 50 µs"],
    ["Launch-bound", "Launch-bound"],
    ["vm: most of it in device_compute", "vm: most of it in device compute"],
    ["log, evaluate and save", "Log, evaluate and save"],
  ])("%s", (text, shown) => expect(sentence(text)).toBe(shown));
});
