/** How busy the machines were: the figures of each sampled counter, which the timeline draws. */
import type { ToolAnswer } from "../../api";
import { linkTo } from "../../router";
import { tableOf } from "../../sections";
import { Findings } from "../shared/Findings";
import { counterName } from "../shared/names";
import { TableCard } from "../shared/sections";

const TEXTS = { counter: counterName };

export default function System({ report, sections }: ToolAnswer<"system">) {
  const table = tableOf(sections, "rows");
  const several = report.hosts.length > 1;
  const hostOf = (row: number) => (several ? { host: String(table?.columns?.host?.[row] ?? "") } : {});
  return (
    <>
      <Findings lines={report.findings} />
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
