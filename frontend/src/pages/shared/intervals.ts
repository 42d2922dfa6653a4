/** Where steps lie in the timeline, for the charts of tools that only know their numbers. */
import { useMemo } from "preact/hooks";
import { type ToolAnswer, useResource } from "../../api";
import { intervalInTimeline } from "../../links";
import { answerAddress, session } from "../../session";
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
