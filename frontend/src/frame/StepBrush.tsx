/** The range of steps that every page shows, chosen on a small chart of the step times. */

import { useMemo, useRef, useState } from "preact/hooks";
import { address, type ToolAnswer, toolAddress, useResource } from "../api";
import { duration } from "../format";
import type { OverviewReport, OverviewStep } from "../pages/shared/reports";
import { setParams } from "../router";
import { host, isReady, sessionId, steps } from "../session";
import { IconButton } from "../ui/controls";
import { hint } from "../ui/hint";

export interface StepRange {
  readonly first: number;
  readonly last: number;
}

/** `3-9`, or `3` for one step. */
export function parseSteps(text: string | null): StepRange | null {
  const found = /^(\d+)(?:-(\d+))?$/.exec(text ?? "");
  if (!found) return null;
  const [first, last] = [Number(found[1]), Number(found[2] ?? found[1])];
  return { first: Math.min(first, last), last: Math.max(first, last) };
}

export function formatSteps(range: StepRange | null): string | null {
  return range && (range.first === range.last ? `${range.first}` : `${range.first}-${range.last}`);
}

const WIDTH = 200;
const HEIGHT = 30;

export function StepBrush() {
  const url =
    isReady.value && sessionId.value ? address(toolAddress(sessionId.value, "overview"), { host: host.value }) : null;
  const found = useResource<ToolAnswer<"overview", OverviewReport>>(url);
  const rows = found.state === "ready" ? (found.data.report.steps ?? []) : [];
  if (rows.length < 2) return null;
  return <Brush rows={rows} />;
}

function Brush({ rows }: { rows: readonly OverviewStep[] }) {
  const picture = useRef<SVGSVGElement>(null);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  // Of the steps that count, as the page's figures: the first ones may compile for long.
  const counted = rows.filter((row) => row.usual);
  const longest = Math.max(...(counted.length ? counted : rows).map((row) => row.duration_ms));
  const all = counted.length < rows.length ? `${counted.length} of ${rows.length} steps` : `${rows.length} steps`;
  const path = useMemo(() => outline(rows, longest), [rows, longest]);
  const chosen = parseSteps(steps.value);
  const range = drag ? ordered(drag) : indices(rows, chosen);

  const indexAt = (event: PointerEvent) => {
    const box = (picture.current as SVGSVGElement).getBoundingClientRect();
    return clamp(Math.floor(((event.clientX - box.left) / box.width) * rows.length), rows.length);
  };
  const commit = (first: number, last: number) => {
    const isAll = first === 0 && last === rows.length - 1;
    setParams({ steps: isAll ? null : formatSteps({ first: stepAt(rows, first), last: stepAt(rows, last) }) }, "push");
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (move === undefined) return;
    event.preventDefault();
    const now = range ?? { first: 0, last: rows.length - 1 };
    if (event.shiftKey) commit(now.first, Math.max(now.first, clamp(now.last + move, rows.length)));
    else commit(Math.min(now.last, clamp(now.first + move, rows.length)), now.last);
  };

  const unit = WIDTH / rows.length;
  return (
    <div class="brush">
      <svg
        ref={picture}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        width={WIDTH}
        height={HEIGHT}
        preserveAspectRatio="none"
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a slider that is drawn
        role="slider"
        tabindex={0}
        aria-label="Steps to show"
        aria-valuemin={rows[0]?.step ?? 0}
        aria-valuemax={rows.at(-1)?.step ?? 0}
        aria-valuenow={chosen?.first ?? rows[0]?.step ?? 0}
        aria-valuetext={chosen ? `steps ${chosen.first} to ${chosen.last}` : "all steps"}
        onKeyDown={onKeyDown}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          const at = indexAt(event);
          setDrag({ from: at, to: at });
        }}
        onPointerMove={(event) => drag && setDrag({ from: drag.from, to: indexAt(event) })}
        onPointerUp={() => {
          if (!drag) return;
          const { first, last } = ordered(drag);
          setDrag(null);
          commit(first, last);
        }}
        {...hint(
          "Steps to show",
          "Drag over the steps that all pages should show; click one to show only that one. " +
            "Arrow keys move the first step, Shift and arrow keys the last. Steps of warm-up do not count.",
        )}
      >
        <rect class="brush-back" width={WIDTH} height={HEIGHT} />
        {range && (
          <rect
            class="brush-range"
            x={range.first * unit}
            width={Math.max(2, (range.last - range.first + 1) * unit)}
            height={HEIGHT}
          />
        )}
        <path class="brush-line" d={path} />
      </svg>
      <span class="brush-text oneline minor">
        {range ? stepsText(rows, range) : all}
        <span class="muted"> ≤ {duration(longest)}</span>
      </span>
      {chosen && <IconButton icon="close" label="Show all steps" onClick={() => setParams({ steps: null }, "push")} />}
    </div>
  );
}

function stepsText(rows: readonly OverviewStep[], range: StepRange): string {
  const [first, last] = [stepAt(rows, range.first), stepAt(rows, range.last)];
  return first === last ? `step ${first}` : `steps ${first}–${last}`;
}

function stepAt(rows: readonly OverviewStep[], index: number): number {
  return rows[index]?.step ?? 0;
}

function clamp(index: number, count: number): number {
  return Math.max(0, Math.min(count - 1, index));
}

function ordered({ from, to }: { from: number; to: number }): StepRange {
  return { first: Math.min(from, to), last: Math.max(from, to) };
}

/** The positions of the chosen steps in the list of all. */
function indices(rows: readonly OverviewStep[], chosen: StepRange | null): StepRange | null {
  if (!chosen) return null;
  const inside = rows.flatMap((row, index) => (row.step >= chosen.first && row.step <= chosen.last ? [index] : []));
  return inside.length ? { first: inside[0] as number, last: inside.at(-1) as number } : null;
}

/** Step times as one filled outline: light enough for thousands of steps. */
function outline(rows: readonly OverviewStep[], longest: number): string {
  const unit = WIDTH / rows.length;
  const gap = unit > 5 ? 1 : 0;
  const columns = rows.map((row, index) => {
    const top = HEIGHT - 2 - (longest > 0 ? Math.min(1, row.duration_ms / longest) * (HEIGHT - 6) : 0);
    return `M${(index * unit + gap / 2).toFixed(2)} ${HEIGHT}V${top.toFixed(2)}h${(unit - gap).toFixed(2)}V${HEIGHT}z`;
  });
  return columns.join("");
}
