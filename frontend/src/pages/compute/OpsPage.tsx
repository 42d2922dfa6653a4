/** The time of ops and of their types, on hosts and devices: the largest as bars, all of them as a table. */

import { useCallback, useMemo } from "preact/hooks";
import type { Figures, ToolAnswer } from "../../api";
import { CATEGORY_COLOUR, categoryOfOp, mix } from "../../design/colours";
import { palette } from "../../design/theme";
import { percent } from "../../format";
import { findInTimeline } from "../../links";
import { sharesSentence } from "../../names";
import { formatHash, route, withParams } from "../../router";
import { fieldOf, figuresOf, type RowOf, tableOf } from "../../sections";
import type { TableData } from "../../table/model";
import { Card, FigureRow } from "../../ui/basics";
import { hint } from "../../ui/hint";
import { ParamChoice } from "../../ui/ParamChoice";
import { RankedCard, type RankedRow } from "../shared/Bars";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import { ownRows } from "../shared/ownRows";
import type { Row } from "../shared/reports";
import { TableCard } from "../shared/sections";
import { ToolPage } from "../shared/ToolPage";
import { ofAllDevices, TELLING_PERCENT } from "../summary/topOps";

type Share = RowOf<"op-stats", "distributions">;

export default function OpsPage() {
  const idle = route.value.params.idle === "in" ? "in" : "out";
  return (
    <ToolPage
      tool="op-stats"
      controls={
        <ParamChoice label="Idle time" name="idle" value={idle} options={{ out: "Without idle", in: "With idle" }} />
      }
    >
      {(answer) => <Ops {...answer} idle={idle === "in"} />}
    </ToolPage>
  );
}

type By = "type" | "op";
type Side = "device" | "host";

function Ops({ report, sections, idle }: ToolAnswer<"op-stats"> & { idle: boolean }) {
  const look = palette.value;
  const shares = report.distributions ?? [];
  const places = (["device", "host"] as const).filter((each) => shares.some((share) => share.side === each));
  const side = places.find((each) => each === route.value.params.side) ?? places[0] ?? "host";
  const usual = usualFold(shares, side);
  const asked = route.value.params.by;
  const by = asked === "op" || asked === "type" ? asked : usual;
  const slices = slicesOf(shares, side, by, idle);
  const columns = useMemo(() => columnsFor(idle), [idle]);
  const complete = useCallback(
    (data: TableData) => (idle ? (report.idle ?? []).reduce(insertIdle, data) : data),
    [idle, report],
  );
  const types = by === "op" ? typesOf(report.rows ?? [], side) : null;
  const hasTwin = ({ name }: Slice) => slices.filter((each) => each.name === name).length > 1;
  const typeOf = ({ name, ms }: Slice) =>
    report.rows?.find(
      (row) => row.side === side && row.name === name && Math.abs(Number(row.total_self_us) / 1e3 - ms) < 1e-9,
    )?.type;
  const colourOf = (name: string) => colourOfBar({ name, type: types?.get(name) ?? name }, side, look.surface);
  const rest = slices.find(({ name }) => name === "others");
  const ofTypes = useCallback(
    (data: TableData) => ownRows(data, { side, by: "type" }, (name) => idle || name !== "IDLE"),
    [side, idle],
  );
  const of = `${side} time${idle ? ", idle time included" : ""}`;
  return (
    <>
      <Findings
        lines={[
          sharesSentence(
            slices.filter(({ name }) => name !== "others"),
            `the ${of}`,
          ),
        ]}
        meaning={hint("Share of self time", fieldOf(tableOf(sections, "distributions"), "percent").doc)}
      />
      <RankedCard
        title={by === "type" ? "Self time by op type" : "Self time by op"}
        note={[of, side === "device" && ofAllDevices()].filter(Boolean).join(", ")}
        actions={
          <>
            <ParamChoice label="Fold" name="by" value={by} usual={usual} options={FOLDS} how="push" />
            {places.length > 1 && (
              <ParamChoice
                label="Place"
                name="side"
                value={side}
                options={{ device: "On devices", host: "On hosts" }}
              />
            )}
          </>
        }
        field={fieldOf(tableOf(sections, "distributions"), "self_us")}
        rows={slices
          .filter(({ name, percent: share }) => name !== "others" && share !== 0)
          .map((slice) => ({
            ...barOf(slice, side, by, colourOf(slice.name)),
            note: by === "op" && hasTwin(slice) ? typeOf(slice) : null,
          }))}
      >
        {rest && rest.percent !== 0 && <p class="muted">{`All others: ${percent(rest.percent ?? 0)}, in the table`}</p>}
      </RankedCard>
      {by === "type" ? (
        <TableCard
          key="types"
          section={tableOf(sections, "distributions")}
          id="types"
          heading={`Types ${side === "host" ? "on hosts" : "on devices"}`}
          main
          complete={ofTypes}
          columns={["name", "self_us", "percent"]}
        />
      ) : (
        <TableCard
          section={tableOf(sections, "rows")}
          id="ops"
          heading="All ops"
          main
          columns={columns}
          complete={complete}
          mark={(row, data) =>
            CATEGORY_COLOUR[
              categoryOfOp(
                String(data.columns.type?.[row] ?? ""),
                String(data.columns.name?.[row] ?? ""),
                data.columns.side?.[row] === "host" ? "host" : "device",
              )
            ]
          }
        />
      )}
      {(report.graphs ?? []).length > 0 && <TableCard section={tableOf(sections, "graphs")} />}
      <Totals section={figuresOf(sections, "totals")} />
    </>
  );
}

const FOLDS: Readonly<Record<By, string>> = { op: "Ops", type: "Types" };

/** By type where no op takes much: unrolled layers have hundreds that are alike. */
function usualFold(shares: readonly Share[], side: Side): By {
  const ops = shares.filter((share) => share.side === side && share.by === "op" && !isRest(share.name));
  const largest = Math.max(...ops.map((share) => share.percent ?? 0));
  return ops.length && largest < TELLING_PERCENT ? "type" : "op";
}

/** A bar has its category's own colour. */
function colourOfBar({ name, type }: { name: string; type: string }, side: Side, surface: string): string {
  const isWork = name !== "idle" && name !== "others";
  return isWork ? CATEGORY_COLOUR[categoryOfOp(type, name, side)] : mix(CATEGORY_COLOUR.other, surface, 0.35);
}

/** The rows of a type in the table below, or the longest occurrence of an op. */
function barOf(slice: Slice, side: Side, by: By, colour: string): RankedRow {
  const isNamed = slice.name !== "idle" && slice.name !== "others";
  const rows = { "ops.filter": `side=${side} type="${slice.name}"` };
  const href = by === "op" ? findInTimeline(slice.name) : formatHash(withParams(route.value, rows));
  return {
    key: `${slice.name} ${slice.ms}`,
    label: slice.name,
    ms: slice.ms,
    percent: slice.percent,
    colour,
    href: isNamed ? href : null,
  };
}

function Totals({ section }: { section: Figures }) {
  const hasDevices = section.values.device_ops !== 0;
  const names = section.fields.map((field) => field.name).filter((name) => hasDevices || name.startsWith("host"));
  return (
    <More title="Totals">
      <Card>
        <FigureRow section={section} names={names} />
      </Card>
    </More>
  );
}

/** The ops with a side's idle time as a row at its place; it has no figures that only ops have. */
function insertIdle(data: TableData, idle: RowOf<"op-stats", "idle">): TableData {
  const side = data.columns.side ?? [];
  const first = side.indexOf(idle.side);
  if (first < 0) return data;
  const at = Math.min(first + (idle.rank_with_idle ?? 1) - 1, side.lastIndexOf(idle.side) + 1);
  const known: Readonly<Record<string, unknown>> = { ...idle };
  const columns = Object.fromEntries(
    Object.entries(data.columns).map(([name, values]) => {
      const value = known[name] ?? null;
      return [name, [...values.slice(0, at), value, ...values.slice(at)]];
    }),
  );
  return { ...data, columns: columns as TableData["columns"], rowCount: data.rowCount + 1 };
}

function columnsFor(idle: boolean): string[] {
  const share = idle
    ? ["self_percent_with_idle", "cumulative_self_percent_with_idle"]
    : ["self_percent", "cumulative_self_percent"];
  const [before, after] = ["rank side type name occurrences total_self_us", "avg_self_us total_us avg_us"];
  return [...before.split(" "), ...share, ...after.split(" ")];
}

interface Slice {
  readonly name: string;
  readonly ms: number;
  readonly percent: number | null;
}

/** The report names what it left out of the largest "others", and idle time "IDLE". */
function slicesOf(all: readonly Share[], side: Side, by: By, idle: boolean): Slice[] {
  const found = all.filter((share) => share.side === side && share.by === by && (idle || share.name !== "IDLE"));
  if (found.every((share) => isRest(share.name))) return [];
  return [...found.filter((share) => !isRest(share.name)), ...found.filter((share) => isRest(share.name))].map(
    (share) => ({
      name: share.name === "IDLE" ? "idle" : (share.name ?? ""),
      ms: (share.self_us ?? 0) / 1e3,
      percent: (idle ? share.percent_with_idle : share.percent) ?? null,
    }),
  );
}

/** The type of each op; of several of one name that which takes longest, and therefore comes first. */
function typesOf(rows: readonly Row[], side: "device" | "host"): Map<unknown, string> {
  const types = new Map<unknown, string>();
  for (const row of rows) if (row.side === side && !types.has(row.name)) types.set(row.name, String(row.type ?? ""));
  return types;
}

function isRest(name: string | null): boolean {
  return name === "IDLE" || name === "others";
}
