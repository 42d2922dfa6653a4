/** Whether training waits for its input, from the device side and from the host side. */
import { useMemo } from "preact/hooks";
import type { Report, ToolAnswer } from "../../api";
import { CATEGORY_COLOUR, mix } from "../../design/colours";
import { palette } from "../../design/theme";
import { findInTimeline } from "../../links";
import { fieldOf, figuresOf, type RowOf, type Sections, tableOf } from "../../sections";
import { chosenPart } from "../../session";
import { Card, FigureRow } from "../../ui/basics";
import { RankedCard } from "../shared/Bars";
import { longestOps } from "../shared/examples";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import { TableCard } from "../shared/sections";
import { WhatToDo } from "../shared/WhatToDo";
import { isWithoutDevice } from "./graph";

interface InputReport extends Report {
  readonly verdict: string;
  readonly level: string;
  readonly summary: readonly string[];
  readonly largest: string | null;
  readonly host_breakdown_ms: Readonly<Record<string, number>>;
  readonly steps?: readonly RowOf<"input-pipeline", "steps">[];
  /** The input ops. */
  readonly rows?: readonly RowOf<"input-pipeline", "rows">[];
}

export default function Input({ report, sections }: ToolAnswer<"input-pipeline", InputReport>) {
  const waiting = figuresOf(sections, "waiting");
  // Only programs with a DataLoader, or with copies to a device, have some.
  const [loaders, copies] = [tableOf(sections, "loaders"), tableOf(sections, "copies")];
  const [workers, functions] = [tableOf(sections, "workers"), tableOf(sections, "worker_functions")];
  const hasSteps = (report.steps ?? []).length > 1;
  // That all of the host's time is in one stage is said above.
  const isSplit = !hasSteps || stagesOf(report).length !== 1;
  return (
    <>
      <Findings lines={report.summary.filter((line) => isSaidHere(line) && !(isSplit && line.startsWith(OF_STAGES)))}>
        <WhatToDo />
      </Findings>
      {isSplit && <HostSide report={report} sections={sections} />}
      {functions.row_count > 0 && <TableCard section={functions} heading="What the workers do" />}
      {workers.row_count > 0 && <TableCard section={workers} heading="Worker processes" columns={WORKER_COLUMNS} />}
      <TableCard section={tableOf(sections, "rows")} id="ops" heading="Input ops" main height="short" />
      <More title="Waiting in each step, loaders, and copies to devices" tables={["waiting", "loaders", "copies"]}>
        <Card title="Waiting for input, per step" class="fills">
          <FigureRow
            section={waiting}
            {...(isWithoutDevice(report.steps ?? []) ? { names: ["mean", "std", "min", "max"] } : {})}
          />
        </Card>
        {loaders.row_count > 0 && <TableCard section={loaders} heading="Loaders" />}
        {copies.row_count > 0 && <TableCard section={copies} />}
        <TableCard
          section={tableOf(sections, "steps")}
          id="waiting"
          heading="Waiting for input in each step"
          columns={WAITING_COLUMNS}
        />
      </More>
    </>
  );
}

/** What the bars show, all stages of which may take about as long. */
const OF_STAGES = "most input work on the host is ";

/** One answer: what to do is the advice, which knows more than a page of one part. */
export const isSaidHere = (line: string) => !line.startsWith("what to do: ") && !line.startsWith("to see ");

/** The functions are in a table of their own. */
const WORKER_COLUMNS: readonly (keyof RowOf<"input-pipeline", "workers">)[] = [
  ...(["worker", "batches", "prepare_ms", "max_ms", "send_ms", "busy_percent"] as const),
];

/** The causes of the steps are on Steps. */
const WAITING_COLUMNS: readonly (keyof RowOf<"input-pipeline", "steps">)[] = [
  ...(["step", "name", "duration_ms", "fetch_ms"] as const),
  ...(["waiting_mean_ms", "waiting_min_ms", "waiting_max_ms", "waiting_most"] as const),
];

const STAGES = [
  { key: "read_on_demand", label: "Reading files on demand", category: "input", lighter: 0 },
  { key: "read_in_advance", label: "Reading files in advance", category: "input", lighter: 0.45 },
  { key: "preprocessing", label: "Preprocessing", category: "host_compute", lighter: 0 },
  { key: "enqueue", label: "Enqueuing for the device", category: "device_to_device", lighter: 0 },
  { key: "other", label: "Other, such as waiting for workers", category: "other", lighter: 0 },
] as const;

function stagesOf({ host_breakdown_ms: of }: InputReport) {
  return STAGES.map((stage) => ({ ...stage, ms: of[stage.key] ?? 0 })).filter(({ ms }) => ms > 0);
}

/** Where the input's time goes on the host; each stage leads to the op that takes most of it. */
function HostSide({ report, sections }: { report: InputReport; sections: Sections<"input-pipeline"> }) {
  const longest = useMemo(() => longestOps(report.rows ?? []), [report]);
  const stages = stagesOf(report);
  const total = stages.reduce((sum, { ms }) => sum + ms, 0);
  if (!stages.length)
    return (
      <Card title="Host side">
        <p class="table-empty">
          No input op was recorded on a host. TensorFlow records them with host_tracer_level=2, PyTorch with its
          DataLoader in the same process. {chosenPart()}
        </p>
      </Card>
    );
  return (
    <RankedCard
      title="Host side"
      note={`where input spends time on the host${(report.steps ?? []).length > 1 ? ", in all steps together" : ""}`}
      field={fieldOf(tableOf(sections, "host_breakdown"), "time_ms")}
      rows={stages.map(({ key, label, category, lighter, ms }) => ({
        ...{ key, label, ms, percent: (100 * ms) / total },
        colour: mix(CATEGORY_COLOUR[category], palette.value.surface, lighter),
        href: longest.has(key) ? findInTimeline(longest.get(key) as string) : null,
      }))}
    />
  );
}
