/** The tooltip of what is under the mouse. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { bytes, percent, words } from "../format";
import { isProjected, isScoped } from "./layout";
import type { Hover, Model } from "./model";
import { type Under, under } from "./Stage";
import { duration, moment } from "./ticks";

export function Tip({ model }: { model: Model }) {
  const hover = model.hover.value;
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || !hover) return;
    const stage = element.parentElement?.querySelector<HTMLElement>(".tl-tracks")?.getBoundingClientRect();
    if (!stage) return;
    const { offsetWidth: wide, offsetHeight: tall } = element;
    const x = stage.left + hover.x + 14;
    const y = stage.top + hover.y + 16;
    element.style.left = `${Math.max(4, x + wide > window.innerWidth - 8 ? x - wide - 26 : x)}px`;
    element.style.top = `${y + tall > window.innerHeight - 8 ? y - tall - 30 : y}px`;
  });
  if (!hover) return null;
  const lines = linesOf(model, hover, under(model));
  if (!lines) return null;
  return (
    <div class="tl-tip" ref={box} role="status">
      <div class="tl-tip-name">{lines.name}</div>
      {lines.value && <div class="tl-tip-value">{lines.value}</div>}
      {lines.note && <div class="muted">{lines.note}</div>}
    </div>
  );
}

interface Lines {
  readonly name: string;
  readonly value: string;
  readonly note: string;
}

function linesOf(model: Model, hover: Hover, found: Under | null): Lines | null {
  const { item } = hover.hit;
  if (item.group) return groupLines(model, hover);
  if (item.track && item.track.line < 0) return counterLines(model, hover);
  if (!found) return null;
  const { lane, at } = found;
  const name = model.names.get(lane.type[at] as number) ?? "…";
  const count = lane.count[at] as number;
  const kind = words(model.kinds.get(lane.kind[at] as number) ?? "");
  if (count === 1 && item.track && isProjected(item.track))
    return {
      ...{ name, value: duration(lane.busy[at] as number) },
      note: isScoped(item.track)
        ? `scope of the program, on ${item.track.detail}`
        : `launched here, on ${item.track.detail}`,
    };
  if (count === 1) return { name, value: duration(lane.busy[at] as number), note: kind === "other" ? "" : kind };
  const extent = ((lane.end[at] as number) - (lane.start[at] as number)) * lane.unit;
  const busy = Math.min(100, ((lane.busy[at] as number) / Math.max(1, extent)) * 100);
  return {
    name: `${count.toLocaleString("en-US")} events`,
    value: `${percent(busy, 0)} busy in ${duration(extent)}`,
    note: `longest: ${name}. Zoom in to see them separately.`,
  };
}

function groupLines(model: Model, hover: Hover): Lines | null {
  const { group } = hover.hit.item;
  if (!group || group.kind === "counters" || group.kind === "query") return null;
  for (const { tile, begin, end } of model.tiles.pieces(group.id, model.span.peek(), model.width)) {
    if (hover.time < begin || hover.time >= end || !tile.load) continue;
    const value = tile.load[Math.floor((hover.time - tile.begin) / tile.cell)] ?? 0;
    const text =
      group.lanes === 1 ? `${percent(value * 100, 0)} busy` : `${value.toFixed(1)} of ${group.lanes} threads busy`;
    return { name: group.name, value: text, note: `at ${moment(hover.time)}, averaged over ${duration(tile.cell)}` };
  }
  return null;
}

function counterLines(model: Model, hover: Hover): Lines | null {
  const { track } = hover.hit.item;
  if (!track) return null;
  for (const { tile, begin, end } of model.tiles.pieces(track.id, model.span.peek(), model.width)) {
    if (hover.time < begin || hover.time >= end || !tile.counter) continue;
    const { counter } = tile;
    const cell = Math.floor((hover.time - counter.begin) / tile.cell);
    const at = firstAfter(counter.cell, cell) - 1;
    if (at < 0) return { name: track.name, value: "not yet recorded", note: "" };
    if (counter.cell[at] !== cell)
      return {
        name: track.name,
        value: valueText(counter.last[at] as number, track.unit),
        note: `at ${moment(hover.time)}`,
      };
    const [low, high] = [counter.low[at] as number, counter.high[at] as number];
    return {
      name: track.name,
      value:
        low === high ? valueText(high, track.unit) : `${valueText(low, track.unit)} to ${valueText(high, track.unit)}`,
      note: `at ${moment(hover.time)}`,
    };
  }
  return null;
}

function firstAfter(cells: Int32Array, cell: number): number {
  let low = 0;
  let high = cells.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((cells[middle] as number) <= cell) low = middle + 1;
    else high = middle;
  }
  return low;
}

function valueText(value: number, unit: string): string {
  return unit === "bytes" ? bytes(value) : value.toLocaleString("en-US", { maximumSignificantDigits: 6 });
}
