/** Stacked columns; one can be picked with the mouse or the arrow keys, and leads to its interval in the timeline. */

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Chart } from "../../charts/Chart";
import { type Column, markCount, type Part, shownParts, stackedColumns } from "../../charts/steps";
import { causeParts } from "../../design/causes";
import { palette } from "../../design/theme";
import { duration, percent } from "../../format";
import { setParams } from "../../router";
import { steps as chosenSteps } from "../../session";
import { IconButton, Legend } from "../../ui/controls";
import { Icon } from "../../ui/icons";

interface ColumnGraphProps {
  label: string;
  columns: readonly Column[];
  /** What the columns are made of; the causes of the account if not given. */
  parts?: readonly Part[];
  /** The label under the axis. */
  xName?: string;
  /** The noun for one column, for the hint below the graph. */
  noun?: string;
  median_ms?: number | null;
  height?: number;
  note?: ComponentChildren;
  /** Whose time the causes divide. */
  of?: string;
}

export function ColumnGraph({
  label,
  columns,
  parts: given,
  xName = "step",
  noun = "step",
  median_ms = null,
  height = 260,
  note,
  of = "Critical path",
}: ColumnGraphProps) {
  const [picked, setPicked] = useState<number | null>(null);
  const look = palette.value;
  const parts = useMemo(() => given ?? largestFirst(causeParts(look.surface), columns), [given, look, columns]);
  const at = picked !== null && picked < columns.length ? picked : null;
  const plot = useMemo(
    () => stackedColumns(columns, { parts, xName, median_ms, picked: at }),
    [columns, parts, xName, median_ms, at],
  );
  const leads = columns.some((column) => column.href);
  const column = at === null ? null : (columns[at] ?? null);
  return (
    <div
      class="column-graph"
      tabIndex={0}
      role="group"
      aria-label={`${label}. Arrow keys move between ${noun}s, Enter opens the timeline.`}
      onKeyDown={(event) => onKey(event, columns, at, setPicked)}
    >
      <Chart
        label={label}
        plot={plot}
        height={height}
        marks={markCount(columns, parts)}
        onPick={(index) => setPicked(index === at ? null : index)}
      />
      <div class="graph-foot flex wrap spread above-m minor">
        <Legend entries={shownParts(columns, parts)} of={given ? undefined : of} />
        <span class="muted">
          {note}
          {column || !leads ? "" : `click a ${noun} to see it in the timeline`}
        </span>
      </div>
      {column && <Picked column={column} parts={parts} alone={columns.length > 1} onClose={() => setPicked(null)} />}
    </div>
  );
}

/** The order of the bars: what takes most time first. */
function largestFirst(parts: readonly Part[], columns: readonly Column[]): Part[] {
  const size = ({ key }: Part) => columns.reduce((sum, column) => sum + (column.parts[key] ?? 0), 0);
  return [...parts].sort((a, b) => size(b) - size(a));
}

function onKey(
  event: KeyboardEvent,
  columns: readonly Column[],
  at: number | null,
  pick: (index: number | null) => void,
): void {
  if (event.target !== event.currentTarget) return;
  const last = columns.length - 1;
  const to: Record<string, number> = {
    ArrowLeft: at === null ? last : Math.max(0, at - 1),
    ArrowRight: at === null ? 0 : Math.min(last, at + 1),
    Home: 0,
    End: last,
  };
  const next = to[event.key];
  if (next !== undefined) pick(next);
  else if (event.key === "Escape" && at !== null) pick(null);
  else if (event.key === "Enter" && at !== null && columns[at]?.href) window.location.hash = columns[at].href;
  else return;
  event.preventDefault();
}

function Picked({
  column,
  parts,
  alone,
  onClose,
}: {
  column: Column;
  parts: readonly Part[];
  alone: boolean;
  onClose: () => void;
}) {
  const step = column.step;
  return (
    <div class="picked" role="status">
      <strong>{column.title}</strong>
      <span>{duration(column.total_ms)}</span>
      <Largest column={column} parts={parts} />
      {column.href && (
        <a class="button" href={column.href}>
          Show in the timeline <Icon name="arrow" size={16} />
        </a>
      )}
      {column.beside && (
        <a class="button" href={column.beside}>
          Compare with the median step
        </a>
      )}
      {step !== undefined && chosenSteps.value === null && alone && (
        <button type="button" class="button quiet" onClick={() => setParams({ steps: String(step) }, "push")}>
          Only this step
        </button>
      )}
      <IconButton icon="close" label="Clear the selection" onClick={onClose} />
    </div>
  );
}

function Largest({ column, parts }: { column: Column; parts: readonly Part[] }) {
  const size = (part: Part) => column.parts[part.key] ?? 0;
  const top = [...parts].sort((a, b) => size(b) - size(a))[0];
  if (!top || !(column.total_ms > 0)) return null;
  return (
    <span class="muted">
      <span class="swatch" style={{ background: top.colour }} /> {top.label} {duration(size(top))},{" "}
      {percent((100 * size(top)) / column.total_ms)}
    </span>
  );
}
