/** How near each op comes to what its device can do: the roofline, and the rows behind it. */

import { useMemo } from "preact/hooks";
import type { ToolAnswer } from "../../api";
import { Chart } from "../../charts/Chart";
import {
  countUnmarked,
  drawable,
  isAboveRoof,
  LINKS,
  type Roof,
  type RoofPoint,
  rooflineChart,
  usedRoofs,
} from "../../charts/roofline";
import { palette } from "../../design/theme";
import { bytes, duration, percent } from "../../format";
import { shapesText } from "../../names";
import { linkTo, setParams } from "../../router";
import { docOf, figuresOf, type RowOf, tableOf } from "../../sections";
import { answerAddress, fact } from "../../session";
import { type TableData, toRows } from "../../table/model";
import { useRows } from "../../table/rows";
import { termText } from "../../terms";
import { Card } from "../../ui/basics";
import { hint } from "../../ui/hint";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import { FiguresCard, findLinks, TableCard } from "../shared/sections";
import { ofAllDevices } from "../summary/topOps";

/** Shares of the time, in percent: below the first an op has no mark, below the second nobody asks what limits it. */
const LEAST_PERCENT = 0.05;
const TELLING_PERCENT = 5;

type Op = RowOf<"roofline", "rows">;

/** What limits how much of the ops' time, and which op loses most to its limit. */
function limitsSentences(rows: readonly Op[]): readonly string[] {
  const ops = rows.filter((row) => row.kind === "op" && Number(row.self_us ?? 0) > 0);
  const total = ops.reduce((sum, row) => sum + Number(row.self_us), 0);
  const shares = new Map<string | null, number>();
  for (const row of ops)
    shares.set(row.bound_by ?? null, (shares.get(row.bound_by ?? null) ?? 0) + (100 * Number(row.self_us)) / total);
  const unknown = shares.get(null) ?? 0;
  const known = [...shares]
    .filter(([bound, share]) => bound && share >= TELLING_PERCENT)
    .sort((one, other) => other[1] - one[1]);
  const [longest] = [...ops].sort((one, other) => Number(other.self_us) - Number(one.self_us));
  const [worst] = [...ops].sort((one, other) => lostMs(other) - lostMs(one));
  if (!longest) return [];
  const [first, ...others] = known.map(([bound, share], at) => limitText(String(bound), share, !at));
  const isMoved = LINKS.includes(known[0]?.[0] ?? "");
  const took = (row: Op) => duration(Number(row.self_us) / 1e3);
  const atLimit = (row: Op) => duration(Number(row.self_us) / 1e3 - lostMs(row));
  const moved = isMoved && longest.bytes ? ` for ${bytes(longest.bytes)}` : "";
  const together = ofAllDevices() ? ` (${ofAllDevices()})` : "";
  return [
    first ? [first, ...others].join("; ") : "No op can be compared with the limits of its device",
    ...(first && unknown >= TELLING_PERCENT ? [`What limits ${percent(unknown)} is not known`] : []),
    worst && lostMs(worst) > 0 && !isMoved
      ? `\`${worst.name}\` has most to gain: it takes ${took(worst)}, at its limit ${atLimit(worst)}${together}`
      : `The longest op, \`${longest.name}\`, takes ${took(longest)}${moved}${together}`,
    ...(ops.some((row) => row.flops != null) ? [] : [WITHOUT_SIZES]),
  ];
}

const WITHOUT_SIZES =
  "Nothing says how much ops compute: in PyTorch record with `torch.profiler.profile(record_shapes=True)`; JAX and " +
  "TensorFlow state the cost of XLA programs themselves";

/** What a limit holds of the ops' time, the first in full. */
function limitText(bound: string, share: number, isFirst: boolean): string {
  const text = isFirst ? `${percent(share)} of the ops’ time` : percent(share);
  if (bound === "transfer") return `${isFirst ? "Copies" : "copies"} between host and device take ${text}`;
  if (bound === "communication") return `${isFirst ? "Communication" : "communication"} takes ${text}`;
  return isFirst ? `${termText(bound)} limits ${text}` : `${bound} limits ${text}`;
}

/** How much longer an op takes than its limit allows. */
function lostMs({ self_us, efficiency_percent }: Op): number {
  return efficiency_percent == null ? 0 : (Number(self_us) * (1 - efficiency_percent / 100)) / 1e3;
}

export default function RooflineView({ report, sections }: ToolAnswer<"roofline">) {
  const rows = report.rows ?? [];
  const isCosted = rows.some((row) => row.flops != null);
  const table = (
    <TableCard
      section={tableOf(sections, "rows")}
      main
      note={ofAllDevices()}
      columns={usualColumns(rows)}
      texts={TEXTS}
      links={opLinks}
    />
  );
  return (
    <>
      <Findings
        lines={limitsSentences(rows)}
        meaning={hint("Share of the ops’ time", docOf(tableOf(sections, "rows"), "bound_by"))}
      />
      <RooflineCard report={report} sections={sections} />
      {isCosted ? (
        table
      ) : (
        <More title="Ops by time" note="as on Op, without their costs" tables={["rows"]}>
          {table}
        </More>
      )}
      <More title="Steps, roofs and devices" tables={["roofs", "devices"]}>
        <FiguresCard title="Use of the hardware by steps" section={figuresOf(sections, "steps")} />
        <TableCard section={tableOf(sections, "roofs")} />
        <TableCard section={tableOf(sections, "devices")} />
      </More>
    </>
  );
}

const TEXTS = { shapes: shapesText };

/** Ops of one name are told apart by their shapes, where these were recorded. */
function usualColumns(rows: readonly RowOf<"roofline", "rows">[]): string[] {
  const names = rows.some((row) => row.shapes) ? ["name", "shapes"] : ["category", "name"];
  const figures = ["self_us", "self_percent", "gflop_per_s", "gib_per_s", "flop_per_byte"];
  return ["rank", ...names, ...figures, "bound_by", "roof_gflop_per_s", "efficiency_percent"];
}

function RooflineCard({ report, sections }: Pick<ToolAnswer<"roofline">, "report" | "sections">) {
  const rows = useRows(tableOf(sections, "rows"), (suffix) => answerAddress("roofline", suffix));
  const all = useMemo(() => (rows.state === "ready" ? toRows<RoofPoint>(rows.data) : []), [rows]);
  const ofKind = useMemo(() => all.filter((point) => point.kind === "op"), [all]);
  const points = useMemo(
    () => drawable(ofKind).filter(({ self_percent: share }) => (share ?? 0) >= LEAST_PERCENT),
    [ofKind],
  );
  const device = report.roofs?.[0]?.device; // with several kinds of devices, of the first
  const roofs = useMemo(
    () => usedRoofs((report.roofs ?? []).filter((roof) => roof.device === device) as readonly Roof[], points),
    [report, device, points],
  );
  const look = palette.value;
  const plot = useMemo(() => rooflineChart(points, roofs, look), [points, roofs, look]);
  const above = points.filter(isAboveRoof).length;
  if (rows.state === "ready" && !points.length) return null;
  return (
    <Card title="Roofline" note={device ? limitsOf(device) : "no roofs: the peaks of the device are not known"}>
      <Chart
        label={`${points.length} ops by operations per second and operations per byte`}
        plot={plot}
        height={420}
        marks={points.length}
        onPick={(index) => showRow(points[index]?.rank)}
      />
      <div class="graph-foot flex wrap spread above-m minor">
        <span class="muted">
          Larger marks take more time.{" "}
          {above > 0 &&
            `▲ ${above === 1 ? "one is above a roof: it" : `${above} are above a roof: they`} ` +
              "did less than is counted. "}
          {onlyInTable(points.length, ofKind.length, countUnmarked(ofKind, points))} Click a mark to see its row.
        </span>
      </div>
    </Card>
  );
}

/** The device as everywhere on the page; where the table of limits calls it otherwise, by which entry. */
function limitsOf(device: string): string {
  const name = String(fact("device_type") ?? device);
  return name === device ? name : `${name}, by the limits of ${device}`;
}

/** How many of all have a mark, and why the others have none. */
function onlyInTable(drawn: number, all: number, others: { moving: number; unknown: number; small: number }): string {
  const counted = (count: number, what: string) => (count > 0 ? [`${count.toLocaleString("en-US")} ${what}`] : []);
  const why = [
    ...counted(others.moving, "only move data"),
    ...counted(others.unknown, "have no known operations or bytes"),
    ...counted(others.small, "take less time"),
  ];
  return why.length
    ? `${drawn.toLocaleString("en-US")} of ${all.toLocaleString("en-US")} ops have a mark: ${why.join(", ")}.`
    : "";
}

/** A click on a mark leads to its row. */
function showRow(rank: number | undefined) {
  setParams({ "rows.filter": `rank = ${rank}` });
  document.querySelector('[data-table="rows"]')?.scrollIntoView({ behavior: "smooth", block: "center" });
}

function opLinks(row: number, data: TableData) {
  const [program, name] = [data.columns.program?.[row], data.columns.name?.[row]];
  if (data.columns.kind?.[row] !== "op") return [];
  const inGraph =
    typeof program === "string" && typeof name === "string"
      ? [{ label: "Show in the graph", href: linkTo("graph-viewer", { program, node: name, view: "around" }) }]
      : [];
  return [...inGraph, ...findLinks(row, data)];
}
