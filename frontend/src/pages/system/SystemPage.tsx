/** How busy the machines were: the figures of each sampled counter, which the timeline draws. */
import type { ToolAnswer } from "../../api";
import { percent } from "../../format";
import { counterName } from "../../names";
import { linkTo } from "../../router";
import { type RowOf, tableOf } from "../../sections";
import { Findings } from "../shared/Findings";
import { TableCard } from "../shared/sections";

const TEXTS = { counter: counterName };
const CORES = "CPU machine %";

/** Where nothing stands out: how busy the cores are. */
function usualText(rows: readonly RowOf<"system", "rows">[]): string {
  const means = rows.flatMap(({ counter, mean }) => (counter === CORES && mean !== null ? [mean] : []));
  return `Nothing stands out${means.length ? `: the machine's cores are ${percent(Math.max(...means))} busy` : ""}`;
}

export default function System({ report, sections }: ToolAnswer<"system">) {
  const table = tableOf(sections, "rows");
  const several = report.hosts.length > 1;
  const hostOf = (row: number) => (several ? { host: String(table?.columns?.host?.[row] ?? "") } : {});
  return (
    <>
      <Findings lines={report.findings?.length ? report.findings : [usualText(report.rows ?? [])]} />
      <TableCard
        section={table}
        id="counters"
        heading="Counters"
        main
        texts={TEXTS}
        links={(row) => [{ label: "Over time, in the timeline", href: linkTo("timeline", hostOf(row)) }]}
      />
    </>
  );
}
