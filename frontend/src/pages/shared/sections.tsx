/** The sections of a report: figures, tables, sentences. */
import { type ComponentChildren, createContext } from "preact";
import { useContext, useMemo } from "preact/hooks";
import type { Figures, Section, TableSection, Values } from "../../api";
import { evidenceInTimeline, findInTimeline } from "../../links";
import { answerAddress } from "../../session";
import type { TableData } from "../../table/model";
import type { RowLink } from "../../table/RowDetails";
import { useRows } from "../../table/rows";
import { Table, type TableProps } from "../../table/Table";
import { Card, Code, Failed, FigureRow, Loading, sentence } from "../../ui/basics";
import { hint } from "../../ui/hint";

export function Sections({ sections, tool }: { sections: readonly Section[]; tool: string }) {
  const filled = sections.filter((section) => section.kind !== "prose" || section.lines.length > 0);
  const hasOthers = filled.some((section) => section.kind !== "table");
  // A table without rows says why it has none, unless something above does.
  const shown = filled.filter((section) => section.kind !== "table" || section.row_count > 0 || !hasOthers);
  const main = shown.find((section) => section.kind === "table");
  return (
    <>
      {shown.map((section) => (
        <SectionCard key={section.id} section={section} tool={tool} main={section === main} />
      ))}
    </>
  );
}

function SectionCard({ section, tool, main }: { section: Section; tool: string; main: boolean }) {
  if (section.kind === "table") return <TableCard section={section} tool={tool} main={main} />;
  if (section.kind === "figures") return <FiguresCard title={section.title} section={section} />;
  return (
    <Card title={section.title}>
      <ul class="prose">
        {section.lines.map((line) => (
          <li key={line}>
            <Code text={sentence(line)} />
          </li>
        ))}
      </ul>
    </Card>
  );
}

export function FiguresCard<V = Values>({ title, section }: { title: string; section: Figures<V> }) {
  return (
    <Card title={title}>
      <FigureRow section={section as Figures} />
    </Card>
  );
}

interface TableCardProps<V> extends Partial<Omit<TableProps, "data" | "id" | "links" | "mark">> {
  section: TableSection<V>;
  /** Whose table it is; that of the page if not given. */
  tool?: string;
  links?: (row: number, data: TableData) => readonly RowLink[];
  mark?: (row: number, data: TableData) => string | null;
  /** Adds to the rows what another table of the report has. */
  complete?: (data: TableData) => TableData;
  id?: string;
  actions?: ComponentChildren;
  heading?: string;
  note?: ComponentChildren;
}

/** The tool whose answer is drawn. */
export const ToolOfPage = createContext("");

/** For scripts: where the report's JSON has the rows of a table; empty if unknown. */
function inJson(tool: string, key: string | null | undefined): string {
  if (!key) return "";
  const places = `Export above, stepscope ${tool} PATH --format json, or to_dict()["${key}"] in Python`;
  return `In the JSON it is "${key}": ${places}`;
}

export function TableCard<V = Values>(props: TableCardProps<V>) {
  const ofPage = useContext(ToolOfPage);
  const { section, tool = ofPage, id, actions, heading, note, links = findLinks, mark, complete, ...rest } = props;
  const fetched = useRows(section as TableSection, (suffix) => answerAddress(tool, suffix));
  const rows = useMemo(
    () => (complete && fetched.state === "ready" ? { ...fetched, data: complete(fetched.data) } : fetched),
    [fetched, complete],
  );
  const title = heading ?? section.title;
  const source = inJson(tool, section.key);
  return (
    <Card title={title} titleHint={source ? hint(title, source) : {}} note={note} actions={actions} class="table-card">
      {rows.state === "loading" && <Loading what={`Fetching ${section.row_count.toLocaleString("en-US")} rows`} />}
      {rows.state === "failed" && <Failed error={rows.error} />}
      {rows.state === "ready" && (
        <Table
          id={id ?? section.id}
          title={title}
          data={rows.data}
          source={source}
          empty={section.empty ?? "nothing to show"}
          plain={rows.data.rowCount <= 12 && !rest.main}
          height={rest.main ? "page" : rows.data.rowCount <= 12 ? "all" : "short"}
          links={(row) => links(row, rows.data)}
          {...(mark ? { mark: (row: number) => mark(row, rows.data) } : {})}
          {...(section.usual ? { columns: section.usual } : {})}
          {...rest}
        />
      )}
    </Card>
  );
}

export const IN_TIMELINE = "Show in the timeline";

/** Where a row leads: to its interval if it has one, and to the occurrences of the op, kernel or call that it names. */
export function findLinks(row: number, data: TableData): RowLink[] {
  const value = (name: string | undefined) => (name ? data.columns[name]?.[row] : null);
  const host = value(data.fields.find((field) => field.role === "host")?.name);
  const place = typeof host === "string" ? host : null;
  const [begin, length] = [value("start_ms"), value("duration_ms")];
  const hasInterval = typeof begin === "number" && typeof length === "number";
  const interval = hasInterval ? evidenceInTimeline(begin, begin + length, calledIn(data, value), place) : null;
  const named = data.fields.flatMap((field) => {
    const name = field.role === "name" ? value(field.name) : null;
    if (typeof name !== "string" || !name) return [];
    return [{ label: `Find this ${field.label.toLowerCase()} in the timeline`, href: findInTimeline(name, place) }];
  });
  return [...(interval ? [{ label: IN_TIMELINE, href: interval }] : []), ...named];
}

/** What a row is called: its first name, term or step. */
function calledIn({ fields }: TableData, value: (name: string) => unknown): string {
  const field = fields.find(({ role }) => role === "name" || role === "term" || role === "step");
  return field ? `${field.label} ${value(field.name) ?? ""}` : "";
}
