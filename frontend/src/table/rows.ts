/** The rows of a table section: those that came along, or those fetched as Arrow because they are many. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { ApiError, asApiError, type Cell, fetchAnswer, type TableSection } from "../api";
import type { TableData } from "./model";

export type Rows =
  | { readonly state: "loading" }
  | { readonly state: "failed"; readonly error: ApiError }
  | { readonly state: "ready"; readonly data: TableData };

const NONE: Rows = { state: "loading" };

/** `addressOf` tells where something beside the section is, from its path relative to the report. */
export function useRows(section: TableSection | null, addressOf: (suffix: string) => string | null): Rows {
  const inline = useMemo<Rows | null>(() => {
    if (!section?.columns) return null;
    return { state: "ready", data: { fields: section.fields, columns: section.columns, rowCount: section.row_count } };
  }, [section]);
  const [fetched, setFetched] = useState<{ section: TableSection | null; rows: Rows }>({ section: null, rows: NONE });
  useEffect(() => {
    const url = section?.arrow ? addressOf(`/${section.arrow}`) : null;
    if (!section || inline || !url) return;
    fetchArrow(section, url)
      .then((data) => setFetched({ section, rows: { state: "ready", data } }))
      .catch((error: unknown) => setFetched({ section, rows: { state: "failed", error: asApiError(error) } }));
  }, [section, inline]);
  return inline ?? (fetched.section === section ? fetched.rows : NONE);
}

export async function fetchArrow(section: TableSection, url: string): Promise<TableData> {
  const [{ tableFromIPC }, response] = await Promise.all([import("./arrow"), fetchAnswer(url)]);
  if (!response.ok)
    throw new ApiError(
      `the rows of “${section.title}” could not be fetched (status ${response.status})`,
      "reload the page",
      [],
      response.status,
    );
  const table = tableFromIPC(new Uint8Array(await response.arrayBuffer()));
  const columns: Record<string, Cell[]> = {};
  for (const field of section.fields) columns[field.name] = Array.from(table.getChild(field.name) ?? [], toCell);
  return { fields: section.fields, columns, rowCount: table.numRows };
}

function toCell(value: unknown): Cell {
  if (value === null || value === undefined) return null;
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return value;
  return Array.from(value as Iterable<bigint | number>, Number);
}
