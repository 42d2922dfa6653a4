/** How near each op comes to what its device can do: the roofline, and the rows behind it. */

import { useMemo } from "preact/hooks";
import type { ToolAnswer } from "../../api";
import { Chart } from "../../charts/Chart";
import {
  drawable,
  isAboveRoof,
  type Roof,
  type RoofPoint,
  rate,
  rooflineChart,
  usedRoofs,
} from "../../charts/roofline";
import { palette } from "../../design/theme";
import { duration, percent } from "../../format";
import { findInTimeline } from "../../links";
import { linkTo, route, setParams } from "../../router";
import { docOf, figuresOf, type RowOf, tableOf } from "../../sections";
import { answerAddress } from "../../session";
import { type TableData, toRows } from "../../table/model";
import { useRows } from "../../table/rows";
import { termText } from "../../terms";
import { Card, Empty, Segmented } from "../../ui/basics";
import { Choice, IconButton } from "../../ui/controls";
import { hint } from "../../ui/hint";
import { Icon } from "../../ui/icons";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import { shapesText } from "../shared/names";
import { FiguresCard, findLinks, TableCard } from "../shared/sections";

const MOST_POINTS = 3000;

/** A share of the time below which nobody asks what limits it. */
const UNKNOWN_FROM = 0.05;

/** How much of the ops' time is limited by what, and how near the longest one comes to its limit. */
function limitsSentences(rows: readonly RowOf<"roofline", "rows">[]): readonly string[] {
  const ops = rows.filter((row) => row.kind === "op" && Number(row.self_us ?? 0) > 0);
  const total = ops.reduce((sum, row) => sum + Number(row.self_us), 0);
  const bounds = new Map<string, number>();
  for (const row of ops)
    if (row.bound_by) bounds.set(row.bound_by, (bounds.get(row.bound_by) ?? 0) + Number(row.self_us));
  const [most] = [...bounds].sort((one, other) => other[1] - one[1]);
  const longest = [...ops].sort((one, other) => Number(other.self_us) - Number(one.self_us))[0];
  if (!most || !longest) return [];
  const share = (part: number) => percent((100 * part) / total);
  const near =
    longest.efficiency_percent == null
      ? `The longest op, \`${longest.name}\`, has no known operations or bytes`
      : `The longest op, \`${longest.name}\`, reaches ${percent(longest.efficiency_percent)} of its limit`;
  const unknown = total - [...bounds.values()].reduce((sum, part) => sum + part, 0);
  const limit = termText(most[0]).toLowerCase();
  if (2 * unknown > total)
    return [
      `What limits ${share(unknown)} of the ops’ time is not known; ${share(most[1])} is limited by ${limit}`,
      near,
    ];
  return [
    `${share(most[1])} of the ops’ time is limited by ${limit}`,
    ...(unknown >= UNKNOWN_FROM * total ? [`What limits ${share(unknown)} of it is not known`] : []),
    near,
  ];
}

export default function RooflineView({ report, sections }: ToolAnswer<"roofline">) {
  return (
    <>
      <Findings
        lines={limitsSentences(report.rows ?? [])}
        meaning={hint("Share of the ops’ time", docOf(tableOf(sections, "rows"), "bound_by"))}
      />
      <RooflineCard report={report} sections={sections} />
      <TableCard
        section={tableOf(sections, "rows")}
        main
        columns={usualColumns(report.rows ?? [])}
        texts={TEXTS}
        links={opLinks}
      />
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
  const params = route.value.params;
  const shown = params.show === "programs" ? "program" : "op";
  const rows = useRows(tableOf(sections, "rows"), (suffix) => answerAddress("roofline", suffix));
  const all = useMemo(() => (rows.state === "ready" ? toRows<RoofPoint>(rows.data) : []), [rows]);
  const ofKind = useMemo(() => all.filter((point) => point.kind === shown), [all, shown]);
  const points = useMemo(() => drawable(ofKind).slice(0, MOST_POINTS), [ofKind]);
  const devices = [...new Set((report.roofs ?? []).map((roof) => String(roof.device)))];
  const device = devices.find((each) => each === params.device) ?? devices[0];
  const roofs = useMemo(
    () => usedRoofs((report.roofs ?? []).filter((roof) => roof.device === device) as readonly Roof[], points),
    [report, device, points],
  );
  const picked = points.find((point) => String(point.rank) === params.at) ?? null;
  const look = palette.value;
  const plot = useMemo(
    () => rooflineChart(points, roofs, { palette: look, picked: picked?.rank ?? null }),
    [points, roofs, look, picked],
  );
  const above = points.filter(isAboveRoof).length;
  const idle = ofKind.filter(({ gflop_per_s: rate }) => rate === 0).length;
  const unknown = ofKind.length - drawable(ofKind).length - idle;
  const small = drawable(ofKind).length - points.length;
  const some = all.some((point) => point.kind === "program");
  return (
    <Card
      title="Roofline"
      note={device ?? "the device's peaks are unknown, so there are no roofs"}
      actions={
        <>
          {devices.length > 1 && (
            <Choice
              label="Device"
              value={device ?? ""}
              options={devices}
              onChange={(chosen) => setParams({ device: chosen })}
            />
          )}
          {some && (
            <Segmented
              label="What is drawn"
              value={shown}
              options={[
                { value: "op", label: "Ops" },
                { value: "program", label: "Programs" },
              ]}
              onChange={(value) => setParams({ show: value === "program" ? "programs" : null, at: null })}
            />
          )}
        </>
      }
    >
      {points.length === 0 ? (
        <Empty
          title="No op has a place in the chart"
          text="neither operations nor bytes of any op are known; for PyTorch, record with record_shapes=True"
        />
      ) : (
        <>
          <Chart
            label={
              `${points.length} ${shown === "op" ? "ops" : "programs"} ` +
              "by operations per second and operations per byte"
            }
            plot={plot}
            height={420}
            marks={points.length}
            onPick={(index) => setParams({ at: String(points[index]?.rank) })}
          />
          <div class="graph-foot flex wrap spread above-m minor">
            <span class="muted">
              Larger marks take more time.{" "}
              {above > 0 &&
                `▲ ${above === 1 ? "one is above a roof: it" : `${above} are above a roof: they`} ` +
                  "did less than is counted. "}
              {onlyInTable(points.length, ofKind.length, { idle, unknown, small })}{" "}
              {!picked && "Click a mark to see its row."}
            </span>
          </div>
        </>
      )}
      {picked && <Picked point={picked} />}
    </Card>
  );
}

/** How many of all have a mark, and why the others have none. */
function onlyInTable(drawn: number, all: number, others: { idle: number; unknown: number; small: number }): string {
  const counted = (count: number, what: string) => (count > 0 ? [`${count.toLocaleString("en-US")} ${what}`] : []);
  const why = [
    ...counted(others.idle, "only move data"),
    ...counted(others.unknown, "have no known operations or bytes"),
    ...counted(others.small, "take less time"),
  ];
  return why.length
    ? `${drawn.toLocaleString("en-US")} of ${all.toLocaleString("en-US")} have a mark: ${why.join(", ")}.`
    : "";
}

function Picked({ point }: { point: RoofPoint }) {
  const showRow = () => {
    setParams({ "rows.filter": `rank = ${point.rank}` });
    document.querySelector('[data-table="rows"]')?.scrollIntoView({ behavior: "smooth", block: "center" });
  };
  return (
    <div class="picked" role="status">
      <strong>{point.name}</strong>
      <span>{duration(point.self_us / 1e3)}</span>
      <span class="muted">
        {rate(point.gflop_per_s)}
        {point.roof_gflop_per_s !== null && ` of at most ${rate(point.roof_gflop_per_s)}`}
        {point.efficiency_percent !== null && `, ${percent(point.efficiency_percent)} of its limit`}
      </span>
      <button type="button" class="button" onClick={showRow}>
        Show its row <Icon name="arrow" size={16} />
      </button>
      {point.kind === "op" && (
        <a class="button quiet" href={findInTimeline(point.name)}>
          In the timeline <Icon name="arrow" size={16} />
        </a>
      )}
      <IconButton
        icon="close"
        label="Clear the selection"
        onClick={() => setParams({ at: null, "rows.filter": null })}
      />
    </div>
  );
}

function opLinks(row: number, data: TableData) {
  const [program, name] = [data.columns.program?.[row], data.columns.name?.[row]];
  if (data.columns.kind?.[row] !== "op") return [];
  const rank = data.columns.rank?.[row];
  const inChart = { label: "Show in the chart", href: linkTo("roofline", { at: String(rank) }) };
  const inGraph =
    typeof program === "string" && typeof name === "string"
      ? [{ label: "Show in the graph", href: linkTo("graph-viewer", { program, node: name, view: "around" }) }]
      : [];
  return [inChart, ...inGraph, ...findLinks(row, data)];
}
