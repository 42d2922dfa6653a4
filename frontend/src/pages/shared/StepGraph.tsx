/** Step times as stacked columns. */
import { useMemo } from "preact/hooks";
import { type Column, outliers } from "../../charts/steps";
import { ColumnGraph } from "./ColumnGraph";

export interface GraphStep {
  readonly step: number;
  readonly name: string;
  readonly duration_ms: number;
  readonly complete: boolean;
  readonly usual: boolean;
  readonly parts: Readonly<Record<string, number>>;
  readonly foot: string;
  readonly href: string | null;
  /** Where it stands above the median step. */
  readonly beside: string | null;
}

interface StepGraphProps {
  steps: readonly GraphStep[];
  median_ms: number | null;
  height?: number;
}

export function StepGraph({ steps, median_ms, height = 260 }: StepGraphProps) {
  const columns = useMemo(() => toColumns(steps), [steps]);
  const odd = columns.filter((column) => column.outlier).length;
  return (
    <div class="step-graph">
      <ColumnGraph
        label={`Time of ${steps.length} steps by what they wait for`}
        columns={columns}
        median_ms={median_ms}
        height={height}
        note={odd > 0 && `▲ ${odd === 1 ? "one step is" : `${odd} steps are`} far from the median · `}
      />
    </div>
  );
}

function toColumns(steps: readonly GraphStep[]): Column[] {
  const odd = outliers(steps.map((step) => step.duration_ms));
  return steps.map((step, index) => ({
    label: String(step.step),
    title: step.name === String(step.step) ? `Step ${step.step}` : `Step ${step.step} · ${step.name}`,
    total_ms: step.duration_ms,
    parts: step.parts,
    faint: !step.usual,
    outlier: odd[index] ?? false,
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
