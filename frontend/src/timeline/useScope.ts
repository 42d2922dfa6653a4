/** Asks the server about what the workbench is about, a moment after that changed last. */
import { useEffect, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../api";
import type { Model } from "./model";
import { duration } from "./ticks";
import type { Scope } from "./wire";

const REST_MS = 220;

export type Asked<T> =
  | { readonly state: "loading"; readonly last: T | null }
  | { readonly state: "failed"; readonly error: ApiError }
  | { readonly state: "ready"; readonly data: T };

/** The answer to a question about the model's scope; `more` is what else the question depends on. */
export function useScope<T>(
  model: Model,
  ask: (scope: Scope, abort: AbortSignal) => Promise<T>,
  more: readonly unknown[] = [],
): Asked<T> {
  const [asked, setAsked] = useState<Asked<T>>({ state: "loading", last: null });
  const { span, region, sought, choices } = model;
  useEffect(() => {
    const abort = new AbortController();
    setAsked((now) => ({ state: "loading", last: now.state === "ready" ? now.data : null }));
    const timer = window.setTimeout(() => {
      ask(model.scope(), abort.signal).then(
        (data) => !abort.signal.aborted && setAsked({ state: "ready", data }),
        (error: unknown) => !abort.signal.aborted && setAsked({ state: "failed", error: asApiError(error) }),
      );
    }, REST_MS);
    return () => {
      window.clearTimeout(timer);
      abort.abort();
    };
  }, [model, region.value ?? span.value, sought.value, choices.value.hidden, ...more]);
  return asked;
}

export function dataOf<T>(asked: Asked<T>): T | null {
  return asked.state === "ready" ? asked.data : asked.state === "loading" ? asked.last : null;
}

/** What the workbench is about, in words. */
export function scopeText(model: Model): string {
  const region = model.region.value;
  const { begin, end } = region ?? model.span.value;
  const found = model.sought.value?.text;
  const place = region ? "the selection" : "the window";
  return `${found ? `Matches of “${found.slice(0, 40)}” in` : "In"} ${place} of ${duration(end - begin)}`;
}
