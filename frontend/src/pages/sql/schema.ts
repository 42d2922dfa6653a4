/** What a query may name: the server's tables, columns and functions, and which of them fit what is being written. */

export interface SqlColumn {
  readonly name: string;
  readonly type: string;
  readonly unit: string;
  readonly doc: string;
}

export interface SqlTable {
  readonly name: string;
  /** The tool whose table it is; null for a view of the profile. */
  readonly tool: string | null;
  readonly doc: string;
  readonly columns: readonly SqlColumn[];
}

export interface SqlFunction {
  readonly call: string;
  readonly doc: string;
  readonly is_table: boolean;
}

export interface Schema {
  readonly tables: readonly SqlTable[];
  readonly functions: readonly SqlFunction[];
  readonly limits: { readonly seconds: number; readonly rows: number; readonly memory_bytes: number };
}

/** Something that can stand where the cursor is. */
export interface Suggestion {
  readonly text: string;
  readonly kind: "table" | "column" | "function" | "keyword";
  readonly doc: string;
}

const KEYWORDS =
  "SELECT FROM WHERE GROUP BY ORDER LIMIT HAVING JOIN USING ON AS WITH DISTINCT COUNT SUM AVG MEDIAN MIN MAX " +
  "DESC ASC AND OR NOT NULL LIKE BETWEEN CASE WHEN THEN ELSE END OVER PARTITION QUALIFY PIVOT DESCRIBE";

const MOST = 8;

/** The word that ends at the cursor, and where it starts. */
export function wordAt(text: string, cursor: number): { readonly word: string; readonly from: number } {
  const word = /[A-Za-z_][\w]*$/.exec(text.slice(0, cursor))?.[0] ?? "";
  return { word, from: cursor - word.length };
}

/** What may be meant by a word: columns of the tables that the query names come first. */
export function suggest(schema: Schema, text: string, cursor: number): readonly Suggestion[] {
  const { word } = wordAt(text, cursor);
  if (word.length < 2) return [];
  const start = word.toLowerCase();
  const named = new Set((text.toLowerCase().match(/[a-z_]\w*/g) ?? []) as readonly string[]);
  const found = new Map<string, Suggestion>();
  const isTable = /\b(?:from|join)\s+$/i.test(text.slice(0, cursor - word.length));
  for (const each of isTable ? tables(schema) : candidates(schema, named))
    if (each.text.toLowerCase().startsWith(start) && each.text.toLowerCase() !== start && !found.has(each.text))
      found.set(each.text, each);
  return [...found.values()].slice(0, MOST);
}

/** After FROM and JOIN. */
function* tables(schema: Schema): Generator<Suggestion> {
  for (const table of schema.tables) yield { text: table.name, kind: "table", doc: table.doc };
  for (const { call, doc, is_table } of schema.functions) if (is_table) yield calling(call, doc);
}

function calling(call: string, doc: string): Suggestion {
  return { text: `${call.slice(0, call.indexOf("("))}(`, kind: "function", doc };
}

function* candidates(schema: Schema, named: ReadonlySet<string>): Generator<Suggestion> {
  const own = schema.tables.filter((table) => named.has(table.name));
  for (const table of own.length ? own : schema.tables.slice(0, 3))
    for (const { name, unit, doc } of table.columns)
      yield { text: name, kind: "column", doc: unit ? `${doc} (${unit})` : doc };
  for (const table of schema.tables) yield { text: table.name, kind: "table", doc: table.doc };
  for (const { call, doc } of schema.functions) yield calling(call, doc);
  for (const text of KEYWORDS.split(" ")) yield { text, kind: "keyword", doc: "" };
}

/** The text with a suggestion in place of the word at the cursor, and where the cursor is then. */
export function complete(text: string, cursor: number, chosen: Suggestion): { text: string; cursor: number } {
  const { from } = wordAt(text, cursor);
  const before = text.slice(0, from) + chosen.text;
  return { text: before + text.slice(cursor), cursor: before.length };
}
