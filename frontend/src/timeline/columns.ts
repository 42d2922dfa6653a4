/** The columns of the workbench's tables. */
import type { Field } from "../api";

export const PS_A_US = 1e6;

const KINDS = {
  name: { kind: "str", role: "name", unit: "text" },
  text: { kind: "str", role: "text", unit: "text" },
  count: { kind: "int", role: "count", unit: "count" },
  us: { kind: "float", role: "duration", unit: "us" },
  ms: { kind: "float", role: "measure", unit: "ms" },
  share: { kind: "float", role: "share", unit: "percent" },
} as const;

/** A column; its heading is its name without the unit. */
export function fieldNamed(name: string, kind: keyof typeof KINDS, doc: string): Field {
  return { ...KINDS[kind], name, doc, label: name.charAt(0).toUpperCase() + name.slice(1).replace(/_(us|ms)$/, "") };
}
