/**
 * The explanation of a number, on hover or focus.  Any element may carry `data-hint` (what it means), `data-hint-title`
 * (its name and unit) and `data-hint-value` (the exact value); one listener on the page shows them.
 */
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { visible } from "../format";

interface Shown {
  readonly title: string;
  readonly value: string;
  readonly text: string;
  readonly box: DOMRect;
}

const shown = signal<Shown | null>(null);
const DELAY_MS = 160;

export interface HintAttributes {
  "data-hint"?: string;
  "data-hint-title"?: string;
  "data-hint-value"?: string;
}

export function hint(title: string, text: string, value?: string): HintAttributes {
  return { "data-hint": text, "data-hint-title": title, ...(value === undefined ? {} : { "data-hint-value": value }) };
}

export function HintLayer() {
  useLayoutEffect(listen, []);
  const box = useRef<HTMLDivElement>(null);
  const now = shown.value;
  useLayoutEffect(() => {
    if (now && box.current) place(box.current, now.box);
  }, [now]);
  if (!now) return null;
  return (
    <div class="hint floats tip" role="tooltip" ref={box}>
      {now.title && <div class="strong">{visible(now.title)}</div>}
      {now.value && <div class="hint-value">{visible(now.value)}</div>}
      {now.text && <div class="muted">{visible(now.text)}</div>}
    </div>
  );
}

function listen(): () => void {
  let timer = 0;
  const hide = () => {
    window.clearTimeout(timer);
    shown.value = null;
  };
  // One that is about to be shown finds its place then; one that is shown would stay behind.
  const scrolled = () => {
    shown.value = null;
  };
  const over = (event: Event) => {
    const target = (event.target as Element | null)?.closest?.("[data-hint], [data-hint-value]");
    window.clearTimeout(timer);
    if (!(target instanceof HTMLElement || target instanceof SVGElement)) {
      shown.value = null;
      return;
    }
    timer = window.setTimeout(() => show(target), event.type === "focusin" ? 0 : DELAY_MS);
  };
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Escape") hide();
  };
  const focused = (event: Event) => {
    // A click moves the focus; an explanation that pops up then would be in the way.
    if ((event.target as Element).matches?.(":focus-visible")) over(event);
  };
  document.addEventListener("mouseover", over);
  document.addEventListener("focusin", focused);
  document.addEventListener("mousedown", hide);
  document.addEventListener("keydown", keys);
  document.addEventListener("input", hide); // it would lie on what the typing changes
  document.addEventListener("scroll", scrolled, true);
  return () => {
    hide();
    document.removeEventListener("mouseover", over);
    document.removeEventListener("focusin", focused);
    document.removeEventListener("mousedown", hide);
    document.removeEventListener("keydown", keys);
    document.removeEventListener("input", hide);
    document.removeEventListener("scroll", scrolled, true);
  };
}

function show(target: HTMLElement | SVGElement): void {
  if (!target.isConnected) return;
  const { hint: text = "", hintTitle: title = "", hintValue: value = "" } = target.dataset;
  shown.value = { title, value, text, box: target.getBoundingClientRect() };
}

/** Below the element if there is room, else above; inside the window in any case. */
function place(box: HTMLElement, around: DOMRect): void {
  const [width, height] = [box.offsetWidth, box.offsetHeight];
  const left = Math.max(8, Math.min(around.left, window.innerWidth - width - 8));
  const below = around.bottom + 6;
  const top = below + height < window.innerHeight - 8 ? below : Math.max(8, around.top - height - 6);
  box.style.left = `${left}px`;
  box.style.top = `${top}px`;
}
