/** A watched run over hours and days, with marks where its captures lie. */

import { useMemo } from "preact/hooks";
import { address, type Report, type TableSection, type ToolAnswer, useResource, type Values } from "../../api";
import { Chart } from "../../charts/Chart";
import { palette } from "../../design/theme";
import { duration } from "../../format";
import { linkTo, route, setParams } from "../../router";
import { watchedRuns } from "../../session";
import type { TableData } from "../../table/model";
import { Card, Empty, Failed, Loading, Segmented, Warnings } from "../../ui/basics";
import { Choice, Legend } from "../../ui/controls";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import { PageHead } from "../shared/PageHead";
import { FiguresCard, TableCard } from "../shared/sections";
import { curveChart, knownCurves, shownCurves } from "./curves";

const TOOL = "over-time";
/** Captures whose account is shown; each has to be analysed once. */
const MOST_CAPTURES = "6";

/** What a trigger was about first: a narrow window shows only as many columns as fit. */
const MARK_COLUMNS = ["hour", "sentence", "trigger", "run", "step", "host", "time", "window"];
const CAUSE_TEXTS = { causes: (text: string) => text.replaceAll("_", " ") };

interface OverTimeReport extends Report {
  readonly findings: readonly string[];
  readonly figures: Values;
  readonly rows: readonly Values[];
  readonly marks: readonly Values[];
}

interface OverTimeAnswer extends ToolAnswer<never, OverTimeReport> {
  /** The ids of the sessions that triggers and captures name, by the names of their folders. */
  readonly sessions: Readonly<Record<string, string>>;
}

const nameOf = (id: string) => watchedRuns.value.find((each) => each.id === id)?.run ?? id;

export default function OverTimePage() {
  const run = route.value.params.run ?? watchedRuns.value[0]?.id;
  const found = useResource<OverTimeAnswer>(
    run ? address(`api/over-time/${encodeURIComponent(run)}`, { captures: MOST_CAPTURES }) : null,
  );
  return (
    <>
      <PageHead tool={TOOL} controls={<RunPicker chosen={run ?? ""} />} />
      {!run && <NoRun />}
      {run && found.state === "loading" && <Loading what={`Reading ${nameOf(run)}`} />}
      {run && found.state === "failed" && <Failed error={found.error} retry={found.retry} />}
      {run && found.state === "ready" && <OverTime {...found.data} />}
    </>
  );
}

function NoRun() {
  return (
    <Empty
      title="No run was watched here"
      text="watch one with `stepscope run --watch --logdir LOGDIR train.py`, or with `stepscope.watch(LOGDIR)` in it"
    />
  );
}

function RunPicker({ chosen }: { chosen: string }) {
  if (watchedRuns.value.length < 2) return null;
  return (
    <Choice
      label="Run"
      value={chosen}
      options={watchedRuns.value.map(({ id, run }) => [id, run])}
      onChange={(run) => setParams({ run }, "push")}
    />
  );
}

function OverTime({ report, sections, sessions }: OverTimeAnswer) {
  const sessionLinks = useMemo(() => linksTo(sessions), [sessions]);
  const table = (id: string) => sections.find((each) => each.id === id) as TableSection;
  const figures = sections.find((each) => each.kind === "figures");
  return (
    <>
      <Warnings items={report.warnings} />
      <Findings lines={report.findings.length ? report.findings : [steadySentence(report.figures)]} />
      <CurvesCard report={report} />
      <TableCard section={table("marks")} tool={TOOL} id="marks" main links={sessionLinks} columns={MARK_COLUMNS} />
      <More title="Captures and their accounts" tables={["captures"]}>
        <TableCard section={table("captures")} tool={TOOL} id="captures" links={sessionLinks} texts={CAUSE_TEXTS} />
      </More>
      <More title="Growth of memory, figures and all rows" tables={["growth", "rows"]}>
        {figures?.kind === "figures" && <FiguresCard title="The run" section={figures} />}
        <TableCard section={table("growth")} tool={TOOL} id="growth" />
        <TableCard section={table("rows")} tool={TOOL} id="rows" />
      </More>
    </>
  );
}

function steadySentence(figures: Values): string {
  const step = typeof figures.step_ms_median === "number" ? ` of ${duration(figures.step_ms_median)}` : "";
  const steps = Number(figures.steps ?? 0).toLocaleString("en-US");
  return `Nothing stands out: ${steps} steps${step} in ${figures.hours ?? 0} h`;
}

function CurvesCard({ report }: { report: OverTimeReport }) {
  const { params } = route.value;
  const host = report.hosts.find((each) => each === params.of) ?? report.hosts[0] ?? "";
  const rows = useMemo(() => report.rows.filter((row) => row.host === host), [report, host]);
  const marks = useMemo(() => report.marks.filter((mark) => mark.host === host), [report, host]);
  const curves = useMemo(() => knownCurves(rows), [rows]);
  const shown = curves.find(({ key }) => key === params.curve) ?? curves[0];
  const look = palette.value;
  const plot = useMemo(() => (shown ? curveChart(shown, rows, marks, look) : null), [shown, rows, marks, look]);
  if (!shown || !plot) return null;
  return (
    <Card
      title={shown.label}
      note={marks.length ? "a line for each trigger; dashed where nothing was captured" : ""}
      actions={
        <>
          {report.hosts.length > 1 && (
            <Choice label="Host" value={host} options={report.hosts} onChange={(of) => setParams({ of })} />
          )}
          <Segmented
            label="What is drawn"
            value={shown.key}
            options={curves.map(({ key, label }) => ({ value: key, label }))}
            onChange={(curve) => setParams({ curve })}
          />
        </>
      }
    >
      <Chart
        label={`${shown.label} over ${String(rows.at(-1)?.hour ?? 0)} hours, with ${marks.length} triggers`}
        plot={plot}
        height={300}
        marks={rows.length}
      />
      <Legend entries={shownCurves(shown, rows).map((each) => ({ ...each, key: each.name }))} />
    </Card>
  );
}

/** The sessions that a row names and that still exist. */
function linksTo(known: OverTimeAnswer["sessions"]) {
  return (row: number, data: TableData) =>
    ["run", "window"].flatMap((name) => {
      const session = known[String(data.columns[name]?.[row] ?? "")];
      if (!session) return [];
      const label = name === "window" ? "Open the record of the steps after" : "Open the session";
      return [{ label, href: linkTo("overview", { session, host: null, steps: null }) }];
    });
}
