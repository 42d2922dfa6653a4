import { describe, expect, it } from "vitest";
import { loginAddress } from "../src/api";
import { fromForm, USUAL, withToken } from "../src/frame/captureForm";
import { parseLabels } from "../src/people";

/** What the server accepts as a place to go to after the login. */
const ACCEPTED = /^\/(?![/\\])[\w./~%?&=#-]{0,500}$/;

function wayBack(pathname: string, hash: string): string {
  return new URLSearchParams(loginAddress({ pathname, search: "", hash }).split("?")[1]).get("next") ?? "";
}

describe("the way to the login page and back", () => {
  it("keeps the place", () => {
    expect(wayBack("/prof/", "#/steps?session=a1&steps=3-9")).toBe("/prof/#/steps?session=a1&steps=3-9");
  });

  it("writes what the server would refuse in another way, with the same meaning", () => {
    const place = wayBack("/", "#/timeline?find=a+b,c:d&with=é");
    expect(place).toMatch(ACCEPTED);
    expect(new URLSearchParams(place.split("?")[1]).get("find")).toBe("a b,c:d");
    expect(new URLSearchParams(place.split("?")[1]).get("with")).toBe("é");
  });

  it("leads to the start of the page from a place that is too long", () => {
    expect(wayBack("/prof/", `#/sql?query=${"x".repeat(600)}`)).toBe("/prof/");
  });
});

describe("labels", () => {
  it("stand between commas, each once", () => {
    expect(parseLabels(" slow input, baseline,,slow input ,")).toEqual(["slow input", "baseline"]);
    expect(parseLabels(" ")).toEqual([]);
  });
});

describe("the token of a job's port", () => {
  it("is part of the request only if there is one", () => {
    const form = fromForm({ ...USUAL, addresses: "a:1" });
    if (!form.ok) throw new Error(form.error);
    expect(withToken(form.request, " secret ")).toEqual({ ...form.request, token: "secret" });
    expect(withToken(form.request, " ")).not.toHaveProperty("token");
  });
});
