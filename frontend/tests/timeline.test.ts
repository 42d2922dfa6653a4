import { describe, expect, it } from "vitest";
import { kindsOf } from "../src/charts/Flame";
import { evidenceOf, fromAddress, toAddress } from "../src/timeline/address";
import { collapsedAtFirst, itemAt, layoutOf, ROW } from "../src/timeline/layout";
import { brief, cut } from "../src/timeline/names";
import { nearestOf } from "../src/timeline/nearest";
import { EMPTY_TRACK } from "../src/timeline/query";
import { saidOf } from "../src/timeline/said";
import { nearestEdge, sliceAt } from "../src/timeline/slices";
import { pixelOf } from "../src/timeline/strip";
import { duration, moment, ticksOf } from "../src/timeline/ticks";
import { grouped, requestsFor } from "../src/timeline/tiles";
import { callsOf, flameOf, hotPath, pathOf } from "../src/timeline/tree";
import { around, clamp, levelFor, pan, toTime, toX, zoomAt } from "../src/timeline/viewport";
import type { EventDetails, EventLinks } from "../src/timeline/wire";
import {
  decodeWindows,
  type GroupInfo,
  type LaneSlices,
  type TrackInfo,
  type WindowAnswer,
} from "../src/timeline/wire";

const WHOLE = { begin: 0, end: 1e12 };

describe("the strip of narrow slices", () => {
  it("has red first in memory, and is opaque", () => {
    expect([...new Uint8Array(new Uint32Array([pixelOf("#12ab9f")]).buffer)]).toEqual([0x12, 0xab, 0x9f, 0xff]);
  });
});

describe("the window", () => {
  it("keeps the time under the cursor while zooming", () => {
    const before = { begin: 2e11, end: 6e11 };
    const after = zoomAt(before, 1000, 250, 0.5, WHOLE);
    expect(toTime(after, 1000, 250)).toBeCloseTo(toTime(before, 1000, 250), 0);
    expect(after.end - after.begin).toBeCloseTo(2e11, 0);
  });
  it("turns pixels into times and back", () => expect(toX(WHOLE, 500, toTime(WHOLE, 500, 123))).toBeCloseTo(123));
  it("does not leave the trace by more than a little", () => {
    expect(pan({ begin: 0, end: 1e11 }, 1000, -1e6, WHOLE).begin).toBeGreaterThanOrEqual(-0.02 * 1e12);
    expect(pan({ begin: 0, end: 1e11 }, 1000, 1e6, WHOLE).end).toBeLessThanOrEqual(1.02 * 1e12);
  });
  it("is never narrower than a nanosecond", () =>
    expect(zoomAt({ begin: 0, end: 2000 }, 100, 50, 1e-9, WHOLE)).toEqual({ begin: 500, end: 1500 }));
  it("leaves room around what it fits", () =>
    expect(around({ begin: 4e11, end: 5e11 }, WHOLE, 0.5)).toEqual({ begin: 3.5e11, end: 5.5e11 }));
  it("is not wider than the trace", () =>
    expect(clamp({ begin: -1e13, end: 1e13 }, WHOLE).end).toBeLessThanOrEqual(1.04e12));
  it.each([
    [1000, 1000, 0],
    [1024, 1, 10],
    [1025, 1, 11],
    [2 ** 30, 512, 21],
  ])("of %d ps in %d px has level %d", (length, width, level) =>
    expect(levelFor({ begin: 0, end: length }, width)).toBe(level),
  );
});

describe("ticks", () => {
  it("stand at round times with their unit", () =>
    expect(ticksOf({ begin: 0, end: 5e9 }, 500).ticks.map((tick) => tick.label)).toEqual([
      "0 ms",
      "1 ms",
      "2 ms",
      "3 ms",
      "4 ms",
      "5 ms",
    ]));
  it("show the digits that tell neighbours apart", () =>
    expect(ticksOf({ begin: 2e9, end: 2.002e9 }, 250).ticks.map((tick) => tick.label)).toEqual([
      "2.000 ms",
      "2.001 ms",
      "2.002 ms",
    ]));
  it.each([
    [0, "0 ns"],
    [350, "0.350 ns"],
    [12_345_678, "12.35 µs"],
    [1_070_000_000, "1.070 ms"],
    [2.5e12, "2.500 s"],
  ])("write %d ps as %s", (ps, text) => expect(duration(ps)).toBe(text));
  it("write a moment to the nanosecond", () => expect(moment(2_101_479_014_000)).toBe("2,101.479014 ms"));
  it("write no zeros after a whole microsecond", () =>
    expect([0, 13_000_000_000, 71_320_500_000].map(moment)).toEqual(["0.000 ms", "13.000 ms", "71.3205 ms"]));
});

const lane: LaneSlices = {
  level: 0,
  begin: 1000,
  unit: 10,
  start: Int32Array.of(0, 10, 20),
  end: Int32Array.of(5, 10, 30),
  busy: Float32Array.of(50, 0, 100),
  count: Int32Array.of(1, 1, 3),
  type: Int32Array.of(0, 0, 0),
  event: Int32Array.of(0, 1, 2),
  kind: Uint8Array.of(2, 2, 2),
};

describe("hits", () => {
  it.each([
    [1000, 0],
    [1049, 0],
    [1100, 1],
    [1104, 1],
    [1075, -1],
    [1200, 2],
    [1305, 2],
    [2000, -1],
  ])("at %d ps is slice %d", (time, at) => expect(sliceAt(lane, time, 10)).toBe(at));
  it("has edges that what is dragged moves to", () => {
    const first = lane.begin + lane.unit * (lane.start[0] as number);
    expect([first - 9, first + 9, first - 11].map((time) => nearestEdge(lane, time, 10))).toEqual([first, first, null]);
  });
});

const track = (id: string, rows: number): TrackInfo => ({
  ...EMPTY_TRACK,
  ...{ id, name: id, kind: "thread", line: Number(id.slice(1)), rows, events: 9 },
});
const group = (id: string, kind: GroupInfo["kind"], tracks: TrackInfo[], groups: GroupInfo[] = []): GroupInfo => ({
  id,
  name: id,
  detail: "",
  kind,
  tracks,
  groups,
  empty: [],
  lanes: 1,
});
const GROUPS = [
  group("p0", "device", [track("t0", 1)]),
  group("p1", "host", [track("t1", 3)], [group("p1.2", "pool", [track("t2", 2)])]),
];

describe("the layout", () => {
  const choices = { collapsed: new Set<string>(), hidden: new Set<string>(), pinned: [] as string[] };
  it("lists what is open", () =>
    expect(layoutOf(GROUPS, choices).items.map((item) => item.id)).toEqual(["p0", "t0", "p1", "t1", "p1.2", "t2"]));
  it("leaves out what is hidden or in something collapsed", () =>
    expect(
      layoutOf(GROUPS, { ...choices, collapsed: new Set(["p1"]), hidden: new Set(["t0"]) }).items.map(
        (item) => item.id,
      ),
    ).toEqual(["p0", "p1"]));
  it("finds the row at a height", () => {
    const { items } = layoutOf(GROUPS, choices);
    const top = items.find((item) => item.id === "t1")?.top ?? -1;
    expect(itemAt(items, top + ROW * 2 + 3)).toMatchObject({ item: { id: "t1" }, lane: 2 });
    expect(itemAt(items, 1e6)).toBeNull();
  });
  it("pins what there is and ignores what there is not", () =>
    expect(layoutOf(GROUPS, { ...choices, pinned: ["t1", "t77"] }).pinnedItems.map((item) => item.id)).toEqual(["t1"]));
  it("collapses pools at first", () => expect([...collapsedAtFirst(GROUPS)]).toEqual(["p1.2"]));
  it("collapses devices that do nothing in the first picture", () => {
    const quiet = group("p8", "device", [track("t8", 1)]);
    const busy = group("p9", "device", [{ ...track("t9", 1), events_at_first: 5 }]);
    expect([...collapsedAtFirst([quiet, busy])]).toEqual(["p8"]);
  });
});

describe("the address", () => {
  const home = { begin: 0, end: 9e12 };
  it("gives back what was put into it", () => {
    const shown = {
      span: { begin: 1_234_567_000, end: 2_000_000_001 },
      home,
      selected: 5,
      find: "a,b&c",
      regex: true,
      choices: { collapsed: new Set(["p0"]), hidden: new Set(["t1"]), pinned: ["t0"] },
      marks: [
        { begin: 1e9, end: 2e9, name: "" },
        { begin: 3e9, end: 4e9, name: "a_b, c" },
      ],
      region: { begin: 1e9, end: 3e9, tracks: ["t0", "p1"] },
      run: { begin: 1e9, end: 2e9, ribbon: "r1", cause: "device_compute" },
    };
    const params = Object.fromEntries(
      Object.entries(toAddress(shown, GROUPS)).flatMap(([key, value]) => (value === null ? [] : [[key, value]])),
    );
    expect(fromAddress(params, home, GROUPS)).toEqual(shown);
  });
  it("says which profiler's threads are shown, and not which are hidden as usual", () => {
    const own = { ...track("t9", 1), is_profiler: true };
    const groups = [group("p0", "host", [track("t0", 1), own])];
    const first = fromAddress({}, home, groups);
    expect([...first.choices.hidden]).toEqual(["t9"]);
    const choices = { ...first.choices, hidden: new Set<string>() };
    expect(toAddress({ ...first, choices }, groups)).toMatchObject({ hidden: null, shown: "t9" });
    expect([...fromAddress({ shown: "t9" }, home, groups).choices.hidden]).toEqual([]);
  });
  it("holds what a page points to", () => {
    expect(evidenceOf({ evidence: "1_2.5", why: "input wait", from: "advice" })).toEqual({
      ...{ begin: 1e9, end: 2.5e9, why: "input wait", from: "advice" },
    });
    expect(evidenceOf({ evidence: "2_1" })).toBeNull();
  });
  it("is empty for the first view", () => {
    const first = fromAddress({}, home, GROUPS);
    expect(Object.values(toAddress(first, GROUPS)).every((value) => value === null)).toBe(true);
  });
  it("takes nonsense for nothing", () =>
    expect(fromAddress({ begin: "x", end: "1", selected: "-3" }, home, GROUPS)).toMatchObject({
      span: home,
      selected: null,
    }));
});

describe("requests", () => {
  it("join the rows of a track", () =>
    expect(grouped(["t3.0", "t3.1", "t3.2", "t4.0", "p1.2", "t3.5", "c0"])).toEqual([
      "t3.0-2",
      "t4.0",
      "p1.2",
      "t3.5",
      "c0",
    ]));
  it("go for what is on the screen first", () => {
    const want = (id: string, urgent: boolean, tries = 0) => ({ id, urgent, tries, level: 3, index: 1 });
    const found = requestsFor([want("t1.0", false), want("t2.0", true, 1), want("t3.0", true)]);
    expect(found.map((request) => request.ids)).toEqual([["t3.0"], ["t2.0"], ["t1.0"]]);
  });
  it("are one for all that a screen shows, and one for its ribbon", () => {
    const screen = [4, 5, 6].flatMap((index) =>
      ["t1.0", "p0", "c2", "r0"].map((id) => ({ id, urgent: true, tries: 0, level: 3, index })),
    );
    expect(requestsFor(screen)).toEqual([
      { level: 3, index: 4, tiles: 3, ids: ["t1.0", "p0", "c2"] },
      { level: 3, index: 4, tiles: 3, ids: ["r0"] },
    ]);
  });
});

describe("names", () => {
  it.each([
    ["aten::conv2d", "conv2d"],
    ["model.py(12): forward", "forward"],
    ["net/dense/MatMul", "MatMul"],
    ["void at::native::copy_kernel<float>(int)", "copy_kernel"],
    ["ProfilerStep#6", "ProfilerStep#6"],
  ])("of %s come down to %s", (name, short) => expect(brief(name)).toBe(short));
  it("are cut to what has room, or left out", () =>
    expect([cut("elementwise", 8), cut("elementwise", 3)]).toEqual(["element…", ""]));
  it.each([
    ["Owlv2Attention_6", 16, "Owlv2Attention_6"],
    ["Owlv2Attention_6", 12, "…Attention_6"],
    ["Owlv2Attention_6", 11, "Attentio…_6"],
    ["Owlv2Attention_16", 7, "Att…_16"],
    ["Owlv2Attention_16", 4, ""],
    ["ProfilerStep#5", 8, "…Step#5"],
  ])("keep the last word and the number of a module or step: %s in %s letters", (name, most, short) =>
    expect(cut(brief(`nn.Module: ${name}`), most)).toBe(short),
  );
});

/** The bytes of an answer, as the server packs them. */
function packed(columns: readonly (readonly [string, string, Int32Array | Float32Array | Uint8Array])[]): ArrayBuffer {
  const head = {
    begin_ps: 8,
    level: 3,
    cells: 2,
    unit_ps: 1,
    columns: columns.map(([name, type, data]) => [name, type, data.length]),
  };
  const text = new TextEncoder().encode(JSON.stringify(head));
  const size = text.length + ((8 - ((text.length + 4) % 8)) % 8);
  const used = 4 + size + columns.reduce((sum, [, , data]) => sum + data.byteLength, 0);
  const bytes = new Uint8Array(Math.ceil(used / 8) * 8).fill(32);
  new DataView(bytes.buffer).setUint32(0, size, true);
  bytes.set(text, 4);
  let at = 4 + size;
  for (const [, , data] of columns) {
    bytes.set(new Uint8Array(data.buffer), at);
    at += data.byteLength;
  }
  return bytes.buffer;
}

function twice(buffer: ArrayBuffer): ArrayBuffer {
  const both = new Uint8Array(2 * buffer.byteLength);
  both.set(new Uint8Array(buffer), 0);
  both.set(new Uint8Array(buffer), buffer.byteLength);
  return both.buffer;
}

describe("an answer", () => {
  it("is read from its bytes, row by row and group by group", () => {
    const int = (...values: number[]) => Int32Array.from(values);
    const bytes = packed([
      ["row_line", "i4", int(3, 3)],
      ["row_lane", "i4", int(0, 1)],
      ["row_level", "i4", int(3, 4)],
      ["row_begin", "i4", int(0, 1, 3)],
      ["start", "i4", int(0, 1, 5)],
      ["end", "i4", int(9, 2, 7)],
      ["busy_ps", "f4", Float32Array.of(9, 1, 2)],
      ["count", "i4", int(1, 1, 4)],
      ["type", "i4", int(0, 1, 2)],
      ["event", "i4", int(10, 11, 12)],
      ["load", "f4", Float32Array.of(0, 0.5, 1, 0.25)],
      ["kind", "u1", Uint8Array.of(2, 2, 32)],
    ]);
    const [answer, second] = decodeWindows(twice(bytes)) as [WindowAnswer, WindowAnswer];
    expect(second).toEqual(answer);
    expect([...answer.lanes.keys()]).toEqual(["3.0", "3.1"]);
    expect([...(answer.lanes.get("3.1")?.event ?? [])]).toEqual([11, 12]);
    expect(answer.lanes.get("3.1")).toMatchObject({ level: 4, begin: 8, unit: 1 });
    expect(answer.loads.map((load) => [...load])).toEqual([
      [0, 0.5],
      [1, 0.25],
    ]);
    expect(answer.counters).toEqual([]);
  });
});

describe("what is nearest to an empty window", () => {
  const tile = { begin: 0, cell: 10, lane: null, counter: null, causes: null, tries: -1, used: 0 };
  const piece = { begin: 0, end: 60, tile: { ...tile, load: new Float32Array([0, 1, 0, 0, 0.5, 0]) } };
  it("is read off the overview", () => {
    expect(nearestOf([piece], 22, 38)).toEqual({ before: 20, after: 40 });
    expect(nearestOf([piece], 52, 58)).toEqual({ before: 50, after: null });
  });
  it("is nothing where something ran, or nothing is known", () => {
    expect(nearestOf([piece], 15, 38)).toBeNull();
    expect(nearestOf([], 15, 38)).toBeNull();
  });
});

describe("a call tree", () => {
  const answer = {
    parent: [-1, 0, 0, 1, -1],
    name: ["step", "forward", "backward", "mm", "idle"],
    events: [1, 1, 1, 4, 1],
    total_ps: [100, 30, 60, 20, 50],
    self_ps: [10, 10, 60, 20, 50],
    left_out: 0,
  };
  const calls = callsOf(answer);
  it("has its longest branches first", () => {
    expect(calls.roots).toEqual([0, 4]);
    expect(calls.nodes[0]?.children).toEqual([2, 1]);
    expect(callsOf(answer, true).nodes[0]?.children).toEqual([1, 2]);
    expect(calls.total).toBe(150);
    expect(pathOf(calls, 3).map((node) => node.name)).toEqual(["step", "forward", "mm"]);
    expect([...hotPath(calls)]).toEqual([0]);
  });
  it("is as wide as its time, and what is in focus takes the whole width", () => {
    const all = flameOf(calls, null);
    expect(all.map((block) => [block.node.name, block.level])).toEqual([
      ["step", 0],
      ["backward", 1],
      ["forward", 1],
      ["mm", 2],
      ["idle", 0],
    ]);
    expect(all[0]?.width).toBeCloseTo(100 / 150);
    expect(flameOf(calls, 1)[0]).toMatchObject({ left: 0, width: 1 });
  });

  it("says above a level what its modules are called that have no room for it", () => {
    const block = (id: number, name: string, level: number, left: number, width: number) => ({
      ...{ node: { id, name, parent: -1, events: 1, total: 1, self: 1, children: [] }, level, left, width },
    });
    const layers = [0, 1, 2].map((at) => block(at + 1, `OwlDecoderLayer_${at}`, 1, at / 10, 0.1));
    const blocks = [block(0, "Owl_0", 0, 0, 1), ...layers, block(4, "Norm_0", 1, 0.9, 0.01)];
    const kinds = (letters: number) => [...kindsOf(blocks, (width) => width * letters)];
    expect(kinds(60)).toEqual([
      [1, { left: 0, names: [expect.objectContaining({ name: "OwlDecoderLayer", count: 3 })] }],
    ]);
    expect(kinds(100)).toEqual([]); // `…Layer_0` has room
  });
  it("of a million events is drawn at once", () => {
    const n = 3000;
    const parent = Array.from({ length: n }, (_, at) => Math.floor((at - 1) / 3));
    const large = callsOf({
      ...{ parent, name: parent.map(String), events: parent, left_out: 0 },
      total_ps: parent.map((_, at) => n - at),
      self_ps: parent,
    });
    expect(flameOf(large, null).length).toBeGreaterThan(10);
  });
});

describe("a selected event in a sentence", () => {
  const spot = (name: string, event = 1) => ({
    ...{ event, name, line: 0, start_ps: 0, duration_ps: 17_460_000, kind: "op" },
  });
  const details = {
    ...{ spot: spot("aten::_softmax"), full_name: "", self_ps: 9_610_000, inside: 2, around_hidden: 0, stats: [] },
    layer: "Attention_0",
    place: "model.py:41",
  } as unknown as EventDetails;
  const work = { how: "stream", idle_ps: 0, waited_for: spot("bmm"), stack: [] };
  const culprit = { name: "forward", file: "own.py", line: 7, op: null, layer: "Head_1" };

  it("says how long, in which layer and line, and what came before", () => {
    expect(saidOf(details, null)).toBe(
      "`aten::_softmax` 17.46 µs (9.610 µs of its own) in `Attention_0`, `model.py:41`",
    );
    expect(saidOf(details, { work: { ...work, culprit } } as unknown as EventLinks)).toBe(
      "`aten::_softmax` 17.46 µs (9.610 µs of its own) in `Head_1`, `own.py:7`; waited for `bmm` before it",
    );
    expect(saidOf({ ...details, inside: 0, layer: null, place: null }, null)).toBe("`aten::_softmax` 17.46 µs");
  });

  it("names device work by its op and its kernel", () => {
    const kernel = { ...details.spot, name: "void at::native::softmax<8, float>(float*)", kind: "kernel" };
    const ofWork = { work: { ...work, waited_for: null, culprit: null }, op: "aten::_softmax" };
    expect(saidOf({ ...details, spot: kernel, inside: 0 } as EventDetails, ofWork as unknown as EventLinks)).toBe(
      "`aten::_softmax`, kernel `softmax`, 17.46 µs in `Attention_0`, `model.py:41`",
    );
  });
});
