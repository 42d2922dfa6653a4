/** The sections of a report by their ids.  An id or a column that no tool declares does not pass the compiler. */
import type { Kind, Reports, Role } from "./generated/reports";

export type Cell = string | number | boolean | null | readonly number[];

export interface Field {
  readonly name: string;
  /** Its heading. */
  readonly label: string;
  readonly unit: string;
  readonly doc: string;
  readonly kind: Kind;
  /** What it is to a reader; nothing in the page goes by the name of a field. */
  readonly role: Role;
}

/** Values by the names of their fields. */
export type Values = Readonly<Record<string, Cell>>;

export interface Figures<V = Values> {
  readonly kind: "figures";
  readonly id: string;
  readonly title: string;
  readonly fields: readonly Field[];
  readonly values: V;
}

export interface TableSection<V = Values> {
  readonly kind: "table";
  readonly id: string;
  readonly title: string;
  readonly fields: readonly Field[];
  /** The columns to show first, if not all of them. */
  readonly usual?: readonly string[] | null;
  readonly columns?: { readonly [N in keyof V]: readonly V[N][] } | null;
  /** Where the rows are if they are too many to come along: an Arrow stream, relative to the tool's address. */
  readonly arrow?: string | null;
  readonly row_count: number;
  /** Under which key the report's JSON has the rows. */
  readonly key?: string | null;
  readonly empty?: string;
}

export interface Prose {
  readonly kind: "prose";
  readonly id: string;
  readonly title: string;
  readonly lines: readonly string[];
}

export type Section = Figures | TableSection | Prose;

export interface Report {
  readonly tool: string;
  readonly hosts: readonly string[];
  readonly partial: boolean;
  readonly warnings: readonly string[];
  /** What it found, in sentences, where it says so. */
  readonly findings?: readonly string[];
}

export type ToolName = keyof Reports;

/** The sections of a tool's report. */
export type Sections<T extends ToolName = ToolName> = readonly Section[] & { readonly of?: T };

type IdsOf<T extends ToolName, K extends Section["kind"]> = {
  [I in keyof Reports[T]]: Reports[T][I] extends { kind: K } ? I : never;
}[keyof Reports[T]] &
  string;

export type TableId<T extends ToolName> = IdsOf<T, "table">;
export type FiguresId<T extends ToolName> = IdsOf<T, "figures">;

type FieldsOf<T extends ToolName, I extends keyof Reports[T]> = Reports[T][I] extends { fields: infer F } ? F : never;

/** A row of a table, or the values of figures. */
export type RowOf<T extends ToolName, I extends TableId<T> | FiguresId<T>> = Readonly<FieldsOf<T, I>>;

/** The report of a tool: the rows of its tables by their ids, and what else of it a page draws from. */
export type ReportOf<T extends ToolName, More = unknown> = Report &
  More & { readonly [I in TableId<T>]?: readonly RowOf<T, I>[] };

export type TableOf<T extends ToolName, I extends TableId<T>> = TableSection<RowOf<T, I>>;
export type FiguresOf<T extends ToolName, I extends FiguresId<T>> = Figures<RowOf<T, I>>;

/** A table of a report. */
export function tableOf<T extends ToolName, I extends TableId<T>>(sections: Sections<T>, id: I): TableOf<T, I> {
  return found(sections, id, "table") as TableSection as TableOf<T, I>;
}

/** Figures of a report. */
export function figuresOf<T extends ToolName, I extends FiguresId<T>>(sections: Sections<T>, id: I): FiguresOf<T, I> {
  return found(sections, id, "figures") as Figures as FiguresOf<T, I>;
}

function found(sections: readonly Section[], id: string, kind: Section["kind"]): Section {
  const section = sections.find((each) => each.id === id && each.kind === kind);
  if (!section) throw new Error(`the report has no ${kind} “${id}”`);
  return section;
}

/** A column of a table, or a figure. */
export function fieldOf<V>(section: TableSection<V> | Figures<V>, name: keyof V & string): Field {
  const field = section.fields.find((each) => each.name === name);
  if (!field) throw new Error(`“${section.title}” has no “${name}”`);
  return field;
}

/** What a column or a figure means. */
export function docOf<V>(section: TableSection<V> | Figures<V>, name: keyof V & string): string {
  return fieldOf(section, name).doc;
}
