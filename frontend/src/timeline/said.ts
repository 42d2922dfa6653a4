/** A selected event in a sentence. */
import { duration } from "./ticks";
import type { EventDetails, EventLinks } from "./wire";

const MODULE = "nn.Module: ";
const OF_TORCH = /(^|\/)torch\//;

/** What a look at an event asks for: how long, in which layer, at which line, and what it waited for. */
export function saidOf({ spot, self_ps, inside, around }: EventDetails, links: EventLinks | null): string {
  const culprit = links?.work?.culprit;
  const module = around.findLast(({ name }) => name.startsWith(MODULE))?.name.slice(MODULE.length);
  const call = around.map(({ name }) => /^(.+)\((\d+)\): /.exec(name)).findLast((found) => found && isOwn(found[1]));
  const line = culprit?.file ? `${culprit.file}:${culprit.line}` : call && `${call[1]}:${call[2]}`;
  const where = [culprit?.layer ?? module, line].filter(Boolean).map((place) => `\`${place}\``);
  const own = inside && self_ps !== null ? ` (${duration(self_ps)} of its own)` : "";
  const before = links?.work?.waited_for;
  const waited = before ? `; waited for \`${before.name.slice(0, MOST_OF_NAME)}\` before it` : "";
  return `${duration(spot.duration_ps)}${own}${where.length ? ` in ${where.join(", ")}` : ""}${waited}`;
}

const MOST_OF_NAME = 60;
const isOwn = (file = "") => !OF_TORCH.test(file) && !file.includes("site-packages");
