/** Every step, and what it waited for. */
import { type TableSection, type ToolAnswer, useResource } from "../../api";
import { isCause } from "../../design/colours";
import { route } from "../../router";
import { tableOf } from "../../sections";
import { answerAddress } from "../../session";
import type { TableData } from "../../table/model";
import type { RowLink } from "../../table/RowDetails";
import { Card } from "../../ui/basics";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import type { OverviewReport, StepsReport } from "../shared/reports";
import { longFrom, StepGraph } from "../shared/StepGraph";
import { findLinks, TableCard } from "../shared/sections";
import { BesideMedian, besideMedian } from "./BesideMedian";
import { howNote, onPace, useGraphSteps } from "./SummaryPage";

export default function Steps({ sections }: ToolAnswer<"steps", StepsReport>) {
  const overview = useResource<ToolAnswer<"overview", OverviewReport>>(answerAddress("overview"));
  const table = tableOf(sections, "rows");
  const { beside, on = null } = route.value.params;
  return (
    <>
      {beside && <BesideMedian key={`${beside} ${on}`} step={beside} on={on} />}
      {overview.state === "ready" && <Graph {...overview.data} />}
      <TableCard section={table} id="steps" main columns={usualColumns(table)} links={linksOf} />
      <More title="As the guide defines it" note={GUIDE_NOTE} tables={["guide"]}>
        <TableCard section={tableOf(sections, "guide")} heading="Step-time breakdown" />
      </More>
    </>
  );
}

/** From a step to the median one, and to its place in the timeline. */
function linksOf(row: number, data: TableData): RowLink[] {
  const [step, on] = [Number(data.columns.step?.[row]), String(data.columns.host?.[row])];
  const href = besideMedian(step, on, data.rowCount);
  return [...(href ? [{ label: "Compare with the median step", href }] : []), ...findLinks(row, data)];
}

const GUIDE_NOTE = "the categories of the TensorFlow Profiler guide and XProf, which no verdict reads";

/** Of these columns one value in all rows says nothing. */
const TELL_APART = ["host", "complete", "usual"];

/** Hides causes that no step has, names that only repeat the steps' numbers, and what all rows have alike; the causes
 * stand in the order of the bars, that of their time. */
export function usualColumns(table: TableSection): string[] {
  const valuesOf = (name: string) => table.columns?.[name] ?? [null];
  const numbers = valuesOf("step");
  const isEmpty = (name: string) =>
    isCause(name.replace(/_ms$/, ""))
      ? valuesOf(name).every((value) => !value)
      : TELL_APART.includes(name)
        ? valuesOf(name).every((value, _, [first]) => value === first && first !== false)
        : name === "name" && valuesOf(name).every((value, row) => value === String(numbers[row]));
  const size = (name: string) => valuesOf(name).reduce<number>((sum, value) => sum + Number(value ?? 0), 0);
  const shown = table.fields.map((field) => field.name).filter((name) => !isEmpty(name));
  const causes = shown.filter((name) => isCause(name.replace(/_ms$/, ""))).sort((a, b) => size(b) - size(a));
  return shown.map((name) => (isCause(name.replace(/_ms$/, "")) ? (causes.shift() as string) : name));
}

function Graph({ report, sections }: ToolAnswer<"overview", OverviewReport>) {
  const steps = useGraphSteps(report);
  if (!steps.length) return null;
  const told = sections.find((each) => each.id === "account_summary");
  return (
    <>
      <Findings lines={told?.kind === "prose" ? told.lines.slice(0, 1) : []} />
      <Card title={`Time by step${onPace(report)}`} note={howNote(report)}>
        <StepGraph steps={steps} median_ms={report.median_step_ms} long_ms={longFrom(report)} height={300} />
      </Card>
    </>
  );
}
