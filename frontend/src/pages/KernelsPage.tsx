/** Every kernel and the op it belongs to. */
import { useMemo } from "preact/hooks";
import { figuresTitled, tableTitled, type Report, type Section, type ToolAnswer } from "../api";
import { categoryOf, CATEGORY_COLOUR, mix, shades, type Palette } from "../design/colours";
import { palette } from "../design/theme";
import { decimal } from "../format";
import { setParams } from "../router";
import { Card, FigureRow } from "../ui/basics";
import type { Slice } from "../charts/pie";
import { Ring, withRest } from "./Ring";
import { TableCard } from "./sections";
import { ToolPage } from "./ToolPage";

interface KernelShare {
  readonly kernel: string;
  readonly occurrences: number;
  readonly total_us: number;
  readonly percent: number;
}

interface KernelReport extends Report {
  readonly by_kernel?: readonly KernelShare[];
  readonly tensor_cores: Readonly<Record<string, number | null>>;
}

export default function KernelsPage() {
  return <ToolPage<KernelReport> tool="kernel-stats">{(answer) => <Kernels {...answer} />}</ToolPage>;
}

function Kernels({ report, sections }: ToolAnswer<KernelReport>) {
  const look = palette.value;
  const slices = useMemo(() => slicesOf(report, look), [report, look]);
  return (
    <>
      <div class="two uneven">
        <Card title="Time by kernel" note="of the time of all kernels">
          {slices.length > 0 && <Ring title="" slices={slices} onPick={(name) => setParams({ "kernels.filter": `kernel="${name}"` })} />}
        </Card>
        <FactsCard sections={sections} />
      </div>
      <TableCard section={tableTitled(sections, "Kernels")} tool="kernel-stats" id="kernels" heading="Kernels by op" main height="page" />
      <TableCard section={tableTitled(sections, "Launches by stream")} tool="kernel-stats" id="streams" />
    </>
  );
}

function FactsCard({ sections }: { sections: readonly Section[] }) {
  return (
    <Card title="Tensor cores and launches">
      <FigureRow section={figuresTitled(sections, "Tensor cores")} />
      <h3>Launches</h3>
      <FigureRow section={figuresTitled(sections, "Launches")} />
      <h3>How the ops of kernels are known</h3>
      <FigureRow section={figuresTitled(sections, "How the ops")} />
    </Card>
  );
}

function slicesOf(report: KernelReport, look: Palette): Slice[] {
  const text = (us: number) => `${decimal(us, us < 100 ? 2 : 0)} µs`;
  const found = report.by_kernel ?? [];
  const rest = found.filter((share) => /^\d+ others?$|^\(?other/i.test(share.kernel));
  const named = found.filter((share) => !rest.includes(share));
  const colours = shades(named.map((share) => categoryOf(share.kernel)), look.surface);
  const grey = mix(CATEGORY_COLOUR.other, look.surface, 0.45);
  const slice = (share: KernelShare, colour: string): Slice => ({ name: share.kernel, value: share.total_us, percent: share.percent, colour, text: text(share.total_us) });
  return withRest([...named.map((share, index) => slice(share, colours[index] as string)), ...rest.map((share) => slice(share, grey))], 11, grey, text);
}
