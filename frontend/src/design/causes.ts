/** The causes of the account of a step, in the hues of the categories that they are about; waits are lighter. */
import type { Part } from "../charts/steps";
import type { BarPart } from "../pages/shared/Bars";
import { termText } from "../terms";
import { CATEGORY_COLOUR, CAUSE_COLOUR, mix, seenOn } from "./colours";

const WAIT = 0.5;

/** The same hue on both grounds, so that a cause is known again; a wait is lighter than work. */
export function colourOfCause(cause: string, surface: string): string {
  const { colour, isWait } = CAUSE_COLOUR[cause] ?? { colour: CATEGORY_COLOUR.other, isWait: false };
  return seenOn(isWait ? mix(colour, "#ffffff", WAIT) : colour, surface);
}

/** One part per cause, in the order in which steps are stacked. */
export function causeParts(surface: string): Part[] {
  return Object.keys(CAUSE_COLOUR).map((cause) => ({
    key: cause,
    label: termText(cause),
    colour: colourOfCause(cause, surface),
  }));
}

/** The time of each cause in a row, by name. */
export function partsOfRow(row: Readonly<Record<string, unknown>>): Record<string, number> {
  const parts: Record<string, number> = {};
  for (const cause of Object.keys(CAUSE_COLOUR)) {
    const value = row[`${cause}_ms`];
    if (typeof value === "number") parts[cause] = value;
  }
  return parts;
}

/** One part per cause, in the order of the rows that explain them. */
export function partsOfCauses(
  rows: readonly { readonly cause: string; readonly meaning: string }[],
  surface: string,
): BarPart[] {
  const parts = rows.map((row) => ({
    key: row.cause,
    label: termText(row.cause),
    colour: colourOfCause(row.cause, surface),
    doc: row.meaning,
  }));
  return parts.filter((part, index) => parts.findIndex((other) => other.key === part.key) === index);
}
