/** Lines over the lanes of ranks: from where the last one was asked to come, over where it came, to those that wait. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { LateArrival, LateRanks } from "../generated/reports";
import type { Item } from "./layout";
import type { Model } from "./model";
import { duration } from "./ticks";
import { type Span, toX } from "./viewport";

/** A lane that is drawn: its step begins at `begin` and is so long. */
export interface Drawn {
  readonly host: string | null;
  readonly label: string;
  readonly model: Model;
  readonly items: readonly Item[];
  readonly canvas: HTMLCanvasElement;
  readonly begin: number;
  readonly length: number;
}

interface Props {
  late: LateRanks;
  drawn: readonly Drawn[];
  shown: Span;
}

interface Line {
  readonly key: string;
  readonly launch: string;
  readonly waits: readonly { readonly to: string; readonly span: string }[];
  readonly said: string;
}

interface Picture {
  readonly left: number;
  readonly width: number;
  readonly lines: readonly Line[];
}

export function LateLines({ late, drawn, shown }: Props) {
  const box = useRef<SVGSVGElement>(null);
  const [picture, setPicture] = useState<Picture | null>(null);
  useLayoutEffect(() => setPicture(draw(box.current, late, drawn, shown)), [late, drawn, shown]);
  return (
    <svg
      class="late-lines"
      ref={box}
      style={picture ? { left: picture.left, width: picture.width } : {}}
      role="img"
      aria-label={late.sentence || "No rank waits"}
    >
      {picture?.lines.map(({ key, launch, waits, said }) => (
        <g key={key}>
          <title>{said}</title>
          <path class="launch" d={launch} />
          {waits.map(({ to, span }) => (
            <g key={span}>
              <path d={to} />
              <path class="waits" d={span} />
            </g>
          ))}
        </g>
      ))}
    </svg>
  );
}

function draw(svg: SVGSVGElement | null, late: LateRanks, drawn: readonly Drawn[], shown: Span): Picture | null {
  const first = drawn[0]?.canvas;
  const parent = svg?.parentElement?.getBoundingClientRect();
  if (!first || !parent || !(shown.end > shown.begin)) return null;
  const box = first.getBoundingClientRect();
  const width = first.clientWidth;
  const place = (host: string, line: number, ps: number) => {
    const lane = drawn.find((each) => each.host === host);
    if (!lane) return null;
    const [middle, edge] = heightsOf(lane.items, line);
    const top = lane.canvas.getBoundingClientRect().top - parent.top;
    return [toX(shown, width, ps - lane.begin), top + middle, top + edge] as const;
  };
  const lines = late.arrivals.flatMap((arrival) => lineOf(arrival, place));
  return { left: box.left - parent.left, width, lines };
}

/** Where a moment of a line is: from the left, in the middle of its row, and at the row's lower edge. */
type Point = readonly [number, number, number];
type Place = (host: string, line: number, ps: number) => Point | null;

function lineOf(arrival: LateArrival, place: Place): Line[] {
  const came = place(arrival.host, arrival.line, arrival.start_ps);
  const asked = place(arrival.host, arrival.launch_line, arrival.launch_ps);
  if (!came || !asked) return [];
  const waits = arrival.waiters.flatMap(({ host, line, start_ps, waiting_ps }) => {
    const [from, until] = [place(host, line, start_ps), place(host, line, start_ps + waiting_ps)];
    return from && until ? [{ to: path(came, until), span: path(under(from), under(until)) }] : [];
  });
  const most = arrival.waiters[0];
  const waited = `${most?.host} waits ${duration(most?.waiting_ps ?? 0)}`;
  const said = `${arrival.host} comes last to ${arrival.operation}; ${waited}`;
  const key = `${arrival.host} ${arrival.line} ${arrival.start_ps}`;
  return waits.length ? [{ key, launch: path(asked, came), waits, said }] : [];
}

const path = ([x0, y0]: Point, [x1, y1]: Point) =>
  `M${x0.toFixed(1)} ${y0.toFixed(1)}L${x1.toFixed(1)} ${y1.toFixed(1)}`;

/** Below the names of events, which stay readable. */
const under = ([x, , edge]: Point): Point => [x, edge, edge];

/** The middle and the lower edge of the first row of a line in a lane; of its ribbon where it has none. */
function heightsOf(items: readonly Item[], line: number): readonly [number, number] {
  const item = items.find((each) => each.track?.line === line) ?? items[0];
  const height = item ? (item.track ? item.row : item.height) : 0;
  return item ? [item.top + height / 2, item.top + height] : [0, 0];
}
