import { describe, expect, it } from "vitest";
import { formatSteps, parseSteps } from "../src/frame/StepBrush";
import { QUESTIONS } from "../src/questions";
import { formatHash, parseHash, type Route, toTool, withParams } from "../src/router";

const ROUTES: Route[] = [
  { tool: "overview", params: {} },
  {
    tool: "op-stats",
    params: {
      session: "a_b-1f",
      host: "10.0.0.1:6009",
      steps: "3-9",
      "ops.filter": 'name="a & b" self > 5',
      "ops.sort": "-total_us",
    },
  },
  { tool: "timeline", params: { find: "Iterator::Root::Prefetch#é 100%?=&", session: "x" } },
  { tool: "odd/tool?#%", params: { session: "/../.." } },
];

describe("the address", () => {
  it.each(ROUTES.map((route) => [formatHash(route), route] as const))("%s is read as it was written", (hash, route) => {
    expect({ ...parseHash(hash), params: { ...parseHash(hash).params } }).toEqual(route);
    expect(formatHash(parseHash(hash))).toBe(hash);
  });

  it.each(["", "#", "#/", "#/?"])("%j is the start page", (hash) => expect(parseHash(hash).tool).toBe("overview"));

  it("survives what no page wrote", () => {
    expect(parseHash("#/%E0%A4%A?session=%E0").tool).toBe("%E0%A4%A");
    expect(Object.entries(parseHash("#/steps?__proto__=1").params)).toContainEqual(["__proto__", "1"]);
  });

  it.each([
    ["#/op-stats?session=s", "#/compute/op?session=s"],
    ["#/op-shapes?by=line", "#/compute/line"],
    ["#/compute", "#/compute/op"],
    ["#/idle", "#/waiting/idle"],
    ["#/pod-viewer?step=3", "#/ranks/steps?step=3"],
    ["#/overview", "#/summary"],
    ["#/input?session=s", "#/waiting/input?session=s"],
    ["#/input/tf-data", "#/waiting/tf-data"],
    ["#/sql", "#/timeline/sql"],
    ["#/system", "#/waiting/system"],
  ])("of an earlier version, %s, leads to %s", (old, today) => expect(formatHash(parseHash(old))).toBe(today));

  it("leads to every tool that the page knows, and to each of its views", () => {
    for (const { name, views } of QUESTIONS)
      for (const { path, tool, by } of views) {
        const hash = `#/${[name, path].filter(Boolean).join("/")}`;
        expect(parseHash(hash)).toMatchObject({ tool, params: by ? { by } : {} });
        expect(formatHash(parseHash(hash))).toBe(hash);
      }
  });

  it("names the session first", () => {
    expect(formatHash({ tool: "steps", params: { a: "1", steps: "2", host: "h", session: "s" } })).toBe(
      "#/summary/steps?session=s&host=h&steps=2&a=1",
    );
  });

  it("keeps session, host and steps from tool to tool, and nothing else", () => {
    expect(toTool(ROUTES[1] as Route, "steps").params).toEqual({
      session: "a_b-1f",
      host: "10.0.0.1:6009",
      steps: "3-9",
    });
    expect(toTool(ROUTES[1] as Route, "timeline", { host: null, find: "x" }).params).toEqual({
      session: "a_b-1f",
      steps: "3-9",
      find: "x",
    });
  });

  it("takes a parameter away", () => {
    expect(withParams({ tool: "a", params: { b: "1", c: "2" } }, { b: null, c: "" }).params).toEqual({});
  });
});

describe("the range of steps", () => {
  it.each([
    ["3-9", { first: 3, last: 9 }],
    ["9-3", { first: 3, last: 9 }],
    ["7", { first: 7, last: 7 }],
    ["", null],
    ["a-b", null],
    ["-3", null],
  ])("%j", (text, range) => expect(parseSteps(text)).toEqual(range));

  it("is written as it is read", () => {
    for (const text of ["3-9", "7"]) expect(formatSteps(parseSteps(text))).toBe(text);
  });
});
