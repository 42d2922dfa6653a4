/** The kernels of each op. */
import { useMemo } from "preact/hooks";
import type { ToolAnswer } from "../../api";
import { CATEGORY_COLOUR, categoryOf } from "../../design/colours";
import { findInTimeline } from "../../links";
import { sharesSentence, shortKernel, tellApart } from "../../names";
import { fieldOf, figuresOf, type RowOf, tableOf } from "../../sections";
import { Card, FigureRow } from "../../ui/basics";
import { hint } from "../../ui/hint";
import { RankedCard, restOf } from "../shared/Bars";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import { FiguresCard, TableCard } from "../shared/sections";
import { ofAllDevices } from "../summary/topOps";

type KernelShare = RowOf<"kernel-stats", "by_kernel">;

/** The most important columns first: a narrow window shows only as many as fit. */
const COLUMNS = [
  ..."rank op kernel occurrences total_us total_percent avg_us uses_tensor_core occupancy_percent min_us max_us".split(
    " ",
  ),
  ..."tensor_core_eligible registers_per_thread shared_memory_bytes block_dim grid_dim".split(" "),
];

const OF_KERNELS = "op kernel occurrences total_us percent avg_us uses_tensor_core min_us max_us".split(" ");

const TEXTS = { kernel: shortKernel };

const MOST_BARS = 12;

const nameOf = ({ kernel }: KernelShare) => shortKernel(kernel ?? "");
const opOf = ({ op }: KernelShare) => op ?? "";

export default function Kernels({ report, sections }: ToolAnswer<"kernel-stats">) {
  const found = report.by_kernel ?? [];
  const largest = useMemo(() => found.filter(({ kernel }) => kernel !== "others").slice(0, MOST_BARS), [report]);
  const names = useMemo(() => tellApart(largest.map(nameOf)), [largest]);
  const ops = useMemo(() => tellApart(largest.map(opOf)), [largest]);
  const shortOf = (row: KernelShare) => names.get(nameOf(row)) ?? nameOf(row);
  /** The op says what is computed, the kernel how. */
  const bars = largest.map((row) => {
    const op = ops.get(opOf(row));
    if (!op) return { label: shortOf(row), kernel: "no op recorded" };
    return opOf(row) !== nameOf(row) ? { label: op, kernel: shortOf(row) } : { label: shortOf(row) };
  });
  const shares = largest.map((row, at) => ({
    name: opOf(row) && bars[at]?.kernel ? `${bars[at].label} (${nameOf(row).split("<", 1)[0]})` : shortOf(row),
    percent: row.percent,
  }));
  return (
    <>
      <Findings
        lines={[sharesSentence(shares, "the kernels’ time")]}
        meaning={hint("Share of the time of all kernels", fieldOf(tableOf(sections, "by_kernel"), "percent").doc)}
      />
      <RankedCard
        title="Time by op and kernel"
        note={["of the time of all kernels", ofAllDevices(), "each leads to its longest run"]
          .filter(Boolean)
          .join("; ")}
        field={fieldOf(tableOf(sections, "by_kernel"), "total_us")}
        rows={largest.map((row, at) => ({
          key: `${row.op} ${row.kernel}`,
          label: bars[at]?.label ?? "",
          whole: row.op ? `${row.op} · ${row.kernel}` : String(row.kernel),
          ...(bars[at]?.kernel ? { note: bars[at].kernel } : {}),
          ms: Number(row.total_us) / 1e3,
          percent: row.percent,
          colour: CATEGORY_COLOUR[categoryOf(String(row.kernel))],
          href: findInTimeline(String(row.kernel)),
        }))}
        rest={restOf(found, largest)}
      />
      <TableCard
        section={tableOf(sections, "by_kernel")}
        id="kernels"
        heading="Kernels"
        main
        columns={OF_KERNELS}
        texts={TEXTS}
      />
      <More title="By launch" note="the same, apart by the configuration of the launch" tables={["ops"]}>
        <TableCard
          section={tableOf(sections, "rows")}
          id="ops"
          heading="Kernels by launch"
          columns={COLUMNS}
          texts={TEXTS}
        />
      </More>
      <More title="Tensor cores, launches and streams" tables={["streams"]}>
        <Card title="Tensor cores" note="of the time of all kernels">
          <FigureRow section={figuresOf(sections, "tensor_cores")} />
          <h3>Launches</h3>
          <FigureRow section={figuresOf(sections, "launches")} />
        </Card>
        <TableCard section={tableOf(sections, "streams")} />
        <FiguresCard title="How kernels are matched to ops" section={figuresOf(sections, "attribution")} />
      </More>
    </>
  );
}
