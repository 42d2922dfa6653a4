/** How wide the columns are, in pixels: as wide as what they hold, long texts sharing what is left. */
import type { Cell, Field } from "../api";
import { unitLabel } from "../format";
import type { Measure } from "./measure";
import type { TableData } from "./model";

const SAMPLE = 300;
/** Of the most signs: a text with fewer is not the widest, and measuring is slow. */
const LONG = 0.6;
/** Of names that are cut anyway, only the longest. */
const MEASURED = 12;
export const PADDING = 21;
/** Behind the name of a column: an arrow where the table is sorted by it. */
const SORT_MARK = 9;
/** A text that is a hair wider than it was measured would be cut; a number would not. */
const SPARE = 3;
const SHORT_TEXT = 30;
/** Of the names that rows are found by. */
const NAME_TEXT = 40;
/** No text gets less, in pixels. */
const SHORTEST = 84;
/** Both where a table would else lose the numbers that it is read for. */
const TIGHT_TEXT = 14;
const TIGHT_NAME = 20;

export interface Wish {
  /** What the column needs in any case, where there is little room. */
  readonly tight: number;
  /** What lets texts be told apart. */
  readonly least: number;
  /** What would show all of it. */
  readonly most: number;
}

/** What each column would like. */
export function wishes(
  data: TableData,
  fields: readonly Field[],
  formats: readonly ((value: Cell) => string)[],
  measure: Measure,
  labels: Readonly<Record<string, string>> = {},
): Wish[] {
  const usual = measure("n");
  return fields.map((field, index) => {
    const unit = unitLabel(field.unit);
    const head = measure(labels[field.name] ?? field.label, true) + (unit ? measure(` ${unit}`) : 0) + SORT_MARK;
    const body = widest(data, field, formats[index] as (value: Cell) => string, measure);
    const all = Math.ceil(Math.max(head, body) + PADDING);
    if (field.kind !== "str") return { tight: all, least: all, most: all };
    const isName = index === 0 || field.role === "name";
    const upTo = (signs: number) => Math.ceil(Math.max(head, Math.min(body, usual * signs)) + PADDING + SPARE);
    return {
      tight: upTo(isName ? TIGHT_NAME : TIGHT_TEXT),
      least: upTo(isName ? NAME_TEXT : SHORT_TEXT),
      most: all + SPARE,
    };
  });
}

/**
 * How many columns, from the first on, there is room for; a few in any case.
 *
 * Texts give way until MANY columns fit: the number by which a table is sorted says more than the middle of a name.
 */
export function fittingIn(list: readonly Wish[], available: number): number {
  const roomy = upTo(available, list, "least");
  return roomy >= MANY
    ? roomy
    : Math.max(roomy, Math.min(MANY, upTo(available, list, "tight")), Math.min(FEW, list.length));
}

const MANY = 8;
const FEW = 3;

function upTo(available: number, list: readonly Wish[], need: "least" | "tight"): number {
  let left = available;
  const over = list.findIndex((wish) => {
    left -= wish[need];
    return left < 0;
  });
  return over < 0 ? list.length : over;
}

/** Widths that fill what is available; columns of text give way to one another, never to numbers. */
export function share(list: readonly Wish[], available: number): number[] {
  const isTight = list.reduce((sum, wish) => sum + wish.least, 0) > available;
  const [from, to] = isTight ? (["tight", "least"] as const) : (["least", "most"] as const);
  const widths = list.map((wish) => wish[from]);
  let left = available - widths.reduce((sum, width) => sum + width, 0);
  const wanting = list.map((wish) => wish[to] - wish[from]);
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
  if (left < 0) shorten(widths, list, -left);
  return widths;
}

/** What is too wide even so is taken from the texts: a table that has to be moved sideways hides its numbers. */
function shorten(widths: number[], list: readonly Wish[], over: number): void {
  const spare = list.map((wish, index) =>
    wish.most > wish.tight ? Math.max(0, (widths[index] as number) - SHORTEST) : 0,
  );
  const all = spare.reduce((sum, each) => sum + each, 0);
  const part = all > 0 ? Math.min(1, over / all) : 0;
  spare.forEach((each, index) => {
    widths[index] = (widths[index] as number) - Math.ceil(each * part);
  });
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

function widest(data: TableData, field: Field, format: (value: Cell) => string, measure: Measure): number {
  const values = data.columns[field.name] ?? [];
  const stride = Math.max(1, Math.floor(data.rowCount / SAMPLE));
  const texts = new Set<string>();
  for (let row = 0; row < data.rowCount; row += stride) texts.add(format(values[row] ?? null));
  let longest = 0;
  for (const text of texts) longest = Math.max(longest, text.length);
  const long = [...texts].filter((text) => text.length >= LONG * longest);
  const some = longest > NAME_TEXT ? long.sort((a, b) => b.length - a.length).slice(0, MEASURED) : long;
  return some.reduce((most, text) => Math.max(most, measure(text)), 0);
}

/** How many signs of a text fit into so many pixels; all of them, or a few less for the dots. */
export function roomFor(text: string, available: number, measure: Measure): number {
  const needed = measure(text);
  return needed <= available ? text.length : Math.max(0, Math.floor((text.length * available) / needed) - 2);
}
