/** Of many steps or ops the one that shows best what a mean or a sum is about. */
import type { Category } from "../../design/colours";
import type { Row } from "./reports";
import type { GraphStep } from "./StepGraph";

/** Where a part of the mean step can be seen: in the timeline, in the step that is most like it. */
export interface PartPlace {
  readonly href: string;
  /** The step, in words. */
  readonly step: string;
  readonly ms: number;
}

/** Of all whole steps the one whose time of a category is closest to the mean. */
export function closestStep(steps: readonly GraphStep[], category: Category, mean_ms: number): PartPlace | null {
  const away = (step: GraphStep) => Math.abs((step.parts[category] ?? 0) - mean_ms);
  const known = steps.filter((step) => step.href !== null && step.complete && (step.parts[category] ?? 0) > 0);
  const found = known.reduce<GraphStep | null>(
    (best, step) => (best === null || away(step) < away(best) ? step : best),
    null,
  );
  return found && { href: found.href as string, step: `step ${found.step}`, ms: found.parts[category] as number };
}

/** Of each stage the op with the longest time. */
export function longestOps(rows: readonly Row[]): ReadonlyMap<string, string> {
  const byStage = new Map<string, Row>();
  for (const row of rows) {
    const stage = String(row.category);
    if (Number(row.self_ms ?? 0) > Number(byStage.get(stage)?.self_ms ?? 0)) byStage.set(stage, row);
  }
  return new Map([...byStage].map(([stage, row]) => [stage, String(row.op)]));
}
