/** Whether training waits for its input, from the device side and from the host side. */
import { useMemo } from "preact/hooks";
import type { Report, ToolAnswer } from "../../api";
import type { Column } from "../../charts/steps";
import { partsOfRow } from "../../design/causes";
import { CATEGORY_COLOUR, type Category, mix } from "../../design/colours";
import { palette } from "../../design/theme";
import { duration, percent } from "../../format";
import { findInTimeline } from "../../links";
import { formatHash, route, withParams } from "../../router";
import { figuresOf, type RowOf, type Sections, tableOf } from "../../sections";
import { chosenPart } from "../../session";
import { Card, FigureRow } from "../../ui/basics";
import { hint } from "../../ui/hint";
import { Icon } from "../../ui/icons";
import { ColumnGraph } from "../shared/ColumnGraph";
import { isWithoutDevice } from "../shared/differences";
import { longestOps } from "../shared/examples";
import { Findings } from "../shared/Findings";
import { type StepLink, useStepLinks } from "../shared/intervals";
import { More } from "../shared/More";
import type { Row } from "../shared/reports";
import { TableCard } from "../shared/sections";

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
  return (
    <>
      <Findings lines={report.summary} />
      {(report.steps ?? []).length > 1 ? (
        <div class="two uneven">
          <DeviceSide report={report} />
          <HostSide report={report} sections={sections} />
        </div>
      ) : (
        <HostSide report={report} sections={sections} />
      )}
      <TableCard section={tableOf(sections, "rows")} id="ops" heading="Input ops" main height="short" />
      {loaders.row_count > 0 && <TableCard section={loaders} heading="Loaders" />}
      <More title="Each step, and copies to devices" tables={["waiting", "copies"]}>
        <Card title={isWithoutDevice(report.steps ?? []) ? "Times" : "Device times"} class="fills">
          <h3>Step time</h3>
          <FigureRow section={figuresOf(sections, "step_time")} />
          <h3>Waiting for input, per step</h3>
          <FigureRow
            section={waiting}
            {...(isWithoutDevice(report.steps ?? []) ? { names: ["mean", "std", "min", "max"] } : {})}
          />
        </Card>
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

/** The parts of the steps are drawn above. */
const WAITING_COLUMNS: readonly (keyof RowOf<"input-pipeline", "steps">)[] = [
  ...(["step", "name", "duration_ms", "fetch_ms"] as const),
  ...(["waiting_mean_ms", "waiting_min_ms", "waiting_max_ms", "waiting_most"] as const),
];

function DeviceSide({ report }: { report: InputReport }) {
  const link = useStepLinks();
  const columns = useMemo(() => (report.steps ?? []).map((row) => toColumn(row, link)), [report, link]);
  return (
    <Card
      {...(isWithoutDevice(report.steps ?? [])
        ? { title: "Steps", note: "the time of each step, and what it waited for" }
        : { title: "Device side", note: "the time of each step, and what the devices waited for" })}
      class="grows"
    >
      {columns.length > 0 && (
        <ColumnGraph label={`Time of ${columns.length} steps by what they wait for`} columns={columns} height={340} />
      )}
    </Card>
  );
}

function toColumn(row: Row, link: StepLink): Column {
  const [low, high] = [row.waiting_min_ms, row.waiting_max_ms];
  const range =
    typeof low === "number" && typeof high === "number"
      ? `devices wait ${low === high ? duration(low) : `${duration(low)} to ${duration(high)}`}`
      : "";
  return {
    label: String(row.step),
    title: `Step ${row.step}`,
    total_ms: typeof row.duration_ms === "number" ? row.duration_ms : 0,
    parts: partsOfRow(row),
    faint: row.complete === false,
    foot: range,
    href: link(Number(row.step)),
    step: Number(row.step),
  };
}

const STAGES: readonly {
  readonly key: string;
  readonly label: string;
  readonly category: Category;
  readonly lighter: number;
}[] = [
  { key: "read_on_demand", label: "Reading files on demand", category: "input", lighter: 0 },
  { key: "read_in_advance", label: "Reading files in advance", category: "input", lighter: 0.45 },
  { key: "preprocessing", label: "Preprocessing", category: "host_compute", lighter: 0 },
  { key: "enqueue", label: "Enqueuing for the device", category: "device_to_device", lighter: 0 },
  { key: "other", label: "Other", category: "other", lighter: 0 },
];

/** Where the input's time goes on the host, longest first. */
function HostSide({ report, sections }: { report: InputReport; sections: Sections<"input-pipeline"> }) {
  const table = tableOf(sections, "host_breakdown");
  const meaning = new Map(
    table?.columns?.category?.map((name, row) => [String(name), String(table.columns?.meaning?.[row] ?? "")]) ?? [],
  );
  const stages = STAGES.filter((stage) => (report.host_breakdown_ms[stage.key] ?? 0) > 0);
  const total = stages.reduce((sum, stage) => sum + (report.host_breakdown_ms[stage.key] ?? 0), 0);
  const longest = useMemo(() => longestOps(report.rows ?? []), [report]);
  const largest = Math.max(...stages.map((stage) => report.host_breakdown_ms[stage.key] ?? 0));
  return (
    <Card title="Host side" note="where the input spends its time on the host">
      {total > 0 ? (
        <ul class="hbars" data-marks={stages.length}>
          {stages.map((stage) => {
            const ms = report.host_breakdown_ms[stage.key] ?? 0;
            const colour = mix(CATEGORY_COLOUR[stage.category], palette.value.surface, stage.lighter);
            return (
              <li key={stage.key}>
                <a
                  class="hbar-row list gap-l"
                  href={formatHash(withParams(route.value, { "ops.filter": `category=${stage.key}` }))}
                  {...hint(stage.label, meaning.get(stage.key) ?? "", `${ms} ms`)}
                >
                  <span class="hbar-name">{stage.label}</span>
                  <span class="hbar-track">
                    <span style={{ width: `${(100 * ms) / largest}%`, background: colour }} />
                  </span>
                  <span class="hbar-value strong to-right oneline">{duration(ms)}</span>
                  <span class="muted to-right oneline">{percent((100 * ms) / total)}</span>
                </a>
                {longest.has(stage.key) && (
                  <a
                    class="icon-button small"
                    href={findInTimeline(longest.get(stage.key) as string)}
                    aria-label={`${stage.label} in the timeline`}
                    {...hint(
                      `${stage.label} in the timeline`,
                      "the events of the op that takes most of this time",
                      longest.get(stage.key) as string,
                    )}
                  >
                    <Icon name="arrow" size={14} />
                  </a>
                )}
              </li>
            );
          })}
        </ul>
      ) : (
        <p class="table-empty">
          No input op was recorded on a host. TensorFlow records them with host_tracer_level=2, PyTorch with its
          DataLoader in the same process. {chosenPart()}
        </p>
      )}
    </Card>
  );
}
