/** Every kernel and the op it belongs to. */
import { useMemo } from "preact/hooks";
import type { Report, ToolAnswer } from "../../api";
import type { Slice } from "../../charts/pie";
import { CATEGORY_COLOUR, categoryOf, mix, type Palette, shades } from "../../design/colours";
import { palette } from "../../design/theme";
import { duration } from "../../format";
import { findInTimeline } from "../../links";
import { setParams } from "../../router";
import { fieldOf, figuresOf, type RowOf, type Sections, tableOf } from "../../sections";
import { Card, FigureRow } from "../../ui/basics";
import { hint } from "../../ui/hint";
import { RankedBars } from "../shared/Bars";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import { sharesSentence, shortKernel, tellApart } from "../shared/names";
import { Ring } from "../shared/Ring";
import { TableCard } from "../shared/sections";
import { ToolPage } from "../shared/ToolPage";

type KernelShare = RowOf<"kernel-stats", "by_kernel">;

interface KernelReport extends Report {
  readonly rows?: readonly RowOf<"kernel-stats", "rows">[];
  readonly by_kernel?: readonly KernelShare[];
}

export default function KernelsPage() {
  return <ToolPage<"kernel-stats", KernelReport> tool="kernel-stats">{(answer) => <Kernels {...answer} />}</ToolPage>;
}

/** The most important columns first: a narrow window shows only as many as fit. */
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

const TEXTS = { kernel: shortKernel };
/** Characters of a kernel's name that a sentence has room for. */
const IN_SENTENCE = 36;

function Kernels({ report, sections }: ToolAnswer<"kernel-stats", KernelReport>) {
  const look = palette.value;
  const slices = useMemo(() => slicesOf(report, look), [report, look]);
  const names = useMemo(() => tellApart(slices.map(({ name }) => shortKernel(name))), [slices]);
  const inSentence = useMemo(
    () =>
      tellApart(
        slices.map(({ name }) => shortKernel(name)),
        IN_SENTENCE,
      ),
    [slices],
  );
  const shown = (name: string) => names.get(shortKernel(name)) ?? name;
  const shares = slices
    .filter(({ name }) => name !== "others")
    .map(({ name, percent }) => ({ name: inSentence.get(shortKernel(name)) ?? name, percent: percent ?? null }));
  return (
    <>
      <Findings
        lines={[sharesSentence(shares, "the kernels’ time")]}
        meaning={hint("Share of the time of all kernels", fieldOf(tableOf(sections, "by_kernel"), "percent").doc)}
      />
      {slices.length > 0 && (
        <Card title="Time by kernel" note="of the time of all kernels; each leads to its longest run">
          <RankedBars
            label="Time by kernel"
            field={fieldOf(tableOf(sections, "by_kernel"), "total_us")}
            rows={slices.map((slice) => ({
              key: slice.name,
              label: shown(slice.name),
              whole: slice.name,
              ms: slice.value / 1e3,
              percent: slice.percent ?? null,
              colour: slice.name === "others" ? slice.colour : CATEGORY_COLOUR[categoryOf(slice.name)],
              href: slice.name === "others" ? null : findInTimeline(slice.name),
            }))}
          />
        </Card>
      )}
      <TableCard
        section={tableOf(sections, "rows")}
        tool="kernel-stats"
        id="kernels"
        heading="Kernels by op"
        main
        height="page"
        columns={COLUMNS}
        texts={TEXTS}
      />
      <More title="Over all ops" note="the same kernels, whichever op launches them" tables={["all"]}>
        <TableCard
          section={tableOf(sections, "by_kernel")}
          tool="kernel-stats"
          id="all"
          heading="Kernels over all ops"
          texts={TEXTS}
        />
      </More>
      <More title="Tensor cores, launches and streams" tables={["streams"]}>
        <FactsCard sections={sections} />
        <TableCard section={tableOf(sections, "streams")} tool="kernel-stats" id="streams" />
        <Card title="How kernels are matched to ops">
          <FigureRow section={figuresOf(sections, "attribution")} />
        </Card>
      </More>
      {slices.length > 0 && (
        <More title="As a pie">
          <Card>
            <Ring
              title="Time by kernel"
              slices={slices}
              size={140}
              short={shown}
              onPick={(name) => setParams({ "kernels.filter": `kernel="${name}"` })}
            />
          </Card>
        </More>
      )}
    </>
  );
}

function FactsCard({ sections }: { sections: Sections<"kernel-stats"> }) {
  return (
    <Card title="Tensor cores" note="of the time of all kernels">
      <FigureRow section={figuresOf(sections, "tensor_cores")} />
      <h3>Launches</h3>
      <FigureRow section={figuresOf(sections, "launches")} />
    </Card>
  );
}

function slicesOf(report: KernelReport, look: Palette): Slice[] {
  const found = report.by_kernel ?? [];
  const named = found.filter((share) => share.kernel !== "others");
  const colours = shades(
    named.map((share) => categoryOf(share.kernel ?? "")),
    look.surface,
  );
  const grey = mix(CATEGORY_COLOUR.other, look.surface, 0.35);
  return found.map((share) => ({
    name: share.kernel ?? "",
    value: share.total_us ?? 0,
    percent: share.percent,
    colour: share.kernel === "others" ? grey : (colours[named.indexOf(share)] as string),
    text: shareText(share.total_us ?? 0, share.occurrences ?? 0),
  }));
}

function shareText(us: number, occurrences: number): string {
  return `${duration(us / 1e3)}, ${occurrences.toLocaleString("en-US")} times`;
}
