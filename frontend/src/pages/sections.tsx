/** The sections of a report as they are: figures, tables, sentences. */
import type { ComponentChildren } from "preact";
import type { Cell, Section, TableSection } from "../api";
import { findInTimeline } from "../links";
import { answerAddress } from "../session";
import type { TableData } from "../table/model";
import type { RowLink } from "../table/RowDetails";
import { useRows } from "../table/rows";
import { Table, type TableProps } from "../table/Table";
import { Card, Code, Failed, FigureRow, Loading, sentence } from "../ui/basics";
import { hint } from "../ui/hint";

export function slug(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
}

export function Sections({ sections, tool }: { sections: readonly Section[]; tool: string }) {
  const shown = sections.filter((section) => section.kind !== "prose" || section.lines.length > 0);
  const main = shown.find((section) => section.kind === "table");
  return (
    <>
      {shown.map((section) => (
        <SectionCard key={section.title} section={section} tool={tool} main={section === main} />
      ))}
    </>
  );
}

function SectionCard({ section, tool, main }: { section: Section; tool: string; main: boolean }) {
  if (section.kind === "table") return <TableCard section={section} tool={tool} main={main} />;
  return (
    <Card title={section.title}>
      {section.kind === "figures" ? (
        <FigureRow section={section} />
      ) : (
        <ul class="prose">
          {section.lines.map((line) => (
            <li key={line}>
              <Code text={sentence(line)} />
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

interface TableCardProps extends Partial<Omit<TableProps, "data" | "id">> {
  section: TableSection | null;
  tool: string;
  id?: string;
  actions?: ComponentChildren;
  heading?: string;
  note?: ComponentChildren;
}

/** For those who go on by script: where the report has the rows of a table; empty if nothing says it. */
export function inJson(tool: string, section: TableSection | undefined): string {
  const key = section?.key;
  if (!key) return "";
  const places = `Export above, stepscope ${tool} PATH --format json, or to_dict()["${key}"] in Python`;
  return `In the JSON it is "${key}": ${places}`;
}

export function TableCard({ section, tool, id, actions, heading, note, ...rest }: TableCardProps) {
  const rows = useRows(section, (suffix) => answerAddress(tool, suffix));
  if (!section) return null;
  const title = heading ?? section.title;
  const source = inJson(tool, section);
  return (
    <Card title={title} titleHint={source ? hint(title, source) : {}} note={note} actions={actions} class="table-card">
      {rows.state === "loading" && <Loading what={`Fetching ${section.row_count.toLocaleString("en-US")} rows`} />}
      {rows.state === "failed" && <Failed error={rows.error} />}
      {rows.state === "ready" && (
        <Table
          id={id ?? slug(section.title)}
          title={title}
          data={rows.data}
          source={source}
          empty={section.empty ?? "nothing to show"}
          plain={rows.data.rowCount <= 12 && !rest.main}
          height={rows.data.rowCount <= 12 && !rest.main ? "all" : "short"}
          links={(row) => nameLinks(rows.data, row)}
          {...rest}
        />
      )}
    </Card>
  );
}

/**
 * The table with the report's own values: sections shorten and indent names for the terminal, the page does so itself
 * and needs the whole ones to search for.
 */
export function whole(
  section: TableSection | null,
  rows: readonly Readonly<Record<string, Cell>>[] | undefined,
): TableSection | null {
  if (!section?.columns || rows?.length !== section.row_count) return section;
  return {
    ...section,
    columns: Object.fromEntries(
      section.fields.map((field) => [field.name, rows.map((row) => row[field.name] ?? null)]),
    ),
  };
}

const NAMES = ["kernel", "name", "op", "iterator", "long_name", "event"];

/** Of a shortened name what the whole one holds too. */
function searchable(name: string): string {
  return name.includes("…") ? (name.split(/[<…]/)[0] as string) : name;
}

/** A row that names an op, a kernel or an event leads to its occurrences in the timeline. */
export function nameLinks(data: TableData, row: number): RowLink[] {
  const named = NAMES.flatMap((name) => data.fields.filter((field) => field.name === name && field.kind === "str"));
  const host = data.columns.host?.[row];
  return named.flatMap((field) => {
    const value = data.columns[field.name]?.[row];
    return typeof value === "string" && value
      ? [
          {
            label: `Find this ${field.name.replace("_", " ")} in the timeline`,
            href: findInTimeline(searchable(value), typeof host === "string" ? host : null),
          },
        ]
      : [];
  });
}
