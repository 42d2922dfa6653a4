/** Where steps lie in the timeline, for the charts of tools that only know their numbers. */
import { useMemo } from "preact/hooks";
import { type TableSection, type ToolAnswer, useResource } from "../../api";
import { evidenceInTimeline, intervalInTimeline } from "../../links";
import { answerAddress, session } from "../../session";
import type { RowLink } from "../../table/RowDetails";
import type { StepRow, StepsReport } from "./reports";

/** The address of a step of a host in the timeline; null while, or where, its interval is not known. */
export type StepLink = (step: number, host?: string | null) => string | null;

export function useStepLinks(): StepLink {
  const found = useResource<ToolAnswer<"steps", StepsReport>>(answerAddress("steps"));
  const rows = found.state === "ready" ? found.data.report.rows : undefined;
  const many = (session.value?.hosts.length ?? 1) > 1;
  return useMemo(() => stepLinks(rows ?? [], many), [rows, many]);
}

function stepLinks(rows: readonly StepRow[], many: boolean): StepLink {
  const byStep = new Map<string, StepRow>();
  for (const row of rows) {
    byStep.set(`${row.step} ${row.host}`, row);
    if (!byStep.has(String(row.step))) byStep.set(String(row.step), row);
  }
  return (step, host) => {
    const row = byStep.get(host ? `${step} ${host}` : String(step));
    return row ? intervalInTimeline(row.start_ms, row.start_ms + row.duration_ms, many ? row.host : null) : null;
  };
}

/** What a row is called: its first name or text. */
function whyOf(table: TableSection | null, row: number): string {
  const field = table?.fields.find((each) => each.role === "name" || each.role === "term" || each.role === "step");
  const value = field && table?.columns?.[field.name]?.[row];
  return field && value !== null && value !== undefined ? `${field.label} ${value}` : (table?.title ?? "");
}

/** Leads each row of a table that says when it begins and how long it lasts to that place in the timeline. */
export function useRowLinks(table: TableSection | null, many: boolean): (row: number) => RowLink[] {
  const columns = table?.columns;
  return useMemo(
    () => (row: number) => {
      const [begin, length, host] = [columns?.start_ms?.[row], columns?.duration_ms?.[row], columns?.host?.[row]];
      if (typeof begin !== "number" || typeof length !== "number") return [];
      return [
        {
          label: "Show in the timeline",
          href: evidenceInTimeline(
            begin,
            begin + length,
            whyOf(table, row),
            many && typeof host === "string" ? host : null,
          ),
        },
      ];
    },
    [columns, table, many],
  );
}
