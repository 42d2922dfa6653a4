/** Step times as stacked columns; a column picked leads to its interval in the timeline and to itself alone. */
import { useMemo, useState } from "preact/hooks";
import { Chart } from "../charts/Chart";
import { markCount, outliers, stackedColumns, type Column } from "../charts/steps";
import { CATEGORIES, CATEGORY_COLOUR, CATEGORY_LABEL } from "../design/colours";
import { palette } from "../design/theme";
import { duration, percent } from "../format";
import { setParams } from "../router";
import { steps as chosenSteps } from "../session";
import { Icon } from "../ui/icons";

export interface GraphStep {
  readonly step: number;
  readonly name: string;
  readonly duration_ms: number;
  readonly complete: boolean;
  readonly parts: Readonly<Record<string, number>>;
  readonly foot: string;
  readonly href: string | null;
}

interface StepGraphProps {
  steps: readonly GraphStep[];
  mean_ms: number | null;
  height?: number;
}

export function StepGraph({ steps, mean_ms, height = 260 }: StepGraphProps) {
  const [picked, setPicked] = useState<number | null>(null);
  const columns = useMemo(() => toColumns(steps), [steps]);
  const look = palette.value;
  const option = useMemo(() => stackedColumns(columns, { palette: look, xName: "step", mean_ms, picked, zoom: true }), [columns, look, mean_ms, picked]);
  const step = picked === null ? null : steps[picked];
  const odd = columns.filter((column) => column.outlier).length;
  return (
    <div class="step-graph">
      <Chart label={`Time of ${steps.length} steps by category`} option={option} height={height} marks={markCount(columns)} onPick={({ dataIndex }) => setPicked(dataIndex === picked ? null : dataIndex)} />
      <div class="graph-foot">
        <CategoryLegend columns={columns} />
        <span class="muted">
          {odd > 0 && `▲ ${odd === 1 ? "one step is" : `${odd} steps are`} far from the median · `}
          {step ? "" : "click a column to see it in the timeline"}
        </span>
      </div>
      {step && (
        <div class="picked" role="status">
          <strong>{step.name === String(step.step) ? `Step ${step.step}` : step.name}</strong>
          <span>{duration(step.duration_ms)}</span>
          {largest(step)}
          {step.href && (
            <a class="button" href={step.href}>
              Show in the timeline <Icon name="arrow" size={16} />
            </a>
          )}
          {chosenSteps.value === null && steps.length > 1 && (
            <button type="button" class="button quiet" onClick={() => setParams({ steps: String(step.step) }, "push")}>
              Only this step
            </button>
          )}
          <button type="button" class="icon-button small" aria-label="Let go of the step" onClick={() => setPicked(null)}>
            <Icon name="close" size={14} />
          </button>
        </div>
      )}
    </div>
  );
}

function largest(step: GraphStep) {
  const top = [...CATEGORIES].sort((a, b) => (step.parts[b] ?? 0) - (step.parts[a] ?? 0))[0];
  if (!top) return null;
  const part = step.parts[top] ?? 0;
  return (
    <span class="muted">
      <span class="swatch" style={{ background: CATEGORY_COLOUR[top] }} /> {CATEGORY_LABEL[top]} {duration(part)}, {percent((100 * part) / step.duration_ms)}
    </span>
  );
}

export function CategoryLegend({ columns }: { columns: readonly Column[] }) {
  const shown = CATEGORIES.filter((category) => columns.some((column) => (column.parts[category] ?? 0) > 0));
  return (
    <ul class="legend inline">
      {shown.map((category) => (
        <li key={category}>
          <span class="swatch" style={{ background: CATEGORY_COLOUR[category] }} />
          {CATEGORY_LABEL[category]}
        </li>
      ))}
    </ul>
  );
}

function toColumns(steps: readonly GraphStep[]): Column[] {
  const odd = outliers(steps.map((step) => step.duration_ms));
  return steps.map((step, index) => ({
    label: String(step.step),
    title: step.name === String(step.step) ? `Step ${step.step}` : `Step ${step.step} · ${step.name}`,
    total_ms: step.duration_ms,
    parts: step.parts,
    faint: !step.complete,
    outlier: odd[index] ?? false,
    foot: [step.foot, step.complete ? "" : "cut by the capture's edge"].filter(Boolean).join(" · "),
  }));
}

/** The categories of a row, by name, with or without the unit in it. */
export function partsOfRow(row: Readonly<Record<string, unknown>>): Record<string, number> {
  const parts: Record<string, number> = {};
  for (const category of CATEGORIES) {
    const value = row[category] ?? row[`${category}_ms`];
    if (typeof value === "number") parts[category] = value;
  }
  return parts;
}
