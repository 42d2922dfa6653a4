/** A short word about what just happened. */
import { signal } from "@preact/signals";

const said = signal("");
let timer = 0;

const LEAST_MS = 1800;
const READING_MS = 60;

export function say(text: string): void {
  said.value = text;
  window.clearTimeout(timer);
  timer = window.setTimeout(
    () => {
      said.value = "";
    },
    Math.max(LEAST_MS, READING_MS * text.length),
  );
}

export function Toast() {
  return (
    <div class={`toast ${said.value ? "on" : ""}`} role="status" aria-live="polite">
      {said.value}
    </div>
  );
}
