/** The causes of the account of a step, in the hues of the categories that they are about; waits are lighter. */
import type { BarPart } from "../pages/shared/Bars";
import { termText } from "../terms";
import { CATEGORY_COLOUR, CAUSE_CATEGORY, mix } from "./colours";

const WAIT = 0.5;

function colourOfCause(cause: string, surface: string): string {
  const { category, isWait } = CAUSE_CATEGORY[cause] ?? { category: "other" as const, isWait: false };
  return isWait ? mix(CATEGORY_COLOUR[category], surface, WAIT) : CATEGORY_COLOUR[category];
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
