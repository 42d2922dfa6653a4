/** The modules of a model, as an icicle chart and as a table. */
import { useMemo } from "preact/hooks";
import type { Report, ToolAnswer } from "../../api";
import { CATEGORY_COLOUR, inkOn, mix } from "../../design/colours";
import { palette } from "../../design/theme";
import { duration, percent } from "../../format";
import { findInTimeline } from "../../links";
import { route, setParams } from "../../router";
import { tableOf } from "../../sections";
import { Card, Segmented } from "../../ui/basics";
import { hint } from "../../ui/hint";
import { Icon } from "../../ui/icons";
import { Findings } from "../shared/Findings";
import { TableCard } from "../shared/sections";
import { ToolPage } from "../shared/ToolPage";
import { type Block, icicle, type Measure, type ModuleRow, pathTo } from "./icicle";

interface ModulesReport extends Report {
  readonly rows?: readonly (ModuleRow & { readonly depth: number })[];
  readonly unassigned_device_us: number | null;
}

export default function ModulesPage() {
  return <ToolPage<"modules", ModulesReport> tool="modules">{(answer) => <Modules {...answer} />}</ToolPage>;
}

function Modules({ report, sections }: ToolAnswer<"modules", ModulesReport>) {
  const rows = report.rows ?? [];
  const section = tableOf(sections, "rows");
  return (
    <>
      <Findings lines={[ownTimeSentence(rows)]} />
      {rows.length > 0 && <IcicleCard rows={rows} unassigned_us={report.unassigned_device_us} />}
      <TableCard
        section={section}
        tool="modules"
        id="modules"
        main
        height="page"
        columns={usual(rows)}
        indent={(row) => rows[row]?.depth ?? 0}
        links={(row) => links(rows[row])}
      />
    </>
  );
}

/** Which layer has most time of its own. */
function ownTimeSentence(rows: readonly ModuleRow[]): string {
  const onDevice = rows.some((row) => row.device_self_us > 0);
  const own = (row: ModuleRow) => (onDevice ? row.device_self_us : row.host_self_us);
  const most = [...rows].sort((a, b) => own(b) - own(a))[0];
  if (!most || !(own(most) > 0)) return "";
  const place = onDevice ? "device" : "host";
  const calls = most.calls === 1 ? "one call" : `${most.calls.toLocaleString("en-US")} calls`;
  return `\`${most.module}\` has most ${place} time of its own: ${duration(own(most) / 1e3)} in ${calls}`;
}

/** Without a backward pass in the trace, or without a device, those columns are zeros. */
function usual(rows: readonly ModuleRow[]): string[] {
  const hidden = ["id", "parent", "depth"];
  const zero = (name: string) =>
    name.endsWith("_us") && rows.every((row) => (row as unknown as Record<string, unknown>)[name] === 0);
  return Object.keys(rows[0] ?? {}).filter((name) => !hidden.includes(name) && !zero(name));
}

function links(row: ModuleRow | undefined) {
  return row ? [{ label: "Find this module in the timeline", href: findInTimeline(row.module) }] : [];
}

const LEVEL = 30;

function IcicleCard({ rows, unassigned_us }: { rows: readonly ModuleRow[]; unassigned_us: number | null }) {
  const params = route.value.params;
  const hasDevice = rows.some((row) => row.device_us > 0);
  const measure: Measure = params.by === "host" || !hasDevice ? "host" : "device";
  const focus = params.module === undefined ? null : Number(params.module);
  const path = useMemo(() => pathTo(rows, focus), [rows, focus]);
  const inside = path.at(-1)?.id ?? null;
  const blocks = useMemo(() => icicle(rows, measure, inside), [rows, measure, inside]);
  const depth = Math.max(0, ...blocks.map((block) => block.level)) + 1;
  return (
    <Card
      title="Time by module"
      note={
        unassigned_us
          ? `${duration(unassigned_us / 1e3)} of device time belong to no module`
          : "click a module to zoom in"
      }
      actions={
        hasDevice && (
          <Segmented
            label="Time"
            value={measure}
            options={[
              { value: "device", label: "Device time" },
              { value: "host", label: "Host time" },
            ]}
            onChange={(value) => setParams({ by: value === "host" ? "host" : null })}
          />
        )
      }
    >
      {path.length > 0 && <Trail path={path} />}
      <div
        class="icicle"
        role="group"
        aria-label={`Modules by ${measure} time`}
        style={{ height: `${depth * LEVEL}px` }}
        data-marks={blocks.length}
      >
        {blocks.map((block) => (
          <BlockButton key={block.row.id} block={block} whole_us={blocks[0]?.level === 0 ? sumOfTop(blocks) : 0} />
        ))}
      </div>
      <p class="graph-foot flex wrap spread above-m minor muted">
        A stronger blue means that more of a module's time is its own and not its children's.
      </p>
    </Card>
  );
}

function sumOfTop(blocks: readonly Block[]): number {
  return blocks.reduce((sum, block) => sum + (block.level === 0 ? block.total_us : 0), 0);
}

function BlockButton({ block, whole_us }: { block: Block; whole_us: number }) {
  const { row, total_us, self_us } = block;
  const own = total_us > 0 ? self_us / total_us : 0;
  const colour = mix(
    mix(CATEGORY_COLOUR.device_compute, palette.value.surface, 0.72),
    CATEGORY_COLOUR.device_compute,
    Math.min(1, Math.max(0, own)),
  );
  const share = percent(whole_us > 0 ? (100 * total_us) / whole_us : 0);
  const text = `total ${duration(total_us / 1e3)}, ${share}; self ${duration(self_us / 1e3)}`;
  const calls = row.calls === 1 ? "called once" : `called ${row.calls.toLocaleString("en-US")} times`;
  return (
    <button
      type="button"
      class="icicle-block cut minor"
      style={{
        left: `${block.left * 100}%`,
        width: `${block.width * 100}%`,
        top: `${block.level * LEVEL}px`,
        background: colour,
        color: inkOn(colour),
      }}
      aria-label={`${row.module}: ${text}`}
      onClick={() => setParams({ module: String(row.id) }, "push")}
      {...hint(row.module, `${calls}. Self is the time in which none of its children runs.`, text)}
    >
      {block.width > 0.03 && row.module}
    </button>
  );
}

function Trail({ path }: { path: readonly ModuleRow[] }) {
  const last = path.at(-1) as ModuleRow;
  return (
    <nav class="trail row wrap gap-s below-m" aria-label="Place in the model">
      <button type="button" class="button quiet" onClick={() => setParams({ module: null }, "push")}>
        All modules
      </button>
      {path.map((row) => (
        <span key={row.id}>
          <Icon name="right" size={14} />
          <button
            type="button"
            class="button quiet"
            aria-current={row === last ? "location" : undefined}
            onClick={() => setParams({ module: String(row.id) }, "push")}
          >
            {row.module}
          </button>
        </span>
      ))}
      <a class="button" href={findInTimeline(last.module)}>
        Find in the timeline <Icon name="arrow" size={14} />
      </a>
    </nav>
  );
}
