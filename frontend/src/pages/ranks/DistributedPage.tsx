/** The time of each rank in computation and communication, and which ranks wait. */
import { useMemo } from "preact/hooks";
import type { Cell, Report, TableSection, ToolAnswer } from "../../api";
import { CATEGORY_COLOUR, mix } from "../../design/colours";
import { palette } from "../../design/theme";
import { duration } from "../../format";
import { linkTo, route, setParams } from "../../router";
import { docOf, type RowOf, type Sections, type TableId, type TableOf, tableOf } from "../../sections";
import { answerAddress } from "../../session";
import { narrow } from "../../table/narrow";
import { useRows } from "../../table/rows";
import { Card, Segmented } from "../../ui/basics";
import { type BarPart, StackedBars } from "../shared/Bars";
import { Findings } from "../shared/Findings";
import { useStepLinks } from "../shared/intervals";
import { More } from "../shared/More";
import type { Row } from "../shared/reports";
import { TableCard } from "../shared/sections";
import { WhatToDo } from "../shared/WhatToDo";
import { HeatMap } from "./HeatMap";
import {
  heatTable,
  scaleOfSlowdowns,
  scaleOfTimes,
  scaleOfWaits,
  slowdownsOfKinds,
  slowdownsOfRanks,
  waitsTable,
} from "./heat";

interface DistributedReport extends Report {
  readonly findings: readonly string[];
  readonly rows?: readonly RowOf<"distributed", "rows">[];
}

export default function Distributed({ report, sections }: ToolAnswer<"distributed", DistributedReport>) {
  const ranks = tableOf(sections, "rows");
  const look = palette.value;
  const parts = useMemo(() => partsOfTime(ranks, look.surface), [ranks, look]);
  const collectives = tableOf(sections, "collectives");
  // A map of one step would show nothing but its colour.
  const hasSteps = tableOf(sections, "steps").row_count > (report.rows ?? []).length;
  const inSteps = useRowsOf(tableOf(sections, "steps") as TableSection);
  const bars = (
    <StackedBars
      label="Time of each rank"
      parts={parts}
      rows={(report.rows ?? []).slice(0, MOST_BARS).map((row) => ({
        key: `${row.host} ${row.rank}`,
        label: rankName(row),
        note: waits(ofSteps(row, inSteps ?? {})),
        parts: split(ofSteps(row, inSteps ?? {})),
        href: linkTo("timeline", report.hosts.length > 1 ? { host: String(row.host) } : {}),
        leads: "This rank's timeline",
      }))}
    />
  );
  const hasCause = (tableOf(sections, "causes").columns?.cause ?? []).some((cause) => cause !== "unknown");
  const barsNote = inSteps?.host?.length ? "in its steps, all together" : WHOLE;
  return (
    <>
      <Findings lines={report.findings.length || collectives.row_count ? report.findings : [WITHOUT_COLLECTIVES]}>
        <WhatToDo />
      </Findings>
      <IfRows sections={sections} ids={hasCause ? ["missing", "causes"] : ["missing"]} />
      {hasSteps ? (
        <StepsByRank sections={sections} report={report} />
      ) : (
        <Card title="Time of each rank" note={barsNote}>
          {bars}
        </Card>
      )}
      <WhereAndWho sections={sections} report={report} />
      <TableCard
        section={ranks}
        note={WHOLE}
        id="ranks"
        main
        columns={RANK_COLUMNS.filter((name) => hasColumn(name, report.rows ?? []))}
      />
      {collectives.row_count > 0 && (
        <TableCard
          section={collectives}
          id="collectives"
          links={(row) => collectiveLinks(String(collectives?.columns?.operation?.[row] ?? ""))}
        />
      )}
      <Folded title="Slowdown by part and by step" sections={sections} ids={["job_parts", "job_steps"]} />
      <Folded
        title="Groups, pipelines, bandwidth and clocks"
        sections={sections}
        ids={["pipeline", "groups", "bandwidth", "clocks"]}
      />
      {hasSteps && (
        <More title="Compute and communication" note={barsNote} tables={["steps"]}>
          <Card title="Time of each rank">{bars}</Card>
          <TableCard section={tableOf(sections, "steps")} />
        </More>
      )}
    </>
  );
}

interface SomeTables {
  sections: Sections<"distributed">;
  ids: readonly TableId<"distributed">[];
}

/** Those of the tables that have rows. */
function IfRows({ sections, ids }: SomeTables) {
  return (
    <>
      {ids.map((id) => {
        const section = tableOf(sections, id) as TableSection;
        const usual = section.fields.map(({ name }) => name);
        // Of one cause its gain is that of the sentence above.
        const columns = section.row_count === 1 ? usual.filter((name) => name !== "gain_percent") : usual;
        return section.row_count > 0 && <TableCard key={id} section={section} id={id} columns={columns} />;
      })}
    </>
  );
}

function Folded({ title, sections, ids }: SomeTables & { title: string }) {
  if (ids.every((id) => tableOf(sections, id).row_count === 0)) return null;
  return (
    <More title={title} tables={ids}>
      <IfRows sections={sections} ids={ids} />
    </More>
  );
}

const WITHOUT_COLLECTIVES = "no collective was recorded, so nothing shows which rank waits for another";
const WHOLE = "from its first work to its last, with the time between steps";
const MOST_BARS = 64;

const TIMES = [
  { value: "duration_ms", label: "Step time", colour: "device_compute" },
  { value: "compute_ms", label: "Compute", colour: "host_compute" },
  { value: "exposed_ms", label: "Exposed communication", colour: "device_collectives" },
  { value: "waiting_ms", label: "Waiting", colour: "input" },
] as const;
const SLOWDOWN = { value: "slowdown", label: "Slowdown", colour: "device_to_device" } as const;

function useRowsOf(section: TableSection) {
  const rows = useRows(section, (suffix) => answerAddress("distributed", suffix));
  return rows.state === "ready" ? rows.data.columns : null;
}

/** The steps of all ranks as a heat map of their slowdown, where a cause of it is known, or of one of their times. */
function StepsByRank({ sections, report }: { sections: Sections<"distributed">; report: DistributedReport }) {
  const [section, heat] = [tableOf(sections, "steps"), tableOf(sections, "heat")];
  const [columns, slowdowns] = [useRowsOf(section as TableSection), useRowsOf(heat as TableSection)];
  const times = TIMES.filter(({ value }) => columns?.[value]?.some((cell) => typeof cell === "number"));
  const isExplained = tableOf(sections, "causes").row_count > 0;
  const slowdown = heat.row_count > 0 ? [SLOWDOWN] : [];
  const known = isExplained ? [...slowdown, ...times] : [...times, ...slowdown];
  const measure = known.find(({ value }) => value === route.value.params.measure) ?? known[0];
  const link = useStepLinks();
  const shown = useMemo(() => {
    if (!columns || !slowdowns || !measure) return null;
    const isTime = measure.value !== SLOWDOWN.value;
    const table = isTime ? heatTable(columns, measure.value) : slowdownsOfRanks(slowdowns, hostsOf(report));
    const scale = isTime ? scaleOfTimes(table.values) : scaleOfSlowdowns(table.values);
    return scale && { table, scale };
  }, [columns, slowdowns, measure, report]);
  if (!shown || !measure) return null;
  const { table } = shown;
  return (
    <Card
      title="Steps of each rank"
      note={measure.value === SLOWDOWN.value ? docOf(heat, "slowdown") : docOf(section, measure.value)}
      actions={
        <>
          {table.rows.length > 1 && <a href={linkTo("timeline", { stack: "ranks" })}>A step of each rank</a>}
          <Segmented
            label="Measure"
            value={measure.value}
            options={known}
            onChange={(value) => setParams({ measure: value === known[0]?.value ? null : value })}
          />
        </>
      }
    >
      <HeatMap
        label={`${measure.label} of ${table.columns.length} steps on ${table.rows.length} ranks`}
        {...shown}
        colour={CATEGORY_COLOUR[measure.colour]}
        link={(step, host) => link(Number(step), host)}
      />
    </Card>
  );
}

/** The host of each rank, by what the report calls the rank. */
function hostsOf(report: DistributedReport): ReadonlyMap<string, string> {
  return new Map(
    (report.rows ?? []).map(({ rank, host }) => [rank === null ? String(host) : `rank ${rank}`, String(host)]),
  );
}

/** Maps beside each other; below each other they would be long on a phone, and are folded there. */
function WhereAndWho(props: { sections: Sections<"distributed">; report: DistributedReport }) {
  const hasStages = tableOf(props.sections, "pipeline").row_count > 0;
  const isMany = (props.report.rows ?? []).length > 2; // of two ranks the table says as much
  const maps = [hasStages && <KindsByStage key="kinds" {...props} />, isMany && <WhoWaits key="who" {...props} />];
  if (!tableOf(props.sections, "waits").row_count || !maps.some(Boolean)) return null;
  if (narrow.value)
    return <More title={hasStages ? "Kinds of work, and who waits" : "Who waits for whom"}>{maps}</More>;
  return <div class="maps">{maps}</div>;
}

/** Which kind of work is slow on which stage of a pipeline. */
function KindsByStage({ sections }: { sections: Sections<"distributed"> }) {
  const heat = tableOf(sections, "heat");
  const columns = useRowsOf(heat as TableSection);
  const table = useMemo(() => columns && slowdownsOfKinds(columns), [columns]);
  const scale = useMemo(() => table && scaleOfSlowdowns(table.values), [table]);
  if (!table || !scale) return null;
  return (
    <Card title="Kinds of work by stage" note={docOf(heat, "slowdown")}>
      <HeatMap
        label={`Slowdown by ${table.rows.length} kinds of work on ${table.columns.length} stages`}
        table={table}
        scale={scale}
        colour={CATEGORY_COLOUR[SLOWDOWN.colour]}
      />
    </Card>
  );
}

/** Which rank waits for which. */
function WhoWaits({ sections, report }: { sections: Sections<"distributed">; report: DistributedReport }) {
  const waits = tableOf(sections, "waits");
  const columns = useRowsOf(waits as TableSection);
  const names = useMemo(
    () => new Map((report.rows ?? []).map((row): [string, string] => [String(row.host), rankName(row)])),
    [report],
  );
  const table = useMemo(() => columns && waitsTable(columns, names), [columns, names]);
  const scale = useMemo(() => table && scaleOfWaits(table.values), [table]);
  if (!table || !scale) return null;
  return (
    <Card title="Who waits for whom" note="each row waits for the rank of the column, which comes last">
      <HeatMap
        label={`Waiting of ${table.rows.length} ranks for each other`}
        {...{ table, scale }}
        colour={CATEGORY_COLOUR.input}
      />
    </Card>
  );
}

/** The others are in the bars above. */
const RANK_COLUMNS: readonly (keyof RowOf<"distributed", "rows">)[] = [
  ...(["rank", "host", "compute_ms", "communication_ms", "exposed_ms", "idle_ms"] as const),
  ...(["waiting_ms", "waiting_percent", "held_up_ms", "last_count"] as const),
];

/** Whether anything is known of it; on a phone the number of a rank stands for its host. */
function hasColumn(name: keyof RowOf<"distributed", "rows">, rows: readonly RowOf<"distributed", "rows">[]): boolean {
  if (name === "host" && narrow.value && rows.every(({ rank }) => rank !== null)) return false;
  return rows.some((row) => row[name] !== null);
}

function rankName(row: Row): string {
  return typeof row.rank === "number" ? `Rank ${row.rank}` : String(row.host);
}

function waits(row: Row): string {
  if (typeof row.waiting_ms === "number") return `waits ${duration(row.waiting_ms)} for others`;
  return typeof row.rank === "number" ? String(row.host) : "";
}

/** The row of a rank with the times of all its steps. */
function ofSteps(row: Row, steps: Readonly<Record<string, readonly Cell[]>>): Row {
  const own = (steps.host ?? []).flatMap((host, at) =>
    host === row.host && steps.rank?.[at] === row.rank ? [at] : [],
  );
  const sum = (cells: readonly Cell[] = []) => own.reduce((total, at) => total + Number(cells[at] ?? 0), 0);
  const known = Object.keys(row).filter((name) => name.endsWith("_ms") && steps[name] && row[name] !== null);
  return own.length ? { ...row, ...Object.fromEntries(known.map((name) => [name, sum(steps[name])])) } : row;
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
  const parts = [
    ["compute_ms", "Compute without overlap", device_compute],
    ["overlap_ms", "Overlapped communication", mix(device_compute, device_collectives, 0.5)],
    ["exposed_ms", "Exposed communication", device_collectives],
    ["other_work_ms", "Other work", device_to_device],
    ["idle_ms", "Idle", mix(other, surface, 0.55)],
  ] as const;
  return parts.map(([key, label, colour]) => ({ key, label, colour, doc: docOf(ranks, key) }));
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
