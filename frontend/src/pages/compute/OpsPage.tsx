/** Every op, on hosts and devices: shares as rings, all of them as a table. */
import { useMemo } from "preact/hooks";
import type { Report, ToolAnswer } from "../../api";
import type { Slice } from "../../charts/pie";
import { CATEGORY_COLOUR, categoryOfOp, mix, type Palette, shades } from "../../design/colours";
import { palette } from "../../design/theme";
import { decimal } from "../../format";
import { route, setParams } from "../../router";
import { figuresOf, type RowOf, tableOf } from "../../sections";
import { Card, FigureRow, Segmented } from "../../ui/basics";
import { Ring } from "../shared/Ring";
import type { Row } from "../shared/reports";
import { TableCard } from "../shared/sections";
import { ToolPage } from "../shared/ToolPage";

type Share = RowOf<"op-stats", "distributions">;

interface OpsReport extends Report {
  readonly distributions?: readonly Share[];
  readonly rows?: readonly RowOf<"op-stats", "rows">[];
  readonly totals: Readonly<Record<string, number>>;
}

const RINGS = [
  { where: "device", by: "type", title: "On devices, by type" },
  { where: "device", by: "op", title: "On devices, by op" },
  { where: "host", by: "type", title: "On hosts, by type" },
  { where: "host", by: "op", title: "On hosts, by op" },
] as const;

export default function OpsPage() {
  const idle = route.value.params.idle === "in" ? "in" : "out";
  return (
    <ToolPage<"op-stats", OpsReport>
      tool="op-stats"
      controls={
        <Segmented
          label="Idle time"
          value={idle}
          options={[
            { value: "out", label: "Without idle" },
            { value: "in", label: "With idle" },
          ]}
          onChange={(value) => setParams({ idle: value === "in" ? "in" : null })}
        />
      }
    >
      {(answer) => <Ops {...answer} idle={idle === "in"} />}
    </ToolPage>
  );
}

function Ops({ report, sections, idle }: ToolAnswer<"op-stats", OpsReport> & { idle: boolean }) {
  const look = palette.value;
  const rings = useMemo(
    () =>
      RINGS.map((each) => ({ ...each, slices: slicesOf(report, each.where, each.by, idle, look) })).filter(
        (each) => each.slices.length > 0,
      ),
    [report, idle, look],
  );
  const columns = useMemo(() => columnsFor(idle), [idle]);
  const totals = figuresOf(sections, "totals");
  const hasDevices = totals?.values.device_ops !== 0;
  const find = (by: "type" | "op", where: string) => (name: string) => {
    if (name !== "idle" && name !== "others")
      setParams({ "ops.filter": `where=${where} ${by === "type" ? "type" : "name"}="${name}"` });
  };
  return (
    <>
      <Card
        title="Self time"
        note={idle ? "shares of all time, including idle time" : "shares of the time in which something ran"}
      >
        <div class="rings">
          {rings.map((each) => (
            <Ring key={each.title} title={each.title} slices={each.slices} onPick={find(each.by, each.where)} />
          ))}
        </div>
        <FigureRow
          section={totals}
          {...(hasDevices
            ? {}
            : { names: totals?.fields.map((field) => field.name).filter((name) => name.startsWith("host")) ?? [] })}
        />
      </Card>
      <TableCard
        section={tableOf(sections, "rows")}
        tool="op-stats"
        id="ops"
        heading="All ops"
        main
        height="page"
        columns={columns}
        mark={(row, data) =>
          CATEGORY_COLOUR[
            categoryOfOp(
              String(data.columns.type?.[row] ?? ""),
              String(data.columns.name?.[row] ?? ""),
              data.columns.where?.[row] === "host" ? "host" : "device",
            )
          ]
        }
      />
    </>
  );
}

function columnsFor(idle: boolean): string[] {
  const share = idle
    ? ["self_percent_with_idle", "cumulative_self_percent_with_idle"]
    : ["self_percent", "cumulative_self_percent"];
  return [
    "rank",
    "where",
    "type",
    "name",
    "occurrences",
    "total_self_us",
    ...share,
    "avg_self_us",
    "total_us",
    "avg_us",
  ];
}

/** The report names what it left out of the largest "others", and idle time "IDLE". */
function slicesOf(
  report: OpsReport,
  where: "device" | "host",
  by: "type" | "op",
  idle: boolean,
  look: Palette,
): Slice[] {
  const found = (report.distributions ?? []).filter((share) => share.where === where && share.by === by);
  const shown = found.filter((share) => idle || share.name !== "IDLE");
  const named = shown.filter((share) => !isRest(share.name));
  const types = by === "op" ? typesOf(report.rows ?? [], where) : new Map<unknown, string>();
  const colours = shades(
    named.map(({ name }) => categoryOfOp(types.get(name) ?? name ?? "", name ?? "", where)),
    look.surface,
  );
  const slice = (share: Share, colour: string): Slice => ({
    name: share.name === "IDLE" ? "idle" : (share.name ?? ""),
    value: share.self_us ?? 0,
    percent: idle ? share.percent_with_idle : share.percent,
    colour,
    text: `${decimal(share.self_us ?? 0, (share.self_us ?? 0) < 100 ? 2 : 0)} µs`,
  });
  const rest = shown
    .filter((share) => isRest(share.name))
    .map((share) => slice(share, mix(CATEGORY_COLOUR.other, look.surface, share.name === "IDLE" ? 0.65 : 0.35)));
  return named.length ? [...named.map((share, index) => slice(share, colours[index] as string)), ...rest] : [];
}

/** The type of each op; of several of one name that which takes longest, and therefore comes first. */
function typesOf(rows: readonly Row[], where: "device" | "host"): Map<unknown, string> {
  const types = new Map<unknown, string>();
  for (const row of rows) if (row.where === where && !types.has(row.name)) types.set(row.name, String(row.type ?? ""));
  return types;
}

function isRest(name: string | null): boolean {
  return name === "IDLE" || name === "others";
}
