/** The tables, columns and functions that a query may name; a click puts a name into the query. */

import { useState } from "preact/hooks";
import { Code } from "../../ui/basics";
import { SearchBox } from "../../ui/controls";
import { hint } from "../../ui/hint";
import type { Schema, SqlTable } from "./schema";

interface SchemaListProps {
  schema: Schema;
  onPick: (word: string) => void;
}

export function SchemaList({ schema, onPick }: SchemaListProps) {
  const [wanted, setWanted] = useState("");
  const fits = (text: string) => text.toLowerCase().includes(wanted.toLowerCase());
  const shown = schema.tables.filter(
    (table) => !wanted || fits(table.name) || table.columns.some((column) => fits(column.name)),
  );
  const groups = [
    { title: "Views", tables: shown.filter((table) => !table.tool) },
    { title: "Tables of tools", tables: shown.filter((table) => table.tool) },
  ];
  const functions = schema.functions.filter((each) => !wanted || fits(each.call));
  return (
    <>
      <SearchBox label="Find a table or a column" value={wanted} onChange={setWanted} />
      {groups.map(({ title, tables }) =>
        tables.length ? (
          <section key={title}>
            <h3>{title}</h3>
            {tables.map((table) => (
              <TableOf key={table.name} table={table} isOpen={wanted !== ""} onPick={onPick} />
            ))}
          </section>
        ) : null,
      )}
      {functions.length > 0 && (
        <section>
          <h3>Functions</h3>
          <ul>
            {functions.map((each) => (
              <li key={each.call}>
                <button
                  type="button"
                  class="sql-name cut"
                  onClick={() => onPick(each.call)}
                  {...hint(each.call, each.doc)}
                >
                  <code>{each.call}</code>
                </button>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function TableOf({ table, isOpen, onPick }: { table: SqlTable; isOpen: boolean; onPick: (word: string) => void }) {
  return (
    <details open={isOpen}>
      <summary {...hint(table.name, table.doc)}>
        <code>{table.name}</code>
        <span class="sql-doc muted minor">
          <Code text={table.doc} />
        </span>
      </summary>
      <ul>
        {table.columns.map((column) => (
          <li key={column.name}>
            <button
              type="button"
              class="sql-name cut"
              onClick={() => onPick(column.name)}
              {...hint(column.name, column.doc, [column.type, column.unit].filter(Boolean).join(", "))}
            >
              <code>{column.name}</code> <span class="muted">{column.unit || column.type.toLowerCase()}</span>
            </button>
          </li>
        ))}
        {!table.columns.length && <li class="muted">DESCRIBE {table.name} lists its columns</li>}
      </ul>
    </details>
  );
}
