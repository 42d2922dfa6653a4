/** The critical path: its parts, its steps, and the events on it. */
import { useMemo } from "preact/hooks";
import type { ToolAnswer } from "../../api";
import type { Column } from "../../charts/steps";
import { partsOfCauses } from "../../design/causes";
import { palette } from "../../design/theme";
import { percent } from "../../format";
import { type ReportOf, type RowOf, tableOf } from "../../sections";
import { fact, host, steps } from "../../session";
import { termText } from "../../terms";
import { Card } from "../../ui/basics";
import { type BarPart, StackedBars } from "../shared/Bars";
import { ColumnGraph } from "../shared/ColumnGraph";
import { Findings } from "../shared/Findings";
import { type StepLink, useStepLinks } from "../shared/intervals";
import { More } from "../shared/More";
import { shortKernel } from "../shared/names";
import type { Row } from "../shared/reports";
import { TableCard } from "../shared/sections";

const TEXTS = { name: shortKernel };

export default function Path({ report, sections }: ToolAnswer<"critical-path">) {
  const look = palette.value;
  const parts = useMemo(() => partsOf(report.parts ?? [], look.surface), [report, look]);
  const table = tableOf(sections, "rows");
  const hasSteps = fact("steps_source") !== "none";
  const median = Object.fromEntries((report.parts ?? []).map((row) => [String(row.part), Number(row.ms ?? 0)]));
  return (
    <>
      <Findings lines={withLimit(report)}>
        <StackedBars
          label="Parts of the critical path"
          parts={parts}
          rows={[
            { key: "path", label: "Critical path", note: hasSteps ? "median step" : "the capture", parts: median },
          ]}
        />
      </Findings>
      <TableCard
        section={table}
        id="path"
        heading={hasSteps ? table.title : "On the path of the capture"}
        main
        texts={TEXTS}
        mark={(row) => parts.find((part) => part.key === report.rows?.[row]?.part)?.colour ?? null}
      />
      <More title="Every step" note="what each step waits for" tables={["parts", "steps"]}>
        <Steps report={report} parts={parts} />
        <TableCard section={tableOf(sections, "parts")} plain height="all" />
        <TableCard section={tableOf(sections, "steps")} columns={usedColumns(report.steps ?? [])} />
      </More>
    </>
  );
}

const LONGEST = "longest, but nothing to gain there:";

/** The findings; what limits the step comes first, as on the Summary, where that is not the longest part. */
function withLimit({ findings = [], parts = [] }: ReportOf<"critical-path">): readonly string[] {
  const [cause, share] = [fact("cause"), fact("cause_percent")];
  const largest = parts.reduce<Row | null>((most, row) => (Number(row.ms) > Number(most?.ms ?? 0) ? row : most), null);
  if (!cause || typeof share !== "number" || host.value || steps.value || String(largest?.part) === cause)
    return findings;
  const limit = findings.find((line) => line.startsWith(percent(share)));
  if (!limit) return findings;
  const others = findings.filter((line) => line !== limit).map((line) => line.replace(/^longest part:/i, LONGEST));
  return [`${termText(String(cause))} limits the step: ${limit}`, ...others];
}

function partsOf(rows: readonly RowOf<"critical-path", "parts">[], surface: string): BarPart[] {
  return partsOfCauses(
    rows.map((row) => ({ cause: String(row.part), meaning: String(row.meaning ?? "") })),
    surface,
  );
}

function Steps({ report, parts }: { report: ReportOf<"critical-path">; parts: readonly BarPart[] }) {
  const link = useStepLinks();
  const columns = useMemo(
    () => (report.steps ?? []).map((row) => toColumn(row, parts, report.hosts.length > 1, link)),
    [report, parts, link],
  );
  if (columns.length < 2) return null;
  return (
    <Card title="Paths by step">
      <ColumnGraph label={`Critical path of ${columns.length} steps`} columns={columns} parts={parts} />
    </Card>
  );
}

function toColumn(row: Row, parts: readonly BarPart[], several: boolean, link: StepLink): Column {
  const step = Number(row.step);
  return {
    label: several ? `${step}\n${row.host}` : String(step),
    title: `Step ${step}${several ? ` on ${row.host}` : ""}`,
    total_ms: Number(row.duration_ms ?? 0),
    parts: Object.fromEntries(parts.map((part) => [part.key, Number(row[`${part.key}_ms`] ?? 0)])),
    href: link(step, String(row.host)),
    step,
  };
}

/** Hides parts that no step waits for. */
function usedColumns(rows: readonly Row[]): string[] {
  return Object.keys(rows[0] ?? {}).filter(
    (name) => !name.endsWith("_ms") || rows.some((row) => Number(row[name]) > 0),
  );
}
