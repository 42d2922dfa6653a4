/**
 * The one table of a tool whose report is wide: the terminal shows its columns in several narrow tables, the page in
 * one, with a choice of columns.
 */
import { useEffect, useMemo, useState } from "preact/hooks";
import { asApiError, type Cell, type Field, type Section, type TableSection, tables } from "../api";
import { answerAddress } from "../session";
import { fromRows, type TableData } from "../table/model";
import { fetchArrow, type Rows } from "../table/rows";
import { Table } from "../table/Table";
import { Card, Failed, Loading } from "../ui/basics";
import { hint } from "../ui/hint";
import type { Row } from "./reports";
import { inJson, nameLinks } from "./sections";

/** Rows of the report with every field that a section declares; if the report is too long, from the sections. */
export function useJoined(tool: string, rows: readonly Row[] | undefined, sections: readonly Section[]): Rows {
  const parts = useMemo(() => partsOf(sections), [sections]);
  const inline = useMemo<Rows | null>(() => {
    if (rows) return { state: "ready", data: fromRows(fieldsOf(parts, rows[0]), rows) };
    return null;
  }, [rows, parts]);
  const [fetched, setFetched] = useState<{ parts: readonly TableSection[]; rows: Rows } | null>(null);
  useEffect(() => {
    if (inline) return;
    Promise.all(parts.map((part) => rowsOf(tool, part)))
      .then((all) => setFetched({ parts, rows: { state: "ready", data: merged(all) } }))
      .catch((error: unknown) => setFetched({ parts, rows: { state: "failed", error: asApiError(error) } }));
  }, [inline, parts, tool]);
  return inline ?? (fetched?.parts === parts ? fetched.rows : { state: "loading" });
}

/** The first table, and those that hold further columns of the same rows. */
function partsOf(sections: readonly Section[]): TableSection[] {
  const [first, ...others] = tables(sections);
  if (!first) return [];
  const key = first.fields[0]?.name;
  return [first, ...others.filter((other) => other.row_count === first.row_count && other.fields[0]?.name === key)];
}

function fieldsOf(parts: readonly TableSection[], row: Row | undefined): Field[] {
  const seen = new Map<string, Field>();
  for (const field of parts.flatMap((part) => part.fields))
    if (!seen.has(field.name) && (!row || field.name in row)) seen.set(field.name, field);
  return [...seen.values()];
}

async function rowsOf(tool: string, part: TableSection): Promise<TableData> {
  if (part.columns) return { fields: part.fields, columns: part.columns, rowCount: part.row_count };
  return fetchArrow(part, answerAddress(tool, `/${part.arrow}`) as string);
}

function merged(all: readonly TableData[]): TableData {
  const columns: Record<string, readonly Cell[]> = {};
  const fields: Field[] = [];
  for (const part of all) {
    for (const field of part.fields) {
      if (columns[field.name]) continue;
      columns[field.name] = part.columns[field.name] ?? [];
      fields.push(field);
    }
  }
  return { fields, columns, rowCount: all[0]?.rowCount ?? 0 };
}

interface JoinedCardProps {
  title: string;
  tool: string;
  sections: readonly Section[];
  id: string;
  rows: Rows;
  columns?: readonly string[];
  mark?: (data: TableData, row: number) => string | null;
  labels?: Readonly<Record<string, string>>;
  texts?: Readonly<Record<string, (text: string) => string>>;
}

export function JoinedCard({ title, tool, sections, id, rows, columns, mark, ...rest }: JoinedCardProps) {
  const source = inJson(tool, tables(sections)[0]);
  return (
    <Card title={title} titleHint={source ? hint(title, source) : {}} class="table-card">
      {rows.state === "loading" && <Loading what="Fetching the rows" />}
      {rows.state === "failed" && <Failed error={rows.error} />}
      {rows.state === "ready" && (
        <Table
          id={id}
          title={title}
          data={rows.data}
          source={source}
          main
          height="page"
          {...rest}
          {...(columns ? { columns } : {})}
          {...(mark ? { mark: (row: number) => mark(rows.data, row) } : {})}
          links={(row) => nameLinks(rows.data, row)}
        />
      )}
    </Card>
  );
}
