/** Instructions of XLA programs as ranked bars, and the sentence above them. */
import { CATEGORY_COLOUR, categoryOfOp } from "../../design/colours";
import { findInTimeline } from "../../links";
import type { RankedRow } from "../shared/Bars";

const MOST_BARS = 12;

/** What takes device time, the most first. */
export interface Work {
  readonly key: string;
  readonly name: string;
  readonly type: string;
  readonly self_us: number;
  readonly percent: number | null;
  readonly isFound: boolean;
}

export function longestOf(work: readonly Work[]): readonly Work[] {
  return [...work].sort((one, other) => other.self_us - one.self_us).slice(0, MOST_BARS);
}

export function barsOf(work: readonly Work[]): RankedRow[] {
  return work.map((each) => ({
    key: each.key,
    label: each.name,
    ms: each.self_us / 1e3,
    percent: each.percent,
    colour: CATEGORY_COLOUR[categoryOfOp(each.type, each.name, "device")],
    href: each.isFound ? findInTimeline(each.name) : null,
  }));
}

/** The title of the figures on that. */
export const OF_MATCHES = "How device work is matched to instructions";
