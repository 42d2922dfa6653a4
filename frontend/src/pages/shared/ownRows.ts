/** The rows of one program, one memory out of a table of all. */
import { useMemo } from "preact/hooks";
import type { TableSection } from "../../api";
import { answerAddress } from "../../session";
import type { TableData } from "../../table/model";
import { type Rows, useRows } from "../../table/rows";

/**
 * The rows whose columns have these values, without these columns, and whose name is wanted.  A table without such a
 * column is about all.
 */
export function ownRows(
  data: TableData,
  own: Readonly<Record<string, string>>,
  isWanted: (name: string) => boolean = () => true,
): TableData {
  const { columns, rowCount, fields } = data;
  const wanted = Object.entries(own);
  const rows = Array.from({ length: rowCount }, (_, row) => row).filter(
    (row) =>
      wanted.every(([name, value]) => !columns[name] || columns[name][row] === value) &&
      isWanted(String(columns.name?.[row])),
  );
  return {
    fields: fields.filter((field) => !(field.name in own)),
    columns: Object.fromEntries(
      Object.entries(columns).map(([name, values]) => [name, rows.map((row) => values[row] ?? null)]),
    ),
    rowCount: rows.length,
  };
}

export function useOwnRows(tool: string, section: TableSection | null, own: Readonly<Record<string, string>>): Rows {
  const all = useRows(section, (suffix) => answerAddress(tool, suffix));
  const key = JSON.stringify(own);
  return useMemo(() => (all.state === "ready" ? { state: "ready", data: ownRows(all.data, own) } : all), [all, key]);
}
