/** How busy the machines were: each sampled counter over time, and its figures. */
import type { ToolAnswer } from "../../api";
import { linkTo } from "../../router";
import { tableOf } from "../../sections";
import { Findings } from "../shared/Findings";
import { counterName } from "../shared/names";
import { TableCard } from "../shared/sections";
import { CounterLines } from "./CounterLines";

const TEXTS = { counter: counterName };

export default function System({ report, sections }: ToolAnswer<"system">) {
  const table = tableOf(sections, "rows");
  const several = report.hosts.length > 1;
  const hostOf = (row: number) => (several ? { host: String(table?.columns?.host?.[row] ?? "") } : {});
  return (
    <>
      <Findings lines={report.findings} />
      <CounterLines />
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
