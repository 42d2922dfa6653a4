import { describe, expect, it } from "vitest";
import type { Cell, Field } from "../src/api";
import {
  bytes,
  type ColumnValues,
  cellText,
  columnFormat,
  columnUnit,
  duration,
  exact,
  fixed,
  inUnit,
  percent,
  short,
  unitLabel,
  unitsOf,
  visible,
  when,
  words,
} from "../src/format";
import { termsOf } from "../src/terms";

const field = (name: string, unit: string, kind: Field["kind"] = "float", role: Field["role"] = "measure"): Field => ({
  ...{ name, label: name, unit, doc: "", kind },
  role,
});

describe("durations", () => {
  it.each([
    [0, "0 ms"],
    [0.000003, "3.00 ns"],
    [0.435, "435 µs"],
    [0.0004351, "435 ns"],
    [9.996, "10.0 ms"],
    [999.57, "1.00 s"],
    [0.99957, "1.00 ms"],
    [59990, "1 min 0 s"],
    [119600, "2 min 0 s"],
    [21.310352, "21.3 ms"],
    [177.592167, "178 ms"],
    [1065.723, "1.07 s"],
    [98153, "1 min 38 s"],
    [-21.31, "−21.3 ms"],
  ])("%f ms is %s", (ms, text) => expect(duration(ms)).toBe(text));
});

describe("bytes", () => {
  it.each([
    [0, "0 B"],
    [1023, "1,023 B"],
    [1024, "1.00 KiB"],
    [4013344768, "3.74 GiB"],
    [15477102400, "14.4 GiB"],
    [-256, "−256 B"],
    [-3 * 1024 ** 2, "−3.00 MiB"],
  ])("%d is %s", (value, text) => expect(bytes(value)).toBe(text));
});

describe("rates of growth", () => {
  it("are written as sizes", () => {
    expect(cellText(251_658_240, "bytes/h")).toBe("240 MiB/h");
    expect(exact(251_658_240.5, "bytes/h")).toBe("251658240.5 bytes/h");
    expect(columnFormat(field("bytes_per_hour", "bytes/h"), [1, 1024])(2048)).toBe("2.00 KiB/h");
  });
});

describe("numbers", () => {
  it("shows about four digits", () => {
    expect([177.592167, 7.519221, 0.0123456, 12345.6, 0].map(short)).toEqual([
      "177.6",
      "7.519",
      "0.0123",
      "12,346",
      "0",
    ]);
  });

  it("never shows something as nothing", () => {
    expect(fixed(0.0001, 1)).toBe("<0.1");
    expect(fixed(-0.0001, 1)).toBe(">−0.1");
    expect(percent(0.04)).toBe("<0.1 %");
    expect(percent(0)).toBe("0 %");
  });

  it("writes a column with the same decimals, and zero as zero", () => {
    const values: Cell[] = [142.461, 11.5, 0.25, 0, null];
    expect(values.map(columnFormat(field("self_ms", "ms"), values))).toEqual(["142.5", "11.5", "0.3", "0", "–"]);
  });

  it("shows whole numbers whole", () => {
    const values: Cell[] = [2027, 1709, 5];
    expect(values.map(columnFormat(field("total_us", "us"), values))).toEqual(["2,027", "1,709", "5"]);
  });

  it("shows a column of long times in a larger unit", () => {
    const values: Cell[] = [262_538, 40, null];
    expect(columnUnit(field("total_us", "us"), values)).toEqual({ unit: "ms", size: 1e3 });
    expect(values.map(columnFormat(field("total_us", "us"), values))).toEqual(["262.54", "0.04", "–"]);
    expect(columnUnit(field("max_us", "us"), [20_713, 95]).unit).toBe("ms"); // as the 21.2 ms beside it
    expect(columnUnit(field("start_ms", "ms", "float", "instant"), [1e6]).unit).toBe("ms");
  });

  it("shows the times of a table in one unit, unless that hides many of them", () => {
    const [total, mean] = [field("total_us", "us"), field("avg_us", "us")];
    const unitOf = (columns: ColumnValues) => [...unitsOf([total, mean], columns).values()].map(({ unit }) => unit);
    expect(unitOf({ total_us: [358_820, 27], avg_us: [4485, 13] })).toEqual(["ms", "ms"]);
    expect(unitOf({ total_us: [358_820, 9000], avg_us: [8, 5] })).toEqual(["ms", "us"]);
    expect(unitOf({ total_us: [358_820, 20], avg_us: [1200, 5] })).toEqual(["ms", "ms"]);
    expect(unitOf({ total_us: [8087], avg_us: [1617] })).toEqual(["ms", "ms"]); // `8.09 ms` above the table
    expect(unitsOf([field("rate", "GFLOP/s")], { rate: [453_183, 800] }).get("rate")?.unit).toBe("TFLOP/s");
  });

  it("has two decimals for shares most of which are small", () => {
    const values: Cell[] = [88, 0.04, 0.03];
    expect(values.map(columnFormat(field("share", "percent"), values))).toEqual(["88.00", "0.04", "0.03"]);
  });

  it("has decimals for the most of a column, not for its largest number alone", () => {
    const values: Cell[] = [126.66, 0.025, 0.031, 0.0001];
    expect(values.map(columnFormat(field("avg_ms", "ms"), values))).toEqual(["126.66", "0.03", "0.03", "<0.01"]);
  });

  it("shows what is unknown as unknown, and never NaN", () => {
    for (const value of [null, undefined, Number.NaN, Number.POSITIVE_INFINITY])
      expect(cellText(value, "ms")).toBe("–");
    expect(exact(null, "ms")).toBe("unknown");
  });
});

describe("cells", () => {
  it.each<[Cell, string, string]>([
    [[512, 1, 1], "", "512 × 1 × 1"],
    [true, "", "yes"],
    [false, "", "no"],
    ["<b>", "text", "<b>"],
    [3.4267, "percent", "3.4 %"],
    [96, "count", "96"],
  ])("%j is %s in unit %s", (value, unit, text) => expect(cellText(value, unit)).toBe(text));

  it("says the unit where it stands alone, and keeps the exact value", () => {
    expect(exact(211.145833, "us")).toBe("211.145833 µs");
    expect(exact(57803264, "bytes")).toBe("57803264 bytes");
  });
});

describe("labels", () => {
  it("names units", () => {
    expect(unitLabel("us")).toBe("µs");
    expect(unitLabel("text")).toBe("");
  });

  it("turns names of categories into words and leaves ops alone", () => {
    expect(words("device_compute")).toBe("device compute");
    expect(words("aten::add_")).toBe("aten::add_");
    expect(words("34.83.195.179_6003")).toBe("34.83.195.179_6003");
  });

  it("names the year only where it helps", () => {
    const now = new Date(2026, 10, 21);
    expect(when(new Date(2026, 10, 12, 14, 3).getTime() / 1000, now)).toBe("12 Nov, 14:03");
    expect(when(new Date(2020, 11, 1, 9, 5).getTime() / 1000, now)).toBe("1 Dec 2020, 09:05");
  });
});

describe("single times", () => {
  it.each([
    [1186256, "us", "1,186 ms"],
    [60324, "us", "60.32 ms"],
    [98153, "ms", "98.15 s"],
    [9999, "us", "9,999 us"],
    [0.0012, "ms", "1.200 us"],
    [123456, "s", "123,456 s"],
    [0, "us", "0 us"],
    [50000, "count", "50,000 count"],
    [null, "ms", "– ms"],
  ] as const)("%s %s is %s", (value, unit, text) => {
    const [number, shown] = inUnit(value, unit);
    expect(`${cellText(number, shown)} ${shown}`).toBe(text);
  });
});

describe("values of many units in one column", () => {
  it("have each as many decimals as its own size needs", () => {
    const values: Cell[] = [265.4321, 0.009, 40.1749, 0, null];
    expect(values.map(columnFormat(field("mean", ""), values))).toEqual(["265.4", "0.00900", "40.17", "0", "–"]);
  });
});

describe("terms", () => {
  it("are in words where a column holds terms, and names stay as they are", () => {
    const text = termsOf(field("any", "text", "str", "term"));
    expect(["device_compute", "kernel_gap", "host wait", "device_collectives"].map(text ?? String)).toEqual([
      ...["Device compute", "Kernel gap", "Host wait", "Collectives"],
    ]);
    expect(termsOf(field("category", "text", "str", "type"))).toBeNull();
    const nameOf = termsOf(field("name", "text", "str", "name")) ?? String;
    expect(["a/b/MatMul", "/lib/sglang/ids.py(30): resolve"].map(nameOf)).toEqual([
      "a/b/MatMul",
      "sglang/ids.py:30 resolve",
    ]);
  });
});

describe("signs that cannot be seen", () => {
  it("do not turn round the text that follows them", () => {
    expect(visible("a\u202eb\u0007c\u200b")).toBe("a\ufffdb\ufffdc\ufffd");
    expect(visible("größer → 3×5 µs")).toBe("größer → 3×5 µs");
  });
});
