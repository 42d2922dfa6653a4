/** The modules of a model, as an icicle chart and as a table. */

import { useMemo } from "preact/hooks";
import type { Report, ToolAnswer } from "../../api";
import { Flame, Trail } from "../../charts/Flame";
import { CATEGORY_COLOUR, mix } from "../../design/colours";
import { palette } from "../../design/theme";
import { duration, percent } from "../../format";
import { findInTimeline } from "../../links";
import { route, setParams } from "../../router";
import { type RowOf, tableOf } from "../../sections";
import { type CallNode, type Calls, callsOf, flameOf, pathOf } from "../../timeline/tree";
import { Card } from "../../ui/basics";
import { Icon } from "../../ui/icons";
import { ParamChoice } from "../../ui/ParamChoice";
import { Findings } from "../shared/Findings";
import { TableCard } from "../shared/sections";

type Times = "host_us" | "host_self_us" | "device_us" | "device_self_us";
type ModuleRow = RowOf<"modules", "rows"> & Readonly<Record<"id" | "calls" | Times, number> & { module: string }>;

interface ModulesReport extends Report {
  readonly rows?: readonly (ModuleRow & { readonly depth: number })[];
  readonly unassigned_device_us: number | null;
}

export default function Modules({ report, sections }: ToolAnswer<"modules", ModulesReport>) {
  const rows = report.rows ?? [];
  const section = tableOf(sections, "rows");
  return (
    <>
      <Findings
        lines={[ownTimeSentence(rows), outsideSentence(rows, report.unassigned_device_us ?? 0)].filter(Boolean)}
      />
      {rows.length > 0 && <FlameCard rows={rows} />}
      <TableCard
        section={section}
        id="modules"
        main
        columns={usual(rows)}
        indent={(row) => rows[row]?.depth ?? 0}
        links={(row) => links(rows[row])}
      />
    </>
  );
}

/** Which kind of layer has most time of its own: one layer of twenty-four says little. */
function ownTimeSentence(rows: readonly ModuleRow[]): string {
  const onDevice = rows.some((row) => row.device_self_us > 0);
  const own = (row: ModuleRow) => (onDevice ? row.device_self_us : row.host_self_us);
  const kinds = new Map<string, { us: number; modules: Set<string> }>();
  for (const row of rows) {
    const kind = row.module.replace(/_\d+$/, "");
    const found = kinds.get(kind) ?? { us: 0, modules: new Set() };
    kinds.set(kind, { us: found.us + own(row), modules: found.modules.add(row.module) });
  }
  const all = [...kinds].sort(([, a], [, b]) => b.us - a.us);
  const total = all.reduce((sum, [, { us }]) => sum + us, 0);
  const [name, most] = all[0] ?? [];
  if (!name || !most || !(most.us > 0)) return "";
  const count = most.modules.size > 1 ? `The ${most.modules.size} ` : "";
  const takes = count ? "take" : "takes";
  const share = `${percent((100 * most.us) / total)} of the modules' ${onDevice ? "device" : "host"} time`;
  return `${count}\`${name}\` ${takes} ${share}, ${duration(most.us / 1e3)}`;
}

/** How much of the devices' time is in no module: what the table leaves out. */
function outsideSentence(rows: readonly ModuleRow[], unassigned_us: number): string {
  const inside = rows.reduce((sum, row) => sum + row.device_self_us + Number(row.backward_self_us ?? 0), 0);
  const whole = inside + unassigned_us;
  if (!whole || unassigned_us < 0.05 * whole) return "";
  const part = `${duration(unassigned_us / 1e3)} of the devices' ${duration(whole / 1e3)}`;
  return `${part} (${percent((100 * unassigned_us) / whole)}) belong to no module: Op and Kernel show what that is`;
}

/** Without a backward pass in the trace, or without a device, those columns are zeros. */
function usual(rows: readonly ModuleRow[]): string[] {
  const hidden = ["id", "parent", "depth"];
  const zero = (name: string) => name.endsWith("_us") && rows.every((row) => row[name as Times] === 0);
  return Object.keys(rows[0] ?? {}).filter((name) => !hidden.includes(name) && !zero(name));
}

function links(row: ModuleRow | undefined) {
  return row ? [{ label: "Find this module in the timeline", href: findInTimeline(row.module) }] : [];
}

/** The modules in the order of the model. */
function treeOf(rows: readonly ModuleRow[], place: "device" | "host"): Calls {
  const nodes = new Map(rows.map(({ id }, at) => [id, at]));
  const tree = {
    parent: rows.map(({ parent }) => (parent === null ? -1 : (nodes.get(parent) ?? -1))),
    name: rows.map(({ module }) => module),
    events: rows.map(({ calls }) => calls),
    total_ps: rows.map((row) => row[`${place}_us`] * PS_PER_US),
    self_ps: rows.map((row) => row[`${place}_self_us`] * PS_PER_US),
    left_out: 0,
  };
  return callsOf(tree, true);
}

const PS_PER_US = 1e6;

/** Stronger where more of the time is a module's own. */
function colourOfModule({ total, self }: CallNode): string {
  const { device_compute: full } = CATEGORY_COLOUR;
  return mix(mix(full, palette.value.surface, 0.72), full, total > 0 ? Math.min(1, Math.max(0, self / total)) : 0);
}

function FlameCard({ rows }: { rows: readonly ModuleRow[] }) {
  const params = route.value.params;
  const hasDevice = rows.some((row) => row.device_us > 0);
  const measure = params.by === "host" || !hasDevice ? "host" : "device";
  const tree = useMemo(() => treeOf(rows, measure), [rows, measure]);
  const focus = rows.findIndex((row) => String(row.id) === params.module);
  const path = pathOf(tree, focus);
  const last = path.at(-1);
  const blocks = useMemo(() => flameOf(tree, focus < 0 ? null : focus), [tree, focus]);
  const open = (at: number | null) => setParams({ module: at === null ? null : String(rows[at]?.id) }, "push");
  return (
    <Card
      title="Time by module"
      note="click a module to zoom in"
      actions={
        hasDevice && (
          <ParamChoice label="Time" name="by" value={measure} options={{ device: "Device time", host: "Host time" }} />
        )
      }
    >
      {last && (
        <Trail all="All modules" path={path} open={open}>
          <a class="button to-end" href={findInTimeline(last.name)}>
            Find in the timeline <Icon name="arrow" size={14} />
          </a>
        </Trail>
      )}
      <Flame
        label={`Modules by ${measure} time`}
        blocks={blocks}
        total={focus < 0 ? tree.total : (last?.total ?? tree.total)}
        write={(time) => duration(time / 1e9)}
        colourOf={colourOfModule}
        onPick={open}
      />
      <p class="graph-foot flex wrap spread above-m minor muted">
        A stronger blue: more of a module's time is its own.
      </p>
    </Card>
  );
}
