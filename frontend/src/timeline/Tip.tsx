/** The tooltip of what is under the mouse. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { colourOfCause } from "../design/causes";
import { palette } from "../design/theme";
import { bytes, percent, words } from "../format";
import { termText } from "../terms";
import { Code } from "../ui/basics";
import { isProjected, isScoped } from "./layout";
import type { Hover, Model } from "./model";
import { runUnder, type Under, under } from "./mouse";
import { duration, moment } from "./ticks";
import type { Run } from "./viewport";

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
  const run = hover ? runUnder(model) : null;
  const said = useSentence(model, run);
  if (!hover) return null;
  if (run)
    return (
      <div class="tl-tip floats tip" ref={box} role="status">
        <div class="tl-tip-name strong breaks">
          <span class="swatch" style={{ background: colourOfCause(run.cause, palette.value.surface) }} />{" "}
          {termText(run.cause)}
        </div>
        <div class="">{said ? <Code text={said} /> : duration(run.end - run.begin)}</div>
      </div>
    );
  const lines = linesOf(model, hover, under(model));
  if (!lines) return null;
  return (
    <div class="tl-tip floats tip" ref={box} role="status">
      <div class="tl-tip-name strong breaks">{lines.name}</div>
      {lines.value && <div class="">{lines.value}</div>}
      {lines.note && <div class="muted">{lines.note}</div>}
    </div>
  );
}

const REST_MS = 60;

/** What the server says of a stretch of a ribbon, once the mouse rests on it. */
function useSentence(model: Model, run: Run | null): string {
  const [said, setSaid] = useState({ key: "", sentence: "" });
  const key = run ? [run.ribbon, run.begin, run.end, run.cause].join() : "";
  useEffect(() => {
    if (!run) return undefined;
    const abort = new AbortController();
    const ask = () =>
      model.source.stretch(run, abort.signal).then(
        (found) => setSaid({ key, sentence: found?.sentence ?? "" }),
        () => undefined, // the cause and the length stay
      );
    const timer = window.setTimeout(ask, REST_MS);
    return () => {
      window.clearTimeout(timer);
      abort.abort();
    };
  }, [key]);
  return said.key === key ? said.sentence : "";
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
  if (!group || group.ribbon || group.kind === "counters" || group.kind === "query") return null;
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
