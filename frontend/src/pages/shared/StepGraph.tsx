/** Step times as stacked columns. */
import { useMemo } from "preact/hooks";
import type { Column } from "../../charts/steps";
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
  const columns = useMemo(() => toColumns(steps, median_ms), [steps, median_ms]);
  const odd = columns.filter((column) => column.outlier).length;
  return (
    <div class="step-graph">
      <ColumnGraph
        label={`Time of ${steps.length} steps by what they wait for`}
        columns={columns}
        median_ms={median_ms}
        height={height}
        note={odd > 0 && `▲ ${odd === 1 ? "one step takes" : `${odd} steps take`} over ${LONG} times the median · `}
      />
    </div>
  );
}

/** From here on the sentences of the report count a step as long, too. */
const LONG = 1.5;

export function isLong({ usual, duration_ms }: GraphStep, median_ms: number | null): boolean {
  return usual && median_ms !== null && duration_ms > LONG * median_ms;
}

function toColumns(steps: readonly GraphStep[], median_ms: number | null): Column[] {
  return steps.map((step) => ({
    label: String(step.step),
    title: step.name === String(step.step) ? `Step ${step.step}` : `Step ${step.step} · ${step.name}`,
    total_ms: step.duration_ms,
    parts: step.parts,
    faint: !step.usual,
    outlier: isLong(step, median_ms),
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
