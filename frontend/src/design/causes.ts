/** The causes of the account of a step, in the hues of the categories that they are about; waits are lighter. */
import type { BarPart } from "../pages/shared/Bars";
import { termText } from "../terms";
import { CATEGORY_COLOUR, mix } from "./colours";

const WAIT = 0.5;

/** One part per cause, in the order of the rows that explain them. */
export function partsOfCauses(
  rows: readonly { readonly cause: string; readonly meaning: string }[],
  surface: string,
): BarPart[] {
  const c = CATEGORY_COLOUR;
  const wait = (colour: string) => mix(colour, surface, WAIT);
  const colours: Readonly<Record<string, string>> = {
    input: c.input,
    python: c.other,
    host_compute: c.host_compute,
    launch: c.kernel_launch,
    device_compute: c.device_compute,
    device_gap: wait(c.device_compute),
    copy: c.device_to_device,
    communication: c.device_collectives,
    compile: c.compilation,
    sync: c.output,
    checkpoint: wait(c.output),
    unknown: wait(c.other),
  };
  const parts = rows.map((row) => ({
    key: row.cause,
    label: termText(row.cause),
    colour: colours[row.cause] ?? c.other,
    doc: row.meaning,
  }));
  return parts.filter((part, index) => parts.findIndex((other) => other.key === part.key) === index);
}
