/** Of many ops the one that shows best what a sum is about. */
import type { Row } from "./reports";

/** Of each stage the op with the longest time. */
export function longestOps(rows: readonly Row[]): ReadonlyMap<string, string> {
  const byStage = new Map<string, Row>();
  for (const row of rows) {
    const stage = String(row.category);
    if (Number(row.self_ms ?? 0) > Number(byStage.get(stage)?.self_ms ?? 0)) byStage.set(stage, row);
  }
  return new Map([...byStage].map(([stage, row]) => [stage, String(row.op)]));
}
