/** Every op, on hosts and devices: shares as rings, all of them as a table. */
import { useMemo } from "preact/hooks";
import { figuresTitled, tableTitled, type Report, type ToolAnswer } from "../api";
import { categoryOf, CATEGORY_COLOUR, mix, shades, type Palette } from "../design/colours";
import { palette } from "../design/theme";
import { decimal } from "../format";
import { route, setParams } from "../router";
import { Card, FigureRow, Segmented } from "../ui/basics";
import type { Slice } from "../charts/pie";
import { Ring, withRest } from "./Ring";
import { TableCard } from "./sections";
import { ToolPage } from "./ToolPage";

interface Share {
  readonly where: "device" | "host";
  readonly by: "type" | "op";
  readonly name: string;
  readonly self_us: number;
  readonly percent: number;
  readonly percent_with_idle: number;
}

interface OpsReport extends Report {
  readonly distributions?: readonly Share[];
  readonly totals: Readonly<Record<string, number>>;
}

const RINGS = [
  { where: "device", by: "type", title: "On devices, by type" },
  { where: "device", by: "op", title: "On devices, by op" },
  { where: "host", by: "type", title: "On hosts, by type" },
  { where: "host", by: "op", title: "On hosts, by op" },
] as const;

export default function OpsPage() {
  const idle = route.value.params["idle"] === "in" ? "in" : "out";
  return (
    <ToolPage<OpsReport>
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

function Ops({ report, sections, idle }: ToolAnswer<OpsReport> & { idle: boolean }) {
  const look = palette.value;
  const rings = useMemo(() => RINGS.map((each) => ({ ...each, slices: slicesOf(report, each.where, each.by, idle, look) })).filter((each) => each.slices.length > 0), [report, idle, look]);
  const table = tableTitled(sections, "Ops");
  const columns = useMemo(() => columnsFor(idle), [idle]);
  const find = (by: "type" | "op", where: string) => (name: string) => setParams({ "ops.filter": `where=${where} ${by === "type" ? "type" : "name"}="${name}"` });
  return (
    <>
      <Card title="Self time" note={idle ? "shares of all time, idle time included" : "shares of the time in which something ran"}>
        <div class="rings">
          {rings.map((each) => (
            <Ring key={each.title} title={each.title} slices={each.slices} onPick={find(each.by, each.where)} />
          ))}
        </div>
        <FigureRow section={figuresTitled(sections, "Totals")} />
      </Card>
      <TableCard
        section={table}
        tool="op-stats"
        id="ops"
        heading="All ops"
        main
        height="page"
        columns={columns}
        mark={(row) => CATEGORY_COLOUR[categoryOf(String(table?.columns?.["type"]?.[row] ?? ""), table?.columns?.["where"]?.[row] === "host" ? "host" : "device")]}
      />
      <TableCard section={tableTitled(sections, "Rates")} tool="op-stats" id="rates" heading="Rates of ops" />
    </>
  );
}

function columnsFor(idle: boolean): string[] {
  const share = idle ? ["self_percent_with_idle", "cumulative_self_percent_with_idle"] : ["self_percent", "cumulative_self_percent"];
  return ["rank", "where", "type", "name", "occurrences", "total_us", "avg_us", "total_self_us", "avg_self_us", ...share];
}

function slicesOf(report: OpsReport, where: "device" | "host", by: "type" | "op", idle: boolean, look: Palette): Slice[] {
  const text = (us: number) => `${decimal(us, us < 100 ? 2 : 0)} µs`;
  const found = (report.distributions ?? []).filter((share) => share.where === where && share.by === by);
  const colours = shades(found.map((share) => categoryOf(share.name, where)), look.surface);
  const slices = found.map((share, index) => ({
    name: share.name,
    value: share.self_us,
    percent: idle ? share.percent_with_idle : share.percent,
    colour: colours[index] as string,
    text: text(share.self_us),
  }));
  const some = withRest(slices, 9, mix(CATEGORY_COLOUR.other, look.surface, 0.45), text);
  const idleTime = report.totals[`${where}_idle_us`] ?? 0;
  if (!idle || !(idleTime > 0) || !slices.length) return some;
  const busy = slices.reduce((sum, slice) => sum + (slice.percent ?? 0), 0);
  return [{ name: "idle", value: idleTime, percent: 100 - busy, colour: mix(CATEGORY_COLOUR.other, look.surface, 0.6), text: text(idleTime) }, ...some];
}
