/** What is nearest to an empty window: read off the loads that the overview shows. */
import type { Model } from "./model";
import { overviewGroups } from "./paint";
import type { Piece } from "./tiles";
import { clamp } from "./viewport";

export interface Near {
  /** The end of the last activity before the window, and the start of the first one after it, ps; null without one. */
  readonly before: number | null;
  readonly after: number | null;
}

/** Null where something ran in the window, where nothing ran at all, and while that is not known. */
export function nearestActivity(model: Model, begin: number, end: number): Near | null {
  const all = clamp({ begin: model.whole.begin, end: model.whole.end }, model.whole);
  const pieces = overviewGroups(model.tracks.groups).flatMap((group) => model.tiles.peek(group.id, all, model.width));
  return nearestOf(pieces, begin, end);
}

export function nearestOf(pieces: readonly Piece[], begin: number, end: number): Near | null {
  let before: number | null = null;
  let after: number | null = null;
  for (const { tile } of pieces)
    for (let cell = 0; cell < (tile.load?.length ?? 0); cell += 1) {
      if (!(tile.load as Float32Array)[cell]) continue;
      const from = tile.begin + cell * tile.cell;
      const to = from + tile.cell;
      if (from < end && to > begin) return null;
      if (to <= begin) before = Math.max(before ?? to, to);
      else after = Math.min(after ?? from, from);
    }
  return before === null && after === null ? null : { before, after };
}
