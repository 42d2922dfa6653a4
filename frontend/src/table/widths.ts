/** How wide the columns are, in pixels: as wide as what they hold, long texts sharing what is left. */
import type { Cell, Field } from "../api";
import { fieldLabel, unitLabel } from "../format";
import type { TableData } from "./model";

const SAMPLE = 300;
export const PADDING = 21;
/** Of texts the width is an estimate, of numbers hardly. */
const TEXT_SPARE = 4;
/** Heads are written bolder than what is below. */
const BOLD = 1.04;
const SHORT_TEXT = 30;
/** Of the names that rows are found by. */
const NAME_TEXT = 40;

export interface Wish {
  /** What the column needs in any case. */
  readonly least: number;
  /** What would show all of it. */
  readonly most: number;
}

/** What each column would like, in characters of the given width. */
export function wishes(data: TableData, fields: readonly Field[], formats: readonly ((value: Cell) => string)[], character: number, labels: Readonly<Record<string, string>> = {}): Wish[] {
  return fields.map((field, index) => {
    const unit = unitLabel(field.unit);
    const head = BOLD * characters(`${labels[field.name] ?? fieldLabel(field)} ${unit}`) + 1.5;
    const body = longestText(data, field, formats[index] as (value: Cell) => string);
    const padding = field.kind === "str" ? PADDING + TEXT_SPARE : PADDING;
    const all = Math.ceil(Math.max(head, body) * character + padding);
    if (field.kind !== "str") return { least: all, most: all };
    return { least: Math.ceil(Math.max(head, Math.min(body, /^(name|kernel|op)$/.test(field.name) ? NAME_TEXT : SHORT_TEXT)) * character + padding), most: all };
  });
}

/** Widths that fill what is available; columns of text give way to one another, never to numbers. */
export function share(list: readonly Wish[], available: number): number[] {
  const widths = list.map((wish) => wish.least);
  let left = available - widths.reduce((sum, width) => sum + width, 0);
  const wanting = list.map((wish) => wish.most - wish.least);
  const wanted = wanting.reduce((sum, want) => sum + want, 0);
  if (left > 0 && wanted > 0) {
    const part = Math.min(1, left / wanted);
    wanting.forEach((want, index) => {
      const given = Math.floor(want * part);
      widths[index] = (widths[index] as number) + given;
      left -= given;
    });
  }
  if (left > 0 && widths.length) spread(widths, list, left);
  return widths;
}

/** What nobody needs goes to the columns in proportion, so that numbers do not drift far from their names. */
function spread(widths: number[], list: readonly Wish[], left: number): void {
  const total = widths.reduce((sum, width) => sum + width, 0);
  let given = 0;
  widths.forEach((width, index) => {
    const extra = Math.floor((left * width) / total);
    widths[index] = width + extra;
    given += extra;
  });
  const widest = list.reduce((best, wish, index) => (wish.most > (list[best] as Wish).most ? index : best), 0);
  widths[widest] = (widths[widest] as number) + left - given;
}

function longestText(data: TableData, field: Field, format: (value: Cell) => string): number {
  const values = data.columns[field.name] ?? [];
  const stride = Math.max(1, Math.floor(data.rowCount / SAMPLE));
  let longest = 0;
  for (let row = 0; row < data.rowCount; row += stride) longest = Math.max(longest, characters(format(values[row] ?? null)));
  return longest;
}

/** The length of a text in usual characters: some signs are wide, others narrow. */
export function characters(text: string): number {
  let length = 0;
  for (const sign of text) length += WIDTHS.find(([signs]) => signs.test(sign))?.[1] ?? 1.05;
  return length;
}

const WIDTHS = [
  [/[ijlftr.,:;|!'()[\] ]/, 0.6],
  [/[mwMW@%]/, 1.5],
  [/[A-Z]/, 1.25],
  [/[\d_#<>=+~]/, 1.12],
] as const;

/** How many signs of a text fit where there is room for so many usual characters; all of them, or a few less for the dots. */
export function roomFor(text: string, available: number): number {
  const needed = characters(text);
  return needed <= available ? text.length : Math.max(0, Math.floor((text.length * available) / needed) - 2);
}
