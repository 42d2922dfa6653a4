/** A heat map on a canvas: a thousand ranks are as readable as four. */
import { Fragment } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { mix } from "../../design/colours";
import { palette } from "../../design/theme";
import { words } from "../../format";
import { LongName } from "../../ui/basics";
import { hint } from "../../ui/hint";
import type { HeatScale, HeatTable } from "./heat";

interface HeatMapProps {
  label: string;
  table: HeatTable;
  scale: HeatScale;
  colour: string;
  /** Where a cell leads, by its column and its row's host; null where its place is not known. */
  link?: (column: string, host: string) => string | null;
}

const MOST_HEIGHT = 480;
const ROW = { least: 1, most: 26 };
const SHADES = 24;
/** A name needs this many pixels. */
const NAME_HEIGHT = 15;
const COLUMN_WIDTH = 34;

interface At {
  readonly row: number;
  readonly column: number;
}

export function HeatMap({ label, table, scale, colour, link }: HeatMapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [at, setAt] = useState<At | null>(null);
  const [width, setWidth] = useState(0);
  const surface = palette.value.surface;
  const { rows, columns } = table;
  const rowHeight = Math.min(ROW.most, Math.max(ROW.least, MOST_HEIGHT / rows.length));
  const height = Math.ceil(rowHeight * rows.length);
  useLayoutEffect(() => {
    const element = canvas.current;
    if (!element) return undefined;
    const watch = new ResizeObserver(() => setWidth(element.clientWidth));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (canvas.current && width) paint(canvas.current, { table, scale, colour, surface, width, height });
  }, [table, scale, colour, surface, width, height]);
  const under = (event: MouseEvent): At => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return inside({
      row: Math.floor(((event.clientY - box.top) / box.height) * rows.length),
      column: Math.floor(((event.clientX - box.left) / box.width) * columns.length),
    });
  };
  const inside = ({ row, column }: At): At => ({
    row: Math.max(0, Math.min(rows.length - 1, row)),
    column: Math.max(0, Math.min(columns.length - 1, column)),
  });
  const move = (event: KeyboardEvent) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (by) setAt(inside({ row: (at?.row ?? 0) + (by[0] as number), column: (at?.column ?? 0) + (by[1] as number) }));
    else if (event.key === "Enter" && at) follow(at);
    else return;
    event.preventDefault();
  };
  const follow = ({ row, column }: At) => {
    const href = link?.(columns[column] as string, rows[row]?.host ?? "");
    if (href) window.location.hash = href;
  };
  return (
    <div class="heat">
      <div class="heat-body">
        <RowNames table={table} rowHeight={rowHeight} />
        <div
          class="heat-cells"
          role="application"
          tabIndex={0}
          aria-label={`${label}. Arrow keys move between cells${link ? ", Enter shows one in the timeline" : ""}.`}
          onKeyDown={move}
        >
          <canvas
            ref={canvas}
            class={link ? "is-link" : ""}
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
                left: `${(100 * at.column) / columns.length}%`,
                width: `${100 / columns.length}%`,
                top: `${at.row * rowHeight}px`,
                height: `${rowHeight}px`,
              }}
            />
          )}
        </div>
        <span />
        <ColumnNames table={table} width={width} />
      </div>
      <div class="graph-foot flex wrap spread above-m minor">
        <Scale scale={scale} colour={colour} surface={surface} />
        <span class="heat-said muted minor" role="status">
          {at ? describe(table, scale, at) : link && "click a cell to see that step of that rank in the timeline"}
        </span>
      </div>
    </div>
  );
}

function describe({ across, rows, columns, values }: HeatTable, scale: HeatScale, { row, column }: At): string {
  const value = values[row * columns.length + column] ?? Number.NaN;
  const text = Number.isNaN(value) ? "not recorded" : scale.text(value);
  return `${rows[row]?.label}, ${across} ${columns[column]}: ${text}`;
}

/** Characters of a row's name that have room beside the cells, and above which its end stays when there is less. */
const [LONGEST_NAME, SHORT_NAME] = [26, 12];

function RowNames({ table, rowHeight }: { table: HeatTable; rowHeight: number }) {
  const every = Math.ceil(NAME_HEIGHT / rowHeight);
  const longest = Math.max(...table.rows.map((row) => row.label.length));
  return (
    <ul class="heat-names" style={{ width: `${Math.min(longest, LONGEST_NAME)}ch` }}>
      {table.rows.map(
        (row, at) =>
          at % every === 0 && (
            <li key={`${row.label} ${row.host}`} style={{ top: `${at * rowHeight}px` }}>
              <LongName text={row.label} whole={row.host || row.label} room={SHORT_NAME} />
            </li>
          ),
      )}
    </ul>
  );
}

const COLUMN_MEANING: Readonly<Record<string, string>> = {
  step: "the number of the step, as the program counts",
  stage: "the stage of the pipeline, from 0",
};

function ColumnNames({ table: { across, columns }, width }: { table: HeatTable; width: number }) {
  const every = Math.max(1, Math.ceil((COLUMN_WIDTH * columns.length) / Math.max(1, width)));
  return (
    <ul class="heat-steps minor muted" aria-hidden="true" {...hint(words(across), COLUMN_MEANING[across] ?? "")}>
      {columns.map(
        (column, at) =>
          at % every === 0 && (
            <li key={column} style={{ left: `${(100 * (at + 0.5)) / columns.length}%` }}>
              {column}
            </li>
          ),
      )}
    </ul>
  );
}

function Scale({ scale, colour, surface }: { scale: HeatScale; colour: string; surface: string }) {
  return (
    <span class="heat-scale inline-row gap-m minor muted" {...hint("Scale", scale.meaning)}>
      {scale.marks.map((mark, at) => (
        <Fragment key={mark}>
          {at > 0 && <Ramp scale={scale} from={scale.marks[at - 1] as number} to={mark} {...{ colour, surface }} />}
          {scale.text(mark)}
        </Fragment>
      ))}
    </span>
  );
}

function Ramp({ scale, from, to, colour, surface }: { scale: HeatScale; from: number; to: number } & Colours) {
  const stops = Array.from({ length: 5 }, (_, at) =>
    shade(colour, surface, scale.share(from + ((to - from) * at) / 4)),
  );
  return <span class="heat-ramp" style={{ background: `linear-gradient(to right, ${stops.join(", ")})` }} />;
}

interface Colours {
  readonly colour: string;
  readonly surface: string;
}

/** How much of the page's colour is in the pale one, at 0, and in the palest, at -1. */
const [PALE, PALEST] = [0.88, 0.96];

/** From nearly the page's colour to the full one. */
function shade(colour: string, surface: string, share: number): string {
  const pale = mix(colour, surface, PALE);
  return share < 0 ? mix(pale, mix(colour, surface, PALEST), -share) : mix(pale, colour, share);
}

interface Picture {
  readonly table: HeatTable;
  readonly scale: HeatScale;
  readonly colour: string;
  readonly surface: string;
  readonly width: number;
  readonly height: number;
}

function paint(canvas: HTMLCanvasElement, { table, scale, colour, surface, width, height }: Picture): void {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  if (!context) return;
  const ramp = Array.from({ length: 2 * SHADES + 1 }, (_, at) => shade(colour, surface, at / SHADES - 1));
  const { columns, rows, values } = table;
  const [cell, row] = [canvas.width / columns.length, canvas.height / rows.length];
  const [gapX, gapY] = [cell > 6 * ratio ? ratio : 0, row > 6 * ratio ? ratio : 0];
  for (let y = 0; y < rows.length; y += 1)
    for (let x = 0; x < columns.length; x += 1) {
      const value = values[y * columns.length + x] as number;
      if (Number.isNaN(value)) continue;
      context.fillStyle = ramp[Math.round((scale.share(value) + 1) * SHADES)] as string;
      context.fillRect(x * cell, y * row, Math.max(1, cell - gapX), Math.max(1, row - gapY));
    }
}
