/** Links from a number to its source in the timeline. */
import { linkTo } from "./router";

/** The timeline with a search for all events of a name, at the first one. */
export function findInTimeline(name: string, host: string | null = null): string {
  return linkTo("timeline", { find: name, ...(host ? { host } : {}) });
}

/** The timeline zoomed to an interval, in milliseconds from the start of the host's session. */
export function intervalInTimeline(begin_ms: number, end_ms: number, host: string | null = null): string {
  return linkTo("timeline", { begin: String(begin_ms), end: String(end_ms), ...(host ? { host } : {}) });
}
