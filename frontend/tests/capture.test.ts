import { describe, expect, it } from "vitest";
import { checked, fromForm, isToldByWorkers, USUAL } from "../src/frame/captureForm";

describe("the capture form", () => {
  it("makes the request that the server takes", () => {
    expect(fromForm({ ...USUAL, addresses: "localhost:6009, worker-1:6009\n[::1]:80  localhost:6009" })).toEqual({
      ok: true,
      request: {
        addresses: ["localhost:6009", "worker-1:6009", "[::1]:80"],
        duration_ms: 2000,
        delay_ms: null,
        retries: 2,
        host_tracer_level: 2,
        device_tracer_level: 1,
        python_tracer_level: 0,
      },
    });
  });

  it.each([
    ["addresses", "", /at least one address/],
    ["addresses", "localhost", /“localhost” is not an address/],
    ["addresses", "localhost:99999", /not an address/],
    ["duration_ms", "0", /from 1/],
    ["duration_ms", "2.5", /whole number/],
    ["delay_ms", "-1", /from 0/],
    ["retries", "many", /from 0 to 20/],
  ] as const)("refuses %s = %j", (field, value, error) => {
    const result = fromForm({ ...USUAL, addresses: "localhost:6009", [field]: value });
    expect(result).toMatchObject({ ok: false, field, error: expect.stringMatching(error) });
  });

  it("remembers the last settings, and forgets what makes no sense", () => {
    expect(checked({ addresses: "a:1", duration_ms: 5, retries: "7", other: "x" })).toEqual({
      ...USUAL,
      addresses: "a:1",
      retries: "7",
    });
    expect(checked("rubbish")).toEqual(USUAL);
  });
});

describe("a capture that failed", () => {
  const worker = (state: string, message: string) => ({ state, message });

  it.each([
    ["refused", [worker("failed", "refused (attempt 3)"), worker("saved", "")], true],
    ["a: refused; b: unknown", [worker("failed", "refused"), worker("failed", "unknown")], true],
    ["the disk is full", [worker("failed", "refused")], false],
    ["the disk is full", [worker("failed", "")], false],
    ["the disk is full", [worker("saved", "")], false],
  ])("says %j once", (failure, workers, isTold) => expect(isToldByWorkers(workers, failure)).toBe(isTold));
});
