/** Links from a number to its source in the timeline. */
import { linkTo, route } from "./router";

/** The timeline with a search for all events of a name, at the longest one. */
export function findInTimeline(name: string, host: string | null = null): string {
  return linkTo("timeline", { find: name, longest: "1", ...(host ? { host } : {}) });
}

/** The timeline zoomed to an interval, in milliseconds from the start of the host's session. */
export function intervalInTimeline(begin_ms: number, end_ms: number, host: string | null = null): string {
  return linkTo("timeline", { begin: String(begin_ms), end: String(end_ms), ...(host ? { host } : {}) });
}

const MARGIN = 0.15;

/** The timeline around an interval, with the interval highlighted, a sentence that says why, and the way back. */
export function evidenceInTimeline(begin_ms: number, end_ms: number, why: string, host: string | null = null): string {
  const around = (end_ms - begin_ms) * MARGIN;
  return linkTo("timeline", {
    begin: String(Math.max(0, begin_ms - around)),
    end: String(end_ms + around),
    evidence: `${begin_ms}_${end_ms}`,
    why,
    from: route.value.tool,
    ...(host ? { host } : {}),
  });
}
