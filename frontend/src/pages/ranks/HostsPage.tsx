/** Every step on every worker: which worker is slow, and in which part. */
import { useMemo } from "preact/hooks";
import { type ToolAnswer, useResource } from "../../api";
import type { Column } from "../../charts/steps";
import { partsOfRow } from "../../design/causes";
import { route, setParams } from "../../router";
import { type ReportOf, tableOf } from "../../sections";
import { answerAddress } from "../../session";
import { termText } from "../../terms";
import { Card } from "../../ui/basics";
import { ColumnGraph } from "../shared/ColumnGraph";
import { Findings } from "../shared/Findings";
import { type StepLink, useStepLinks } from "../shared/intervals";
import { More } from "../shared/More";
import type { Row } from "../shared/reports";
import { TableCard } from "../shared/sections";
import { usualColumns } from "../summary/StepsPage";

export default function Pod({ report, sections }: ToolAnswer<"pod-viewer">) {
  const first = useResource<ToolAnswer<"distributed">>(answerAddress("distributed"));
  const said = (first.state === "ready" && first.data.report.findings) || [];
  // Who is late comes first, as on the first view; then what that does not say.
  const lines = [...said.slice(0, 1), ...(report.findings ?? []).filter((line) => !said.includes(line))];
  return (
    <>
      {first.state !== "loading" && <Findings lines={lines} />}
      {(report.rows ?? []).length > 0 && <OneStep report={report} />}
      <TableCard section={tableOf(sections, "rows")} main columns={usualColumns(tableOf(sections, "rows"))} />
      <More title="Ranks, and the slowest of each step" tables={["workers", "slowest"]}>
        <TableCard section={tableOf(sections, "workers")} />
        <TableCard section={tableOf(sections, "slowest")} />
      </More>
    </>
  );
}

/** One step on all workers, chosen by a slider. */
function OneStep({ report }: { report: ReportOf<"pod-viewer"> }) {
  const rows = report.rows ?? [];
  const numbers = useMemo(() => [...new Set(rows.map((row) => Number(row.step)))].sort((a, b) => a - b), [rows]);
  const wanted = Number(route.value.params.step ?? Number.NaN);
  const worst = useMemo(() => mostBehind(report.slowest ?? []), [report]);
  const at = Math.max(0, numbers.indexOf(numbers.includes(wanted) ? wanted : worst));
  const step = numbers[at] as number;
  const shown = useMemo(() => rows.filter((row) => row.step === step), [rows, step]);
  const link = useStepLinks();
  const columns = useMemo(() => shown.map((row) => toColumn(row, link, shown)).filter(hasParts), [shown, link]);
  const choose = (index: number) => setParams({ step: String(numbers[index]) });
  const isWorst = step === worst && numbers.length > 1 && shown.length > 1;
  return (
    <Card
      title={`Step ${step}`}
      note={[workersText(shown), isWorst && "in this step they differ most"].filter(Boolean).join("; ")}
      actions={
        numbers.length > 1 && (
          <label class="slider row gap-m">
            <span class="muted">step {numbers[0]}</span>
            <input
              type="range"
              min={0}
              max={numbers.length - 1}
              value={at}
              aria-label="Step"
              aria-valuetext={`step ${step}`}
              onInput={(event) => choose(Number(event.currentTarget.value))}
            />
            <span class="muted">{numbers.at(-1)}</span>
          </label>
        )
      }
    >
      <ColumnGraph
        label={`Step ${step} on ${shown.length} ranks by what it waits for`}
        columns={columns}
        xName=""
        noun="rank"
        of={shown.some((row) => row.device) ? "Devices" : "Critical path"}
        height={300}
      />
    </Card>
  );
}

/** The step in which the slowest worker is furthest behind the others, NaN if that is not known of any. */
function mostBehind(slowest: readonly Row[]): number {
  const known = slowest.filter((row) => typeof row.behind_ms === "number");
  const worst = known.reduce<Row | null>(
    (most, row) => (most && Number(most.behind_ms) >= Number(row.behind_ms) ? most : row),
    null,
  );
  return Number(worst?.step ?? Number.NaN);
}

/** A host with several devices has a column as a whole, and one for each. */
function workersText(rows: readonly Row[]): string {
  const hosts = rows.filter((row) => row.device === "all").length;
  const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? "" : "s"}`;
  return hosts > 0
    ? `${counted(hosts, "host")}, ${counted(rows.length - hosts, "device")}`
    : counted(rows.length, "rank");
}

function workerName(row: Row): string {
  const device = row.device;
  return device && device !== "all" ? `${hostName(row)} ${device}` : hostName(row);
}

/** As the other views of the ranks call it. */
function hostName({ rank, host }: Row): string {
  return typeof rank === "number" ? `Rank ${rank}` : String(host);
}

function toColumn(row: Row, link: StepLink, all: readonly Row[]): Column {
  const host = String(row.host);
  const isOnly = all.every((each) => each === row || each.host !== host);
  const device = isOnly ? "" : String(row.device ?? "");
  return {
    label: device ? `${hostName(row)}\n${device === "all" ? "all devices" : device}` : hostName(row),
    title: workerName(row),
    total_ms: Number(row.duration_ms ?? 0),
    parts: partsOfRow(row),
    faint: row.complete === false,
    foot: `bottleneck: ${termText(String(row.bottleneck ?? "unknown"))}`,
    href: link(Number(row.step), host),
  };
}

/** A device that only copied has a duration, and nothing that it is made of. */
const hasParts = ({ parts }: Column) => Object.values(parts).some((time) => time > 0);
