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

/** The start or end of a slice that is nearest to a time, within a reach on both sides; null if there is none. */
export function nearestEdge(lane: LaneSlices, time: number, reach: number): number | null {
  const place = (time - lane.begin) / lane.unit;
  let best: number | null = null;
  let distance = reach / lane.unit;
  for (let at = firstEndingAfter(lane, place - distance - 1); at < lane.start.length; at += 1) {
    if ((lane.start[at] as number) > place + distance) break;
    for (const edge of [lane.start[at] as number, lane.end[at] as number])
      if (Math.abs(edge - place) <= distance) {
        distance = Math.abs(edge - place);
        best = lane.begin + edge * lane.unit;
      }
  }
  return best;
}
