/** The time of each rank in computation and communication, and which ranks wait. */
import { useMemo } from "preact/hooks";
import type { Report, ToolAnswer } from "../../api";
import type { Column } from "../../charts/steps";
import { CATEGORY_COLOUR, mix } from "../../design/colours";
import { palette } from "../../design/theme";
import { duration } from "../../format";
import { linkTo } from "../../router";
import { docOf, type RowOf, type TableOf, tableOf } from "../../sections";
import { Card } from "../../ui/basics";
import { type BarPart, StackedBars } from "../shared/Bars";
import { ColumnGraph } from "../shared/ColumnGraph";
import { Findings } from "../shared/Findings";
import { type StepLink, useStepLinks } from "../shared/intervals";
import type { Row } from "../shared/reports";
import { TableCard } from "../shared/sections";
import { ToolPage } from "../shared/ToolPage";

interface DistributedReport extends Report {
  readonly findings: readonly string[];
  readonly slowest_rank: string | null;
  readonly rows?: readonly RowOf<"distributed", "rows">[];
  readonly steps?: readonly RowOf<"distributed", "steps">[];
}

export default function DistributedPage() {
  return (
    <ToolPage<"distributed", DistributedReport> tool="distributed">{(answer) => <Distributed {...answer} />}</ToolPage>
  );
}

function Distributed({ report, sections }: ToolAnswer<"distributed", DistributedReport>) {
  const ranks = tableOf(sections, "rows");
  const look = palette.value;
  const parts = useMemo(() => partsOfTime(ranks, look.surface), [ranks, look]);
  const collectives = tableOf(sections, "collectives");
  return (
    <>
      <Findings lines={report.findings} />
      <Card title="Time of each rank" note="communication is exposed where no computation overlaps it">
        <StackedBars
          label="Time of each rank"
          parts={parts}
          rows={(report.rows ?? []).map((row) => ({
            key: `${row.host} ${row.rank}`,
            label: rankName(row),
            note: waits(row),
            parts: split(row),
            href: linkTo("timeline", report.hosts.length > 1 ? { host: String(row.host) } : {}),
            leads: "This rank's timeline",
          }))}
        />
      </Card>
      <StepsOfRanks report={report} parts={parts} />
      <TableCard
        section={ranks}
        tool="distributed"
        id="ranks"
        plain
        height="all"
        columns={RANK_COLUMNS.filter((name) => (report.rows ?? []).some((row) => row[name] !== null))}
      />
      <TableCard
        section={collectives}
        tool="distributed"
        id="collectives"
        main
        links={(row) => collectiveLinks(String(collectives?.columns?.operation?.[row] ?? ""))}
      />
      <TableCard section={tableOf(sections, "steps")} tool="distributed" id="steps" />
    </>
  );
}

/** The others are in the bars above. */
const RANK_COLUMNS: readonly (keyof RowOf<"distributed", "rows">)[] = [
  "rank",
  "host",
  "compute_ms",
  "communication_ms",
  "exposed_ms",
  "overlap_percent",
  "idle_ms",
  "waiting_ms",
  "waiting_percent",
  "held_up_ms",
  "last_count",
];

function rankName(row: Row): string {
  return typeof row.rank === "number" ? `Rank ${row.rank}` : String(row.host);
}

function waits(row: Row): string {
  const waiting = row.waiting_ms;
  return typeof waiting === "number"
    ? `waits ${duration(waiting)} for others`
    : typeof row.rank === "number"
      ? String(row.host)
      : "";
}

/** Computation alone, with communication beside it, communication alone, other work, nothing: together the span. */
function split(row: Row): Record<string, number> {
  const at = (name: string) => Number(row[name] ?? 0);
  return {
    compute_ms: Math.max(0, at("compute_ms") - at("overlap_ms")),
    overlap_ms: at("overlap_ms"),
    exposed_ms: at("exposed_ms"),
    other_work_ms: at("other_work_ms"),
    idle_ms: at("idle_ms"),
  };
}

function partsOfTime(ranks: TableOf<"distributed", "rows">, surface: string): BarPart[] {
  const { device_compute, device_collectives, device_to_device, other } = CATEGORY_COLOUR;
  return [
    {
      key: "compute_ms",
      label: "Compute without overlap",
      colour: device_compute,
      doc: `${docOf(ranks, "compute_ms")}; here without the overlapped part`,
    },
    {
      key: "overlap_ms",
      label: "Overlapped communication",
      colour: mix(device_compute, device_collectives, 0.5),
      doc: docOf(ranks, "overlap_ms"),
    },
    { key: "exposed_ms", label: "Exposed communication", colour: device_collectives, doc: docOf(ranks, "exposed_ms") },
    { key: "other_work_ms", label: "Other work", colour: device_to_device, doc: docOf(ranks, "other_work_ms") },
    { key: "idle_ms", label: "Idle", colour: mix(other, surface, 0.55), doc: docOf(ranks, "idle_ms") },
  ];
}

function StepsOfRanks({ report, parts }: { report: DistributedReport; parts: readonly BarPart[] }) {
  const link = useStepLinks();
  const columns = useMemo(() => (report.steps ?? []).map((row) => toColumn(row, report, link)), [report, link]);
  if (columns.length < 2) return null;
  return (
    <Card title="Steps of each rank">
      <ColumnGraph
        label={`Time of ${columns.length} steps of all ranks`}
        columns={columns}
        parts={parts}
        xName={report.hosts.length > 1 ? "step and rank" : "step"}
      />
    </Card>
  );
}

function toColumn(row: Row, report: DistributedReport, link: StepLink): Column {
  const parts = split(row);
  const many = (report.rows ?? []).length > 1;
  return {
    label: many ? `${row.step}\n${rankName(row)}` : String(row.step),
    title: `Step ${row.step}${many ? ` · ${rankName(row)}` : ""}`,
    total_ms: Number(row.duration_ms ?? 0),
    parts,
    foot: typeof row.waiting_ms === "number" ? `waits ${duration(row.waiting_ms)} for other ranks` : "",
    href: link(Number(row.step), String(row.host)),
    step: Number(row.step),
  };
}

/** Libraries write the operation with and without underscores: ncclKernel_AllReduce_RING, nccl:all_reduce. */
function collectiveLinks(operation: string) {
  if (!operation) return [];
  return [
    {
      label: "Find this collective in the timeline",
      href: linkTo("timeline", { find: operation.replaceAll("_", "[_-]?"), regex: "1" }),
    },
  ];
}
