/** A table as the page holds it: columns of values, and which rows are shown in which order. */
import type { Cell, Field } from "../api";
import { compileFilter } from "../filter";
import type { ColumnValues } from "../format";
import type { Role } from "../generated/reports";

export interface TableData {
  readonly fields: readonly Field[];
  readonly columns: ColumnValues;
  readonly rowCount: number;
}

export interface Sort {
  readonly column: string;
  readonly descending: boolean;
}

export interface View {
  /** Indices of the rows to show, in order. */
  readonly rows: readonly number[];
  readonly error: string | null;
}

/** `name` or `-name` for the largest first, as in the address. */
export function parseSort(text: string | undefined, fields: readonly Field[]): Sort | null {
  if (!text) return null;
  const column = text.replace(/^-/, "");
  return fields.some((field) => field.name === column) ? { column, descending: text.startsWith("-") } : null;
}

export function formatSort(sort: Sort | null): string | null {
  return sort && (sort.descending ? "-" : "") + sort.column;
}

/** What a click on a column's head does: numbers largest first, then smallest; text the other way round; then none. */
export function nextSort(present: Sort | null, field: Field): Sort | null {
  const first = field.kind === "float" || field.kind === "int";
  if (present?.column !== field.name) return { column: field.name, descending: first };
  return present.descending === first ? { column: field.name, descending: !first } : null;
}

export function viewOf(data: TableData, filter: string, sort: Sort | null): View {
  const compiled = compileFilter(filter, data.fields, data.columns);
  const rows: number[] = [];
  for (let row = 0; row < data.rowCount; row++) if (!compiled.ok || compiled.keeps(row)) rows.push(row);
  if (sort) rows.sort(comparison(data.columns[sort.column] ?? [], sort.descending));
  return { rows, error: compiled.ok ? null : compiled.error };
}

/** Unknown values come last in either direction; equal ones keep the order that the report gave them. */
function comparison(values: readonly Cell[], descending: boolean): (a: number, b: number) => number {
  const sign = descending ? -1 : 1;
  return (a, b) => {
    const [x, y] = [values[a] ?? null, values[b] ?? null];
    if (x === null || y === null) return x === y ? a - b : x === null ? 1 : -1;
    return sign * compareCells(x, y) || a - b;
  };
}

const collator = new Intl.Collator("en", { numeric: true });

function compareCells(x: Exclude<Cell, null>, y: Exclude<Cell, null>): number {
  if (typeof x === "number" && typeof y === "number") return x - y;
  if (Array.isArray(x) && Array.isArray(y)) return product(x) - product(y);
  if (typeof x === "boolean" && typeof y === "boolean") return Number(x) - Number(y);
  return collator.compare(String(x), String(y));
}

function product(values: readonly number[]): number {
  return values.reduce((a, b) => a * b, 1);
}

/** Roles of columns that only tell rows apart. */
const APART: readonly Role[] = ["host", "place", "type", "term"];
/** One value in so many rows says nothing of any. */
const MANY_ROWS = 4;

/**
 * The columns to show: those named, in their order; else all.  One that holds nothing, or tells no rows apart, is shown
 * only where the reader asked for it.
 */
export function shownFields(data: TableData, named: string | undefined, isAsked = true): Field[] {
  const isKnown = ({ name, role }: Field) => {
    const values = data.columns[name] ?? [];
    const isAlike = values.length >= MANY_ROWS && role && APART.includes(role) && new Set(values).size === 1;
    return !isAlike && values.some((value) => value !== null);
  };
  const found = named?.split(",").flatMap((name) => data.fields.filter((field) => field.name === name)) ?? [];
  const kept = isAsked ? found : found.filter(isKnown);
  if (kept.length) return kept;
  // What explains a row is said where the reader points at its name.
  const known = data.fields.filter((field) => field.role !== "meaning" && isKnown(field));
  return known.length ? known : [...data.fields];
}

const NAMING: readonly Role[] = ["name", "label"];

/** The column that names a row: the first that the timeline finds, else the first label, else the first text. */
export function nameColumn(fields: readonly Field[]): number {
  const places = [...NAMING.map((role) => fields.findIndex((field) => field.role === role))];
  return places.find((place) => place >= 0) ?? fields.findIndex((field) => field.kind === "str");
}

/** Whether a column says of what a row is, rather than how much. */
const isText = (field: Field) => field.kind === "str" && field.role !== "meaning" && field.role !== "text";

/** How much, best first: what there is one of says what a table is about. */
const AMOUNTS: readonly Role[] = ["duration", "size", "measure"];

/**
 * The columns in the order in which a narrow window needs them: what a row is about, its shape, the amount by which the
 * table is sorted, the change, the first amount, the share; then the others as they were.
 */
export function tellingFirst(fields: readonly Field[], sorted: string | null = null): Field[] {
  const roles = (role: Role) => fields.find((field) => field.role === role);
  const step = roles("step");
  const amount = AMOUNTS.map(roles).find(Boolean);
  const before = fields.slice(0, amount ? fields.indexOf(amount) : fields.length).filter(isText);
  const key =
    before.find((field) => field.role === "name") ??
    before.find((field) => field.role !== "host" && field.role !== "place") ??
    before.at(-1) ??
    roles("name") ??
    roles("label") ??
    fields.find(({ kind }) => kind === "str") ??
    roles("ordinal");
  const first = [
    ...(step ? [step, before.at(-1)] : [key, roles("shape")]),
    fields.find((field) => field.name === sorted),
    roles("change"),
    amount,
    roles("share"),
  ];
  return [...new Set([...first.filter((field) => field !== undefined), ...fields])];
}

/** What is shown, as CSV (RFC 4180): exact values, unknown is empty. */
export function toCsv(data: TableData, rows: readonly number[], fields: readonly Field[]): string {
  return lines(data, rows, fields, ",", csvCell);
}

/** What is shown, for the clipboard: spreadsheets read it as a table. */
export function toTsv(data: TableData, rows: readonly number[], fields: readonly Field[]): string {
  return lines(data, rows, fields, "\t", (text) => text.replace(/[\t\r\n]+/g, " "));
}

function lines(
  data: TableData,
  rows: readonly number[],
  fields: readonly Field[],
  comma: string,
  quote: (text: string) => string,
): string {
  const columns = fields.map((field) => data.columns[field.name] ?? []);
  const head = fields.map((field) => quote(field.name)).join(comma);
  const body = rows.map((row) => columns.map((values) => quote(plainText(values[row] ?? null))).join(comma));
  return [head, ...body, ""].join("\r\n");
}

function plainText(value: Cell): string {
  if (value === null) return "";
  return Array.isArray(value) ? value.join(" ") : String(value);
}

function csvCell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Rows of objects as columns, for parts of a report that no section gives as a table. */
export function fromRows(fields: readonly Field[], rows: readonly Readonly<Record<string, Cell>>[]): TableData {
  const columns: Record<string, Cell[]> = {};
  for (const field of fields) columns[field.name] = rows.map((row) => row[field.name] ?? null);
  return { fields, columns, rowCount: rows.length };
}

/** The rows as objects; whoever asks says what they hold. */
export function toRows<R>({ columns, rowCount, fields }: TableData): R[] {
  const one = (row: number) => Object.fromEntries(fields.map(({ name }) => [name, columns[name]?.[row] ?? null]));
  return Array.from({ length: rowCount }, (_, row) => one(row) as R);
}
