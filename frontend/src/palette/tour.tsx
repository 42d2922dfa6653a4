/** Three short notes on the very first visit: what the page says, where to look next, how to get about. */
import { signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { route } from "../router";
import { isReady, sessionError, startError } from "../session";
import { remember, remembered } from "../storage";

const STEPS = [
  {
    at: ".verdict",
    title: "The answer comes first",
    text: "How long a step takes, what it waits for, and below it what to change first with the step time to expect.",
  },
  {
    at: ".rail ul",
    title: "Questions, not tools",
    text: "Each page answers one: is input late, what computes, what waits, which rank is late.",
  },
  {
    at: ".palette-button",
    title: "Everything by name",
    text: "Ctrl-K finds pages, sessions, ops, kernels and lines. The address holds all that you see: share it.",
  },
] as const;

/** The step that is shown; null if none. */
const step = signal<number | null>(null);

export function startTour(): void {
  step.value = 0;
}

function end(): void {
  step.value = null;
  remember("tour", true);
}

function next(at: number): void {
  if (at === STEPS.length - 1) end();
  else step.value = at + 1;
}

export function Tour() {
  const isFirstVisit = isReady.value && route.value.tool === "overview" && remembered("tour") !== true;
  useLayoutEffect(() => {
    if (isFirstVisit && step.peek() === null) startTour();
  }, [isFirstVisit]);
  const at = step.value;
  useLayoutEffect(() => {
    const target = at === null ? null : document.querySelector(STEPS[at]?.at ?? "");
    target?.classList.add("tour-target");
    return () => target?.classList.remove("tour-target");
  }, [at]);
  const shown = at === null ? undefined : STEPS[at];
  const isElsewhere = at === 0 && route.value.tool !== "overview";
  if (at === null || !shown || isElsewhere || !isReady.value || sessionError.value || startError.value) return null;
  const isLast = at === STEPS.length - 1;
  return (
    <aside class="tour" aria-label="Tour">
      <p class="eyebrow minor strong">{`${at + 1} of ${STEPS.length}`}</p>
      <h2>{shown.title}</h2>
      <p>{shown.text}</p>
      <footer class="dialog-foot flex gap-m">
        {!isLast && (
          <button type="button" class="button quiet" onClick={end}>
            Skip
          </button>
        )}
        <button type="button" class="button accent" onClick={() => next(at)}>
          {isLast ? "Done" : "Next"}
        </button>
      </footer>
    </aside>
  );
}
