/** A selected event in a sentence. */
import { duration } from "./ticks";
import type { EventDetails, EventLinks } from "./wire";

/** What a look at an event asks for: how long, in which layer, at which line, and what it waited for. */
export function saidOf({ spot, self_ps, inside, layer, place }: EventDetails, links: EventLinks | null): string {
  const culprit = links?.work?.culprit;
  const line = culprit?.file ? `${culprit.file}:${culprit.line}` : place;
  const where = [culprit?.layer ?? layer, line].filter(Boolean).map((each) => `\`${each}\``);
  const own = inside && self_ps !== null ? ` (${duration(self_ps)} of its own)` : "";
  const before = links?.work?.waited_for;
  const waited = before ? `; waited for \`${before.name.slice(0, MOST_OF_NAME)}\` before it` : "";
  return `${duration(spot.duration_ps)}${own}${where.length ? ` in ${where.join(", ")}` : ""}${waited}`;
}

const MOST_OF_NAME = 60;
