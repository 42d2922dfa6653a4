/** A part of a program's graph: drag to move, wheel or buttons to zoom, click a node to choose it. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { CATEGORY_COLOUR, categoryOf } from "../../design/colours";
import { bytes, duration } from "../../format";
import { IconButton } from "../../ui/controls";
import { hint } from "../../ui/hint";
import { type GraphNode, type Picture, runMs } from "./graphData";
import { BOX, curve, type PlacedNode, type PlacedPart, placePicture } from "./graphLayout";

interface GraphPictureProps {
  picture: Picture;
  /** The id of the chosen node. */
  chosen: number | null;
  onChoose: (node: GraphNode) => void;
  onCentre: (node: GraphNode) => void;
  onToggle: (node: GraphNode) => void;
  children?: ComponentChildren;
}

interface View {
  x: number;
  y: number;
  scale: number;
}

const LEAST = 0.05;
const MOST = 3;
const READABLE = 0.75;
const MARGIN = 24;

export function GraphPicture({ picture, chosen, onChoose, onCentre, onToggle, children }: GraphPictureProps) {
  const placed = useMemo(() => placePicture(picture), [picture]);
  const frame = useRef<HTMLDivElement>(null);
  const group = useRef<SVGGElement>(null);
  const view = useRef<View>({ x: 0, y: 0, scale: 1 });
  // The picture moves without being drawn anew: only the group's transform changes.
  const show = (next: View) => {
    view.current = next;
    group.current?.setAttribute("transform", `translate(${next.x} ${next.y}) scale(${next.scale})`);
  };
  const zoom = (factor: number, at?: { x: number; y: number }) => {
    const box = frame.current?.getBoundingClientRect();
    const { x, y, scale } = view.current;
    const next = Math.min(MOST, Math.max(LEAST, scale * factor));
    const centre = at ?? { x: (box?.width ?? 0) / 2, y: (box?.height ?? 0) / 2 };
    show({
      x: centre.x - ((centre.x - x) * next) / scale,
      y: centre.y - ((centre.y - y) * next) / scale,
      scale: next,
    });
  };
  const fit = () => {
    const box = frame.current?.getBoundingClientRect();
    if (box) show(fitted(placed, box.width, box.height));
  };
  useLayoutEffect(() => {
    const box = frame.current?.getBoundingClientRect();
    if (box) show(start(placed, middle(placed, picture), box.width, box.height));
  }, [placed]);
  useLayoutEffect(() => {
    const box = frame.current;
    if (!box) return undefined;
    const onWheel = (event: WheelEvent) => {
      event.preventDefault();
      const { left, top } = box.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY / 500), { x: event.clientX - left, y: event.clientY - top });
    };
    box.addEventListener("wheel", onWheel, { passive: false });
    return () => box.removeEventListener("wheel", onWheel);
  }, []);
  const drag = useDrag(view, show);
  return (
    <div class="hlo-frame" ref={frame} {...drag} data-marks={picture.nodes.length}>
      <svg
        class="hlo-svg"
        role="group"
        aria-label={`Graph of ${picture.program}: ${picture.nodes.length} instructions`}
      >
        <defs>
          <marker id="hlo-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">
            <path d="M0 0 8 4 0 8z" class="graph-tip" />
          </marker>
        </defs>
        <g ref={group}>
          <Part part={placed} picture={picture} chosen={chosen} on={{ onChoose, onCentre, onToggle }} />
        </g>
      </svg>
      <div class="hlo-zoom">
        <button type="button" class="icon-button small" aria-label="Zoom in" onClick={() => zoom(1.3)}>
          +
        </button>
        <button type="button" class="icon-button small" aria-label="Zoom out" onClick={() => zoom(1 / 1.3)}>
          −
        </button>
        <IconButton icon="columns" label="Show all" onClick={fit} />
      </div>
      {children}
    </div>
  );
}

/** Moves the view while the pointer is down; a click that did not move stays a click. */
function useDrag(view: { current: View }, show: (view: View) => void) {
  const from = useRef<{ x: number; y: number; view: View; moved: boolean } | null>(null);
  return {
    onPointerDown: (event: PointerEvent) => {
      if (event.button === 0)
        from.current = { x: event.clientX, y: event.clientY, view: { ...view.current }, moved: false };
    },
    onPointerMove: (event: PointerEvent) => {
      const start = from.current;
      if (!start || !event.buttons) return;
      const [dx, dy] = [event.clientX - start.x, event.clientY - start.y];
      if (!start.moved && Math.hypot(dx, dy) < 4) return;
      start.moved = true;
      (event.currentTarget as HTMLElement).setPointerCapture?.(event.pointerId);
      show({ ...start.view, x: start.view.x + dx, y: start.view.y + dy });
    },
    onClickCapture: (event: MouseEvent) => {
      if (from.current?.moved) event.stopPropagation();
      from.current = null;
    },
  };
}

/** The whole picture in the frame, not larger than life. */
function fitted(part: PlacedPart, width: number, height: number): View {
  const scale = Math.min(
    1,
    (width - 2 * MARGIN) / Math.max(part.width, 1),
    (height - 2 * MARGIN) / Math.max(part.height, 1),
  );
  return { x: (width - part.width * scale) / 2, y: (height - part.height * scale) / 2, scale: Math.max(scale, LEAST) };
}

/** At first everything if it stays readable, else what is in the middle in readable size. */
function start(part: PlacedPart, middle: PlacedNode | null, width: number, height: number): View {
  const all = fitted(part, width, height);
  if (all.scale >= READABLE || !middle) return all;
  const scale = READABLE;
  const x = inside(width / 2 - (middle.x + middle.width / 2) * scale, part.width * scale, width);
  const y = inside(height / 2 - (middle.y + middle.height / 2) * scale, part.height * scale, height);
  return { x, y, scale };
}

/** Moves a start so that the picture leaves no more than a margin of the frame empty, if it is larger than that. */
function inside(at: number, size: number, room: number): number {
  if (size + 2 * MARGIN <= room) return (room - size) / 2;
  return Math.min(MARGIN, Math.max(room - size - MARGIN, at));
}

/** The instruction in the middle, else the slowest. */
function middle(part: PlacedPart, picture: Picture): PlacedNode | null {
  const centre = part.nodes.find((each) => each.node.id === picture.centre);
  return (
    centre ?? part.nodes.reduce<PlacedNode | null>((a, b) => (a && a.node.self_us >= b.node.self_us ? a : b), null)
  );
}

interface Handlers {
  onChoose: (node: GraphNode) => void;
  onCentre: (node: GraphNode) => void;
  onToggle: (node: GraphNode) => void;
}

function Part(props: { part: PlacedPart; picture: Picture; chosen: number | null; on: Handlers }) {
  const { part, picture, chosen, on } = props;
  return (
    <>
      {part.edges.map(({ edge, points, onPath }) => (
        <g key={`${edge[0]}-${edge[1]}`}>
          <path
            class={`graph-edge ${onPath ? "critical" : ""} ${edge[3] ? "skips" : ""}`}
            d={curve(points)}
            marker-end="url(#hlo-tip)"
          >
            <title>{`${bytes(edge[2])}${edge[3] ? `, ${edge[3]} instructions between` : ""}`}</title>
          </path>
        </g>
      ))}
      {part.nodes.map((each) => (
        <NodeBox key={each.node.id} placed={each} picture={picture} chosen={chosen} on={on} />
      ))}
    </>
  );
}

function NodeBox(props: { placed: PlacedNode; picture: Picture; chosen: number | null; on: Handlers }) {
  const { placed, picture, chosen, on } = props;
  const { node, x, y, width, height, inside } = placed;
  const share = picture.self_us > 0 ? node.self_us / picture.self_us : 0;
  const classes = [
    "hlo-node",
    node.on_path && "on-path",
    node.id === chosen && "chosen",
    node.id === picture.centre && "centre",
    !node.self_us && "untimed",
  ];
  const time = node.self_us ? duration(runMs(node)) : "";
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Enter" || event.key === " ") on.onChoose(node);
    else if (event.key === "o" && node.opens) on.onToggle(node);
    else return;
    event.preventDefault();
  };
  return (
    <g transform={`translate(${x} ${y})`}>
      <g
        class={classes.filter(Boolean).join(" ")}
        role="button"
        tabIndex={0}
        aria-pressed={node.id === chosen}
        aria-label={`${node.name}, ${node.category}, ${node.shape}${time ? `, ${time}` : ""}`}
        {...hint(node.name, `${node.category} ${node.shape}`, time && `self time of a run ${1e3 * runMs(node)} µs`)}
        onClick={() => on.onChoose(node)}
        onDblClick={() => on.onCentre(node)}
        onKeyDown={keys}
      >
        <rect class="hlo-box" width={width} height={height} rx="7" />
        <rect class="hlo-kind" width="5" height={height} rx="2" fill={CATEGORY_COLOUR[categoryOf(node.category)]} />
        <text x="14" y="20" class="graph-name">
          {cut(node.name, time ? (node.opens ? 15 : 18) : 26)}
        </text>
        {time && (
          <text x={width - (node.opens ? 30 : 10)} y="20" text-anchor="end" class="hlo-time">
            {time}
          </text>
        )}
        {!inside && (
          <>
            <text x="14" y="37" class="graph-faint">
              {cut(node.category, 30)}
            </text>
            <text x="14" y="52" class="graph-faint mono">
              {cut(node.shape, 26)}
            </text>
            {share > 0 && (
              <rect
                class="hlo-share"
                x="5"
                y={BOX.height - 4}
                height="4"
                width={Math.max(2, Math.min(1, share) * (width - 5))}
              />
            )}
          </>
        )}
      </g>
      {node.opens && (
        <g
          class="hlo-toggle"
          role="button"
          tabIndex={0}
          aria-label={`${inside ? "Close" : "Open"} ${node.name}`}
          aria-expanded={inside !== null}
          onClick={() => on.onToggle(node)}
          onKeyDown={(event: KeyboardEvent) => event.key === "Enter" && on.onToggle(node)}
          transform={`translate(${width - 24} 8)`}
        >
          <rect width="16" height="16" rx="4" />
          <path d={inside ? "M4 8h8" : "M4 8h8M8 4v8"} />
        </g>
      )}
      {inside && (
        <g transform={`translate(${(width - inside.width) / 2} ${BOX.head + BOX.padding})`}>
          <Part part={inside} picture={picture} chosen={chosen} on={on} />
        </g>
      )}
    </g>
  );
}

function cut(text: string, most: number): string {
  const head = Math.ceil(most * 0.45);
  return text.length > most ? `${text.slice(0, head)}…${text.slice(head + 1 - most)}` : text;
}
