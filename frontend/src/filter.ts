/**
 * The filter box of a table: words that a row must contain, and conditions on columns.
 *
 *     conv backward            both words, in any text column
 *     -copy                    not that word
 *     "batch norm"             a word with a space
 *     self > 5   where=device  conditions; a column may be named by the start of its head or name
 *     type != copy  name ~ Conv
 */
import type { Cell, Field } from "./api";
import { type ColumnValues, unitsOf } from "./format";

export type Operator = ">" | "<" | ">=" | "<=" | "=" | "!=" | "~";

export type Term =
  | { readonly kind: "text"; readonly text: string; readonly not: boolean }
  | { readonly kind: "condition"; readonly column: string; readonly operator: Operator; readonly value: string };

const CONDITION = /([\p{L}_][\p{L}\p{N}_.]*)\s*(>=|<=|!=|=|>|<|~)\s*(?:"([^"]*)"|(\S+))/uy;
const TEXT = /(-?)(?:"([^"]*)"?|(\S+))/uy;

export function parseFilter(text: string): Term[] {
  const terms: Term[] = [];
  let at = 0;
  while (at < text.length) {
    if (/\s/.test(text[at] as string)) {
      at += 1;
      continue;
    }
    const condition = match(CONDITION, text, at);
    if (condition) {
      const [whole, column, operator, quoted, bare] = condition;
      terms.push({
        kind: "condition",
        column: column as string,
        operator: operator as Operator,
        value: quoted ?? bare ?? "",
      });
      at += whole.length;
      continue;
    }
    const word = match(TEXT, text, at) as RegExpExecArray;
    const value = word[2] ?? word[3] ?? "";
    if (value) terms.push({ kind: "text", text: value.toLowerCase(), not: word[1] === "-" });
    at += word[0].length;
  }
  return terms;
}

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

export type Filter =
  | { readonly ok: true; readonly keeps: (row: number) => boolean }
  | { readonly ok: false; readonly error: string };

/** A filter over the columns of a table, or why the text is not a valid filter. */
export function compileFilter(text: string, fields: readonly Field[], columns: ColumnValues): Filter {
  const tests: ((row: number) => boolean)[] = [];
  for (const term of parseFilter(text)) {
    if (term.kind === "text") {
      tests.push(textTest(term.text, term.not, fields, columns));
      continue;
    }
    const field = findColumn(term.column, fields);
    if (typeof field === "string") return { ok: false, error: field };
    const values = columns[field.name] ?? [];
    // A name says its unit; by its head a column is meant as it is shown.
    const size = field.name === term.column.toLowerCase() ? 1 : (unitsOf(fields, columns).get(field.name)?.size ?? 1);
    const test = conditionTest(term.operator, term.value, field, values, size);
    if (typeof test === "string") return { ok: false, error: test };
    tests.push(test);
  }
  return { ok: true, keeps: (row) => tests.every((test) => test(row)) };
}

function textTest(text: string, not: boolean, fields: readonly Field[], columns: ColumnValues) {
  const searched = fields.filter((field) => field.kind === "str").map((field) => columns[field.name] ?? []);
  return (row: number) =>
    not !==
    searched.some((values) =>
      String(values[row] ?? "")
        .toLowerCase()
        .includes(text),
    );
}

/** The head of a column as a condition names it: `total_self`. */
export function headOf(field: Field): string {
  return field.label.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, "_");
}

function findColumn(name: string, fields: readonly Field[]): Field | string {
  const wanted = name.toLowerCase();
  const names = (field: Field) => [field.name.toLowerCase(), headOf(field)];
  const exact = fields.find((field) => names(field).includes(wanted));
  const found = exact ?? fields.find((field) => names(field).some((each) => each.startsWith(wanted)));
  return found ?? `there is no column “${name}”; columns: ${fields.map(headOf).join(", ")}`;
}

function conditionTest(
  operator: Operator,
  value: string,
  field: Field,
  values: readonly Cell[],
  size: number,
): ((row: number) => boolean) | string {
  if (field.kind === "float" || field.kind === "int") {
    const limit = Number(value.replaceAll(",", "")) * size;
    const isNumber = Number.isFinite(limit) && operator !== "~";
    if (!isNumber) return `${headOf(field)} needs a number: “${value}” is not one`;
    return (row) => {
      const cell = values[row];
      return typeof cell === "number" && holds(cell - limit, operator);
    };
  }
  const text = value.toLowerCase();
  const shown = (row: number) => textOf(values[row]).toLowerCase();
  if (operator === "~" || operator === "=")
    return (row) => (operator === "~" ? shown(row).includes(text) : shown(row) === text);
  if (operator === "!=") return (row) => shown(row) !== text;
  return `${headOf(field)} holds text: use =, != or ~`;
}

function textOf(cell: Cell | undefined): string {
  if (typeof cell === "boolean") return cell ? "yes" : "no";
  if (Array.isArray(cell)) return cell.join("x");
  return cell === null || cell === undefined ? "" : String(cell);
}

function holds(difference: number, operator: Operator): boolean {
  switch (operator) {
    case ">":
      return difference > 0;
    case "<":
      return difference < 0;
    case ">=":
      return difference >= 0;
    case "<=":
      return difference <= 0;
    case "!=":
      return difference !== 0;
    default:
      return difference === 0;
  }
}
