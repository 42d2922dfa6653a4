/** What memory is for: names and colours, and one bar of the memory at its peak. */
import { CATEGORY_COLOUR, mix } from "../../design/colours";
import { percent } from "../../format";
import { MEMORY_COLOUR } from "../../generated/palette";
import type { RowOf } from "../../sections";
import { termText } from "../../terms";
import type { BarPart } from "../shared/Bars";

const COLOURS: Readonly<Record<string, string>> = MEMORY_COLOUR;

export type Purpose = RowOf<"memory-profile", "purposes">;

const MEANINGS: Readonly<Record<string, string>> = {
  parameters: "what training changes",
  gradients: "kept from the backward pass until the update",
  optimizer_state: "kept by the optimizer from step to step",
  activations: "results of the forward pass, kept for the backward pass",
  input_batches: "made by what provides input",
  temporary: "freed in the op or in the pass that made it",
  compiled_programs: "results and temporary memory of compiled programs; XLA programs under Memory say more",
  kept_over_steps: "made in a step, and still there in the next: a buffer, a history, a result that a name holds",
  before_the_capture: "allocated before the capture or before its first step, mostly parameters and optimizer state",
  unknown: "nothing was recorded of who allocated it",
};

/** The bytes of each purpose, the most first. */
export function sumsOf(rows: readonly Pick<Purpose, "purpose" | "allocated_bytes">[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const { purpose, allocated_bytes: size } of rows)
    sums.set(String(purpose), (sums.get(String(purpose)) ?? 0) + Number(size ?? 0));
  return new Map([...sums].sort((one, other) => other[1] - one[1]));
}

/** What a count of the program's arrays calls them, as a purpose. */
const COUNTED: Readonly<Record<string, string>> = {
  parameters: "parameters",
  gradients: "gradients",
  "state of the optimizer": "optimizer_state",
  "arrays with their graph": "activations",
};

/** The bytes of each purpose, of what the program held when memory ran out; the most first. */
export function sumsOfHeld(kinds: readonly string[], sizes: readonly number[]): ReadonlyMap<string, number> {
  const rows = kinds.map((kind, row) => ({ purpose: COUNTED[kind] ?? kind, allocated_bytes: sizes[row] ?? 0 }));
  return sumsOf(rows);
}

export function partsOf(sums: ReadonlyMap<string, number>, surface: string): BarPart[] {
  const grey = (share: number) => mix(CATEGORY_COLOUR.other, surface, share);
  return [...sums.keys()].map((key) => ({
    key,
    label: termText(key),
    colour: COLOURS[key] ?? grey(key === "unknown" ? 0.65 : 0.35),
    doc: MEANINGS[key] ?? "",
  }));
}

const PHRASES: Readonly<Record<string, string>> = {
  temporary: "temporary memory",
  before_the_capture: "from before the capture",
  unknown: "of unknown purpose",
  kept_over_steps: "kept from step to step",
};

/** `88 % activations, 4 % gradients`; empty without rows. */
export function mostOf(sums: ReadonlyMap<string, number>): string {
  const total = [...sums.values()].reduce((all, size) => all + size, 0);
  return [...sums]
    .filter(([, size]) => size > total / 50)
    .slice(0, 3)
    .map(([key, size]) => `${percent((100 * size) / total)} ${PHRASES[key] ?? termText(key).toLowerCase()}`)
    .join(", ");
}
