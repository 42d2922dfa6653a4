/** Finding slices in a row. */
import type { LaneSlices } from "./wire";

/** The first slice that ends after a place (in units); slices of a row do not overlap. */
export function firstEndingAfter(lane: LaneSlices, place: number): number {
  let low = 0;
  let high = lane.end.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((lane.end[middle] as number) <= place) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The slice at a time, or the nearest one within a reach on both sides, which lets thin ones be hit; -1 if there is
 * none.
 */
export function sliceAt(lane: LaneSlices, time: number, reach: number): number {
  const place = (time - lane.begin) / lane.unit;
  const far = reach / lane.unit;
  let best = -1;
  let distance = far;
  for (let at = Math.max(0, firstEndingAfter(lane, place - far) - 1); at < lane.start.length; at += 1) {
    const start = lane.start[at] as number;
    const end = lane.end[at] as number;
    if (start > place + far) break;
    if (start <= place && place < end) return at;
    const away = place < start ? start - place : place - end;
    if (away <= distance) {
      distance = away;
      best = at;
    }
  }
  return best;
}
