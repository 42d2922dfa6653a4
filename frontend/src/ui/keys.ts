/** The keys of the page.  Whoever mounts adds its keys; the help lists what is there. */
import { signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";

export interface Binding {
  /** `t`, `?`, `g s` for one key after the other, `Ctrl+k` for Control or Command together with one. */
  readonly keys: string;
  readonly does: string;
  readonly group: string;
  readonly run: () => void;
}

export const bindings = signal<readonly Binding[]>([]);

/** In a layout effect: what is on the screen answers to its keys at once, and what has left it no longer does. */
export function useKeys(list: readonly Binding[], when: readonly unknown[]): void {
  useLayoutEffect(() => {
    bindings.value = [...bindings.value, ...list];
    return () => {
      bindings.value = bindings.value.filter((binding) => !list.includes(binding));
    };
  }, when);
}

const SEQUENCE_MS = 1200;

export function listenToKeys(): () => void {
  let prefix = "";
  let timer = 0;
  const forget = () => {
    prefix = "";
  };
  const pressed = (event: KeyboardEvent) => {
    const isChord = event.ctrlKey || event.metaKey;
    if (event.defaultPrevented || event.altKey || (!isChord && isTyping(event.target))) return;
    if (document.querySelector("dialog[open]")) return;
    if (isChord) {
      const chord = bindings.value.find((binding) => binding.keys === `Ctrl+${event.key.toLowerCase()}`);
      if (chord) event.preventDefault();
      chord?.run();
      return;
    }
    window.clearTimeout(timer);
    const keys = prefix ? `${prefix} ${event.key}` : event.key;
    forget();
    const found = bindings.value.filter((binding) => binding.keys === keys).at(-1);
    if (found) {
      event.preventDefault();
      found.run();
    } else if (bindings.value.some((binding) => binding.keys.startsWith(`${keys} `))) {
      prefix = keys;
      timer = window.setTimeout(forget, SEQUENCE_MS);
    }
  };
  document.addEventListener("keydown", pressed);
  return () => document.removeEventListener("keydown", pressed);
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}
