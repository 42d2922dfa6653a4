/** What memory is for, in words and in one bar. */
import { expect, test } from "vitest";
import { mostOf, type Purpose, partsOf, sumsOf, sumsOfHeld } from "../src/pages/memory/purposes";

const row = (purpose: string, allocated_bytes: number) => ({ purpose, allocated_bytes }) as Purpose;

test("purposes are summed over layers and lines, the most first", () => {
  const sums = sumsOf([row("gradients", 10), row("activations", 30), row("gradients", 25)]);
  expect([...sums]).toEqual([
    ["gradients", 35],
    ["activations", 30],
  ]);
  expect(partsOf(sums, "#ffffff").map(({ label }) => label)).toEqual(["Gradients", "Activations"]);
});

test("the sentence names the three largest, and none that hardly counts", () => {
  const sums = sumsOf([row("activations", 600), row("before_the_capture", 390), row("temporary", 10)]);
  expect(mostOf(sums)).toBe("60.0 % activations, 39.0 % from before the capture");
  expect(mostOf(new Map())).toBe("");
});

test("what a program held when memory ran out is summed by the same purposes, others by their own name", () => {
  const kinds = ["arrays with their graph", "state of the optimizer", "arrays with their graph", "arrays"];
  const sums = sumsOfHeld(kinds, [62, 16, 15, 15]);
  expect([...sums]).toEqual([
    ["activations", 77],
    ["optimizer_state", 16],
    ["arrays", 15],
  ]);
});
