/** Every kernel and the op it belongs to. */
import { useMemo } from "preact/hooks";
import { figuresTitled, type Report, type Section, type ToolAnswer, tableTitled } from "../api";
import type { Slice } from "../charts/pie";
import { CATEGORY_COLOUR, categoryOf, mix, type Palette, shades } from "../design/colours";
import { palette } from "../design/theme";
import { decimal } from "../format";
import { setParams } from "../router";
import { Card, FigureRow } from "../ui/basics";
import { JoinedCard, useJoined } from "./joined";
import { LAUNCH_LABELS } from "./labels";
import { shortKernel } from "./names";
import { Ring } from "./Ring";
import type { Row } from "./reports";
import { TableCard, whole } from "./sections";
import { ToolPage } from "./ToolPage";

interface KernelShare extends Row {
  readonly kernel: string;
  readonly occurrences: number;
  readonly total_us: number;
  readonly percent: number;
}

interface KernelReport extends Report {
  readonly rows?: readonly Row[];
  readonly by_kernel?: readonly KernelShare[];
}

export default function KernelsPage() {
  return <ToolPage<KernelReport> tool="kernel-stats">{(answer) => <Kernels {...answer} />}</ToolPage>;
}

/** What matters first: a narrow window shows only as many as it has room for. */
const COLUMNS = [
  ...[
    "rank",
    "kernel",
    "op",
    "occurrences",
    "total_us",
    "total_percent",
    "avg_us",
    "uses_tensor_core",
    "occupancy_percent",
    "min_us",
    "max_us",
  ],
  ...["tensor_core_eligible", "registers_per_thread", "shared_memory_bytes", "block_dim", "grid_dim"],
];

const LABELS = {
  occurrences: "Count",
  registers_per_thread: "Registers",
  shared_memory_bytes: "Shared",
  block_dim: "Block",
  grid_dim: "Grid",
  tensor_core_eligible: "TC eligible",
  uses_tensor_core: "TC used",
};
const TEXTS = { kernel: shortKernel };

function Kernels({ report, sections }: ToolAnswer<KernelReport>) {
  const look = palette.value;
  const slices = useMemo(() => slicesOf(report, look), [report, look]);
  const rows = useJoined("kernel-stats", report.rows, sections);
  return (
    <>
      <div class="two uneven">
        <Card title="Time by kernel" note="of the time of all kernels">
          {slices.length > 0 && (
            <Ring
              title=""
              slices={slices}
              size={220}
              short={shortKernel}
              onPick={(name) => setParams({ "kernels.filter": `kernel="${name}"` })}
            />
          )}
        </Card>
        <FactsCard sections={sections} />
      </div>
      <JoinedCard
        title="Kernels by op"
        tool="kernel-stats"
        sections={sections}
        id="kernels"
        rows={rows}
        columns={COLUMNS}
        labels={LABELS}
        texts={TEXTS}
      />
      <TableCard
        section={whole(tableTitled(sections, "Kernels of all ops"), report.by_kernel)}
        tool="kernel-stats"
        id="all"
        heading="Kernels, whatever op launched them"
        labels={LABELS}
        texts={TEXTS}
      />
      <TableCard section={tableTitled(sections, "Launches by stream")} tool="kernel-stats" id="streams" />
      <Card title="How the ops of kernels are known">
        <FigureRow
          section={figuresTitled(sections, "How the ops")}
          labels={{
            device_time_us: "Device time",
            own_percent: "Said by the kernel",
            graph_percent: "From its graph",
            call_percent: "From the launching call",
            around_percent: "From the op around",
            unattributed_percent: "Unknown",
          }}
        />
      </Card>
    </>
  );
}

function FactsCard({ sections }: { sections: readonly Section[] }) {
  return (
    <Card title="Tensor cores" note="of the time of all kernels">
      <FigureRow
        section={figuresTitled(sections, "Tensor cores")}
        labels={{
          uses_percent: "On tensor cores",
          eligible_percent: "Eligible",
          eligible_unused_percent: "Eligible, not used",
          unknown_percent: "Unknown",
        }}
      />
      <h3>Launches</h3>
      <FigureRow section={figuresTitled(sections, "Launches")} labels={LAUNCH_LABELS} />
    </Card>
  );
}

function slicesOf(report: KernelReport, look: Palette): Slice[] {
  const found = report.by_kernel ?? [];
  const named = found.filter((share) => share.kernel !== "others");
  const colours = shades(
    named.map((share) => categoryOf(share.kernel)),
    look.surface,
  );
  const grey = mix(CATEGORY_COLOUR.other, look.surface, 0.35);
  return found.map((share) => ({
    name: share.kernel,
    value: share.total_us,
    percent: share.percent,
    colour: share.kernel === "others" ? grey : (colours[named.indexOf(share)] as string),
    text: shareText(share),
  }));
}

function shareText({ total_us, occurrences }: KernelShare): string {
  return `${decimal(total_us, total_us < 100 ? 2 : 0)} µs, ${occurrences.toLocaleString("en-US")} times`;
}
