/** A heat map of steps and ranks on a canvas: a thousand ranks are as readable as four. */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { mix } from "../../design/colours";
import { palette } from "../../design/theme";
import { duration } from "../../format";
import { LongName } from "../../ui/basics";
import { hint } from "../../ui/hint";
import { Icon } from "../../ui/icons";
import { type HeatTable, heatRange } from "./heat";

interface HeatMapProps {
  label: string;
  table: HeatTable;
  colour: string;
  /** Where a cell leads; null where its place is not known. */
  link: (step: number, host: string) => string | null;
}

const MOST_HEIGHT = 480;
const ROW = { least: 1, most: 26 };
const SHADES = 24;
/** A name needs this many pixels. */
const NAME_HEIGHT = 15;
const STEP_WIDTH = 34;

interface At {
  readonly rank: number;
  readonly step: number;
}

export function HeatMap({ label, table, colour, link }: HeatMapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [at, setAt] = useState<At | null>(null);
  const [width, setWidth] = useState(0);
  const surface = palette.value.surface;
  const range = useMemo(() => heatRange(table.values), [table]);
  const { ranks, steps } = table;
  const rowHeight = Math.min(ROW.most, Math.max(ROW.least, MOST_HEIGHT / ranks.length));
  const height = Math.ceil(rowHeight * ranks.length);
  useLayoutEffect(() => {
    const element = canvas.current;
    if (!element) return undefined;
    const watch = new ResizeObserver(() => setWidth(element.clientWidth));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (canvas.current && width && range) paint(canvas.current, { table, range, colour, surface, width, height });
  }, [table, range, colour, surface, width, height]);
  if (!range) return null;
  const under = (event: MouseEvent): At => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return inside({
      rank: Math.floor(((event.clientY - box.top) / box.height) * ranks.length),
      step: Math.floor(((event.clientX - box.left) / box.width) * steps.length),
    });
  };
  const inside = ({ rank, step }: At): At => ({
    rank: Math.max(0, Math.min(ranks.length - 1, rank)),
    step: Math.max(0, Math.min(steps.length - 1, step)),
  });
  const move = (event: KeyboardEvent) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (by) setAt(inside({ rank: (at?.rank ?? 0) + (by[0] as number), step: (at?.step ?? 0) + (by[1] as number) }));
    else if (event.key === "Enter" && at) follow(at);
    else return;
    event.preventDefault();
  };
  const follow = ({ rank, step }: At) => {
    const href = link(steps[step] as number, ranks[rank]?.host ?? "");
    if (href) window.location.hash = href;
  };
  return (
    <div class="heat">
      <div class="heat-body">
        <RankNames table={table} rowHeight={rowHeight} />
        <div
          class="heat-cells"
          role="application"
          tabIndex={0}
          aria-label={`${label}. Arrow keys move between cells, Enter shows one in the timeline.`}
          onKeyDown={move}
        >
          <canvas
            ref={canvas}
            style={{ height: `${height}px` }}
            data-marks={table.values.length}
            onMouseMove={(event) => setAt(under(event))}
            onMouseLeave={() => setAt(null)}
            onClick={(event) => follow(under(event))}
          />
          {at && (
            <span
              class="heat-mark"
              style={{
                left: `${(100 * at.step) / steps.length}%`,
                width: `${100 / steps.length}%`,
                top: `${at.rank * rowHeight}px`,
                height: `${rowHeight}px`,
              }}
            />
          )}
        </div>
        <span />
        <StepNumbers steps={steps} width={width} />
      </div>
      <div class="graph-foot">
        <Scale range={range} colour={colour} surface={surface} />
        <span class="heat-said" role="status">
          {at ? describe(table, at) : "click a cell to see that step of that rank in the timeline"}
        </span>
      </div>
    </div>
  );
}

function describe({ ranks, steps, values }: HeatTable, { rank, step }: At): string {
  const value = values[rank * steps.length + step] ?? Number.NaN;
  const text = Number.isNaN(value) ? "not recorded" : duration(value);
  return `${ranks[rank]?.label}, step ${steps[step]}: ${text}`;
}

/** Characters of a host's name that have room beside the cells, and above which its end stays when there is less. */
const [LONGEST_NAME, SHORT_NAME] = [26, 12];

function RankNames({ table, rowHeight }: { table: HeatTable; rowHeight: number }) {
  const every = Math.ceil(NAME_HEIGHT / rowHeight);
  const longest = Math.max(...table.ranks.map((rank) => rank.label.length));
  return (
    <ul class="heat-names" style={{ width: `${Math.min(longest, LONGEST_NAME)}ch` }}>
      {table.ranks.map(
        (rank, at) =>
          at % every === 0 && (
            <li key={`${rank.label} ${rank.host}`} style={{ top: `${at * rowHeight}px` }}>
              <LongName text={rank.label} whole={rank.host} room={SHORT_NAME} />
            </li>
          ),
      )}
    </ul>
  );
}

function StepNumbers({ steps, width }: { steps: readonly number[]; width: number }) {
  const every = Math.max(1, Math.ceil((STEP_WIDTH * steps.length) / Math.max(1, width)));
  return (
    <ul class="heat-steps" aria-hidden="true" {...hint("Step", "the number of the step, as the program counts")}>
      {steps.map(
        (step, at) =>
          at % every === 0 && (
            <li key={step} style={{ left: `${(100 * (at + 0.5)) / steps.length}%` }}>
              {step}
            </li>
          ),
      )}
    </ul>
  );
}

function Scale({
  range: [low, high],
  colour,
  surface,
}: {
  range: readonly [number, number];
  colour: string;
  surface: string;
}) {
  const stops = Array.from({ length: 5 }, (_, at) => shade(colour, surface, at / 4));
  return (
    <span class="heat-scale" {...hint("Scale", "the shortest and the longest of the times, and their colours")}>
      {duration(low)} <Icon name="right" size={12} />
      <span class="heat-ramp" style={{ background: `linear-gradient(to right, ${stops.join(", ")})` }} />
      {duration(high)}
    </span>
  );
}

/** From nearly the page's colour to the full one. */
function shade(colour: string, surface: string, share: number): string {
  return mix(mix(colour, surface, 0.88), colour, share);
}

interface Picture {
  readonly table: HeatTable;
  readonly range: readonly [number, number];
  readonly colour: string;
  readonly surface: string;
  readonly width: number;
  readonly height: number;
}

function paint(canvas: HTMLCanvasElement, { table, range, colour, surface, width, height }: Picture): void {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  if (!context) return;
  const ramp = Array.from({ length: SHADES }, (_, at) => shade(colour, surface, at / (SHADES - 1)));
  const [low, high] = range;
  const { steps, ranks, values } = table;
  const [cell, row] = [canvas.width / steps.length, canvas.height / ranks.length];
  const [gapX, gapY] = [cell > 6 * ratio ? ratio : 0, row > 6 * ratio ? ratio : 0];
  for (let y = 0; y < ranks.length; y += 1)
    for (let x = 0; x < steps.length; x += 1) {
      const value = values[y * steps.length + x] as number;
      if (Number.isNaN(value)) continue;
      const share = high > low ? (value - low) / (high - low) : 0.5;
      context.fillStyle = ramp[Math.round(share * (SHADES - 1))] as string;
      context.fillRect(x * cell, y * row, Math.max(1, cell - gapX), Math.max(1, row - gapY));
    }
}
