/** A chart: axes, curves, columns and marks as SVG, with what is under the mouse explained beside it. */
import { type ComponentChildren, Fragment } from "preact";
import { useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { measurer } from "../table/measure";
import { PopupBox } from "./PopupBox";
import { type Axis, type Columns, type Curve, type Dot, nearestPlace, outlines, type Plot, type Scale } from "./plot";

export interface ChartProps {
  /** What the chart shows, for users who cannot see it. */
  label: string;
  plot: Plot;
  height: number;
  /** The number of visible marks, for tests and other programs. */
  marks: number;
  /** A click: which of the plot's places or dots, and where on the horizontal axis. */
  onPick?: (index: number, x: number) => void;
}

type Span = readonly [number, number];

/** What a drag or a turn of the wheel has to reach before it is one. */
const DRAG_PX = 5;
const REACH_PX = 6;
const WHEEL_ZOOM = 0.0016;

export function Chart({ label, plot, height, marks, onPick }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState<Span>([0, height]);
  const [zoomed, setZoomed] = useState<Span | null>(null);
  const [hover, setHover] = useState<{ readonly index: number; readonly x: number; readonly y: number } | null>(null);
  const [drag, setDrag] = useState<Span | null>(null);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(
      () => box.current && setSize([box.current.clientWidth, Math.max(height, box.current.clientHeight)]),
    );
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, [height]);
  useLayoutEffect(() => setZoomed(null), [plot.x.range[0], plot.x.range[1]]);
  const frame = useMemo(() => frameOf(plot, zoomed ?? plot.x.range, size), [plot, zoomed, size]);
  const picture = useMemo(() => size[0] > 0 && <Picture plot={plot} frame={frame} />, [plot, frame]);
  const indexAt = (x: number, y: number) => {
    if (x < frame.left || x > frame.left + frame.width) return -1;
    return plot.places ? nearestPlace(plot.places, frame.valueAt(x)) : dotAt(plot.dots ?? [], frame, x, y);
  };
  const zoom = (from: number, to: number) => {
    const [low, high] = plot.x.range;
    const next = [Math.max(low, Math.min(from, to)), Math.min(high, Math.max(from, to))] as const;
    setZoomed(next[0] <= low && next[1] >= high ? null : next);
  };
  const chart = (
    <div
      class={`chart ${plot.canZoom ? "can-zoom" : ""} ${onPick ? "can-pick" : ""}`}
      style={{ minHeight: `${height}px` }}
      role="img"
      aria-label={label}
      data-marks={marks}
      data-drawn={size[0] > 0}
      ref={box}
      onPointerDown={(event) => {
        if (!plot.canZoom || event.button !== 0) return;
        const [x] = placeIn(event);
        setDrag([x, x]);
      }}
      onPointerMove={(event) => {
        const [x, y] = placeIn(event);
        if (drag) {
          event.currentTarget.setPointerCapture(event.pointerId);
          setDrag([drag[0], Math.max(frame.left, Math.min(frame.left + frame.width, x))]);
        }
        const index = indexAt(x, y);
        setHover(index < 0 ? null : { index, x: event.clientX, y: event.clientY });
      }}
      onPointerUp={(event) => {
        setDrag(null);
        const [x, y] = placeIn(event);
        const index = indexAt(x, y);
        if (drag && isWide(drag)) zoom(frame.valueAt(drag[0]), frame.valueAt(drag[1]));
        else if (index >= 0 && event.button === 0) onPick?.(index, frame.valueAt(x));
      }}
      onPointerLeave={() => setHover(null)}
      onPointerCancel={() => setDrag(null)}
      onWheel={(event) => {
        if (!plot.canZoom || !event.ctrlKey) return;
        event.preventDefault();
        const [low, high] = zoomed ?? plot.x.range;
        const at = frame.valueAt(placeIn(event)[0]);
        const factor = Math.exp(event.deltaY * WHEEL_ZOOM);
        zoom(at - (at - low) * factor, at + (high - at) * factor);
      }}
    >
      {picture}
      {hover && plot.places && <Pointer x={frame.toX(plot.places[hover.index] as number)} frame={frame} />}
      {drag && isWide(drag) && (
        <span
          class="chart-drag"
          style={{ left: `${Math.min(...drag)}px`, width: `${Math.abs(drag[1] - drag[0])}px` }}
        />
      )}
      {hover && !drag && <PopupBox {...plot.popup(hover.index)} x={hover.x} y={hover.y} />}
    </div>
  );
  return (
    <>
      {chart}
      {zoomed && (
        <button type="button" class="button quiet chart-all" onClick={() => setZoomed(null)}>
          Show all
        </button>
      )}
    </>
  );
}

function isWide([from, to]: Span): boolean {
  return Math.abs(to - from) > DRAG_PX;
}

function placeIn(event: MouseEvent): Span {
  const box = (event.currentTarget as Element).getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function dotAt(dots: readonly Dot[], { toX, toY }: Frame, x: number, y: number): number {
  const away = ({ x: a, y: b }: Dot) => Math.hypot(toX(a) - x, toY(b) - y);
  const near = dots.map((dot, at) => [away(dot) - dot.size / 2, at] as const).filter(([gap]) => gap < REACH_PX);
  return near.length ? near.reduce((best, each) => (each[0] < best[0] ? each : best))[1] : -1;
}

/** Where the axes stand, in pixels, and what is written beside them. */
interface Frame {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  readonly toX: Scale;
  readonly toY: Scale;
  readonly toRight: Scale;
  readonly valueAt: Scale;
  readonly xTicks: readonly number[];
  readonly yTicks: readonly number[];
  readonly labelWidth: number;
  readonly sides: Span;
  /** Whether what guides are called stands beside them. */
  readonly isBeside: boolean;
}

const TOP = 22;
const LINE = 15;
const GAP = 6;
/** Labels are this far apart, and no wider than this. */
const ROOM = 14;
const WIDEST_LABEL = 110;
const LEVEL_PX = 44;
/** What a guide is called stands behind the end of the line. */
const GUIDE_ROOM = 84;
/** In a narrower chart the name stands above, which leaves the room to the columns. */
const NARROW = 520;
/** So few columns have each a name, however often it is broken. */
const FEW = 10;

function frameOf(plot: Plot, [low, high]: Span, [wide, tall]: Span): Frame {
  const measure = measurer();
  const widest = (axis: Axis, ticks: readonly number[]) => Math.max(0, ...ticks.map((at) => measure(axis.write(at))));
  const levels = (axis: Axis) => axis.ticks(...axis.range, Math.max(2, Math.floor(tall / LEVEL_PX)));
  const yTicks = levels(plot.y);
  const left = Math.ceil(widest(plot.y, yTicks)) + GAP;
  const named = wide > NARROW && plot.guides?.some((guide) => guide.y !== undefined) ? GUIDE_ROOM : 12;
  const right = plot.right ? Math.ceil(widest(plot.right, levels(plot.right))) + GAP : named;
  const width = Math.max(10, wide - left - right);
  const toX: Scale = (value) => left + ((value - low) / (high - low)) * width;
  const fewest = plot.x.ticks(low, high, Math.max(1, Math.floor(width / ROOM / 2)));
  const label = Math.min(WIDEST_LABEL, widest(plot.x, fewest)) + ROOM;
  const isFew = (plot.columns && fewest.length <= FEW && high - low <= FEW) ?? false;
  const xTicks = isFew ? fewest : plot.x.ticks(low, high, Math.max(1, Math.floor(width / label)));
  const room = xTicks.length > 1 ? toX(xTicks[1] as number) - toX(xTicks[0] as number) : width;
  const labelWidth = Math.min(WIDEST_LABEL + ROOM, room - GAP);
  const shown = xTicks.filter((at) => toX(at) + Math.min(labelWidth, measure(plot.x.write(at))) / 2 <= wide);
  const lines = Math.max(1, ...shown.map((at) => linesOf(plot.x.write(at), labelWidth, measure)));
  const height = Math.max(10, tall - TOP - GAP - lines * LINE - (plot.x.name ? LINE + 2 : 0));
  const toLevel = (axis: Axis) => (value: number) =>
    TOP + height - ((value - axis.range[0]) / (axis.range[1] - axis.range[0])) * height;
  return {
    ...{ left, top: TOP, width, height, toX, toY: toLevel(plot.y), toRight: toLevel(plot.right ?? plot.y) },
    valueAt: (x) => low + ((x - left) / width) * (high - low),
    ...{ xTicks: shown, yTicks, labelWidth, sides: [low, high], isBeside: named === GUIDE_ROOM },
  };
}

function linesOf(text: string, room: number, measure: (text: string) => number): number {
  return text.split("\n").reduce((sum, line) => sum + Math.max(1, Math.ceil(measure(line) / room)), 0);
}

function Picture({ plot, frame }: { plot: Plot; frame: Frame }) {
  const { left, top, width, height, toX, toY, toRight, xTicks, yTicks } = frame;
  const bottom = top + height;
  const clip = useId();
  return (
    <>
      <svg class="chart-picture" aria-hidden="true">
        <path class="chart-grid" d={yTicks.map((at) => `M${left} ${toY(at).toFixed(1)}h${width}`).join("")} />
        <clipPath id={clip}>
          <rect x={left} width={width} height={bottom} />
        </clipPath>
        <g clip-path={`url(#${clip})`}>
          {plot.columns?.map((each) => (
            <ColumnsShape key={each.name} columns={each} frame={frame} />
          ))}
          {plot.curves?.map((each) => (
            <CurveShape key={each.name} curve={each} frame={frame} />
          ))}
          {plot.dots?.map((each, at) => (
            <path
              key={at}
              d={shapeOf(each, toX(each.x), toY(each.y))}
              fill={each.colour}
              stroke={each.edge}
              stroke-width={each.edgeWidth}
              opacity={0.8}
            />
          ))}
        </g>
        <path class="chart-axis" d={`M${left} ${bottom}h${width}`} />
        {plot.guides?.map(({ x, y, name, colour, isSolid }, at) => (
          <path
            key={`${name} ${at}`}
            class={`chart-guide ${isSolid ? "solid" : ""}`}
            d={x === undefined ? `M${left} ${toY(y ?? 0)}h${width}` : `M${toX(x)} ${top}V${bottom}`}
            {...(colour ? { style: { stroke: colour } } : {})}
          />
        ))}
      </svg>
      <Text x={0} y={0} anchor="start">
        {plot.y.name}
      </Text>
      {yTicks.map((at) => (
        <Text key={at} x={left - GAP} y={toY(at) - LINE / 2} anchor="end">
          {plot.y.write(at)}
        </Text>
      ))}
      {plot.right?.ticks(...plot.right.range, yTicks.length).map((at) => (
        <Text key={at} x={left + width + GAP} y={toRight(at) - LINE / 2} anchor="start">
          {plot.right?.write(at)}
        </Text>
      ))}
      {xTicks.map((at) => (
        <Text key={at} x={toX(at)} y={bottom + 3} anchor="middle" width={frame.labelWidth}>
          {plot.x.write(at)}
        </Text>
      ))}
      {plot.x.name && (
        <span class="chart-text chart-name" style={{ left: `${left}px`, width: `${width}px` }}>
          {plot.x.name}
        </span>
      )}
      <Names plot={plot} frame={frame} />
    </>
  );
}

/** What guides and lines are called, at their ends. */
function Names({ plot, frame: { left, width, top, toX, toY, sides, isBeside } }: { plot: Plot; frame: Frame }) {
  return (
    <>
      {plot.guides?.map(({ x, y, name }) => {
        if (!name) return null;
        if (x === undefined)
          return isBeside ? (
            <Text key={name} x={left + width + GAP} y={toY(y ?? 0) - LINE / 2} anchor="start" isStrong>
              {name}
            </Text>
          ) : (
            <Text key={name} x={left + width} y={0} anchor="end" isStrong>
              ┄ {name}
            </Text>
          );
        if (x < sides[0] || x > sides[1]) return null;
        const isLate = toX(x) > left + width - 50;
        return (
          <Text key={name} x={toX(x) + (isLate ? -2 : 2)} y={top - LINE - 2} anchor={isLate ? "end" : "start"} isStrong>
            {name}
          </Text>
        );
      })}
      {plot.notes?.map((note) => (
        <Fragment key={note.text}>
          <Text x={toX(note.x)} y={toY(note.y) - LINE - 3} anchor={note.anchor} isStrong>
            {note.text}
          </Text>
        </Fragment>
      ))}
    </>
  );
}

interface TextProps {
  x: number;
  y: number;
  anchor: "start" | "middle" | "end";
  width?: number;
  isStrong?: boolean;
  children: ComponentChildren;
}

function Text({ x, y, anchor, width, isStrong = false, children }: TextProps) {
  return (
    <span
      class={`chart-text ${anchor} ${isStrong ? "is-strong" : ""}`}
      style={{ left: `${x}px`, top: `${y}px`, ...(width ? { width: `${width}px` } : {}) }}
    >
      {children}
    </span>
  );
}

function CurveShape({ curve, frame: { toX, toY, toRight, width } }: { curve: Curve; frame: Frame }) {
  const { line, area } = outlines(curve, toX, curve.isOnRight ? toRight : toY, width);
  return (
    <>
      {area && <path d={area} fill={curve.colour} opacity={curve.fill ?? 1} />}
      <path
        d={line}
        fill="none"
        stroke={curve.colour}
        stroke-width={curve.width ?? 1.5}
        stroke-dasharray={curve.isDashed ? "4 4" : undefined}
      />
    </>
  );
}

const WIDEST_COLUMN = 46;

/** All columns of one colour as two shapes: those that count, and the faint ones. */
function ColumnsShape({ columns, frame: { toX, toY } }: { columns: Columns; frame: Frame }) {
  const shape = (isFaint: boolean) =>
    columns.boxes
      .filter((box) => !!box.isFaint === isFaint && box.high > box.low)
      .map(({ x, width, low, high }) => {
        const wide = Math.min(WIDEST_COLUMN, toX(x + width / 2) - toX(x - width / 2));
        const [left, top] = [toX(x) - wide / 2, toY(high)];
        return `M${left.toFixed(2)} ${top.toFixed(2)}h${wide.toFixed(2)}V${toY(low).toFixed(2)}h${(-wide).toFixed(2)}z`;
      })
      .join("");
  return (
    <>
      <path d={shape(false)} fill={columns.colour} />
      <path d={shape(true)} fill={columns.colour} opacity={0.35} />
    </>
  );
}

function shapeOf({ shape, size }: Dot, x: number, y: number): string {
  const r = size / 2;
  if (shape === "circle") return `M${x - r} ${y}a${r} ${r} 0 1 0 ${size} 0a${r} ${r} 0 1 0 ${-size} 0z`;
  return `M${x} ${y - r}L${x + r} ${y + r}H${x - r}z`;
}

function Pointer({ x, frame: { top, height } }: { x: number; frame: Frame }) {
  return <span class="chart-pointer" style={{ left: `${x}px`, top: `${top}px`, height: `${height}px` }} />;
}
