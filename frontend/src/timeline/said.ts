/** A selected event in a sentence. */
import { shortPath } from "../names";
import { brief } from "./names";
import { duration } from "./ticks";
import type { EventDetails, EventLinks, Spot } from "./wire";

/** What a look at an event asks for: what it is, how long, in which layer, at which line, and what it waited for. */
export function saidOf({ spot, self_ps, inside, layer, place }: EventDetails, links: EventLinks | null): string {
  const culprit = links?.work?.culprit;
  const line = culprit?.file ? `${culprit.file}:${culprit.line}` : place;
  const where = [culprit?.layer ?? layer, line && shortPath(line)].filter(Boolean).map((each) => `\`${each}\``);
  const own = inside && self_ps !== null ? ` (${duration(self_ps)} of its own)` : "";
  const before = links?.work?.waited_for;
  const waited = before ? `; waited for \`${nameOf(before)}\` before it` : "";
  const op = links?.work ? links.op : null;
  const name = op && op !== spot.name ? `\`${op}\`, kernel \`${nameOf(spot)}\`,` : `\`${nameOf(spot)}\``;
  return `${name} ${duration(spot.duration_ps)}${own}${where.length ? ` in ${where.join(", ")}` : ""}${waited}`;
}

/** An event's name as people read it. */
export function nameOf({ name, kind }: Spot): string {
  const short = kind === "kernel" ? brief(name) : kind === "python_call" ? shortPath(name) : name;
  return short.length > MOST_OF_NAME ? `${short.slice(0, MOST_OF_NAME)}…` : short || "(no name)";
}

const MOST_OF_NAME = 60;
