/** Step times as stacked columns. */
import { useMemo } from "preact/hooks";
import type { Column } from "../../charts/steps";
import { duration } from "../../format";
import { ColumnGraph } from "./ColumnGraph";
import type { OverviewReport, OverviewStep } from "./reports";

export interface GraphStep extends Pick<OverviewStep, "step" | "name" | "duration_ms" | "complete" | "usual"> {
  readonly parts: Readonly<Record<string, number>>;
  readonly foot: string;
  readonly href: string | null;
  /** Where it stands above the median step. */
  readonly beside: string | null;
}

interface StepGraphProps {
  steps: readonly GraphStep[];
  median_ms: number | null;
  /** From where on a step counts as long. */
  long_ms: number;
  height?: number;
}

export function StepGraph({ steps, median_ms, long_ms, height = 260 }: StepGraphProps) {
  const columns = useMemo(() => toColumns(steps, long_ms), [steps, long_ms]);
  const odd = columns.filter((column) => column.outlier).length;
  return (
    <div class="step-graph above-l">
      <ColumnGraph
        label={`Time of ${steps.length} steps by what they wait for`}
        columns={columns}
        median_ms={median_ms}
        height={height}
        note={odd > 0 && `▲ ${odd === 1 ? "one long step" : `${odd} long steps`}, over ${duration(long_ms)} · `}
      />
    </div>
  );
}

/** As the sentences of the report count a step as long: against the median, and against the long one of the account. */
const LONG = 1.5;
const LIKE_LONG = 0.5;

export function longFrom({ median_step_ms, account_step: step }: OverviewReport): number {
  if (median_step_ms === null) return Number.POSITIVE_INFINITY;
  return Math.max(LONG * median_step_ms, step && !step.is_median ? LIKE_LONG * step.ms : 0);
}

function toColumns(steps: readonly GraphStep[], long_ms: number): Column[] {
  return steps.map((step) => ({
    label: String(step.step),
    title: step.name === String(step.step) ? `Step ${step.step}` : `Step ${step.step} · ${step.name}`,
    total_ms: step.duration_ms,
    parts: step.parts,
    faint: !step.usual,
    outlier: step.usual && step.duration_ms > long_ms,
    foot: [step.foot, notCounted(step)].filter(Boolean).join(" · "),
    href: step.href,
    beside: step.beside,
    step: step.step,
  }));
}

/** Why statistics do not count a step; empty if they do. */
function notCounted(step: GraphStep): string {
  if (step.usual) return "";
  return step.complete ? "not counted: warm-up, or its end is not known" : "partial: cut by the edge of the capture";
}
