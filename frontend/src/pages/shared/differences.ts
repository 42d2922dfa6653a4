/** Finds where two pages show different numbers for what looks like the same thing, so that the page can explain. */
import type { Advice, Row } from "./reports";

/** From this share on, two numbers of three digits can be told apart. */
const VISIBLE = 0.005;

/** Of the complete steps as they were recorded. */
export interface RecordedStep {
  readonly median_ms: number;
}

/** For each advice the step as it was recorded, where the advice counts another time that none before it explains. */
export function toExplain(list: readonly Advice[], recorded: RecordedStep | null): readonly (RecordedStep | null)[] {
  const known = recorded ? [recorded.median_ms] : [];
  return list.map(({ predicted_speedup, step_time_ms: now }) => {
    if (predicted_speedup === null || now === null || known.some((ms) => Math.abs(now - ms) < VISIBLE * ms))
      return null;
    known.push(now);
    return recorded;
  });
}

/** Whether the host itself computes, so that the host and not a device waits. */
export function isWithoutDevice(steps: readonly Row[]): boolean {
  return steps.length > 0 && steps.every((row) => String(row.waiting_most).endsWith(" host"));
}
