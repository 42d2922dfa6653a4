/** How busy the machines were: each counter that was sampled, summed up. */
import { type Report, type ToolAnswer, tableTitled } from "../api";
import { linkTo } from "../router";
import { Icon } from "../ui/icons";
import { Findings } from "./Findings";
import { counterName } from "./names";
import { TableCard } from "./sections";
import { ToolPage } from "./ToolPage";

interface SystemReport extends Report {
  readonly findings: readonly string[];
}

export default function SystemPage() {
  return <ToolPage<SystemReport> tool="system">{(answer) => <System {...answer} />}</ToolPage>;
}

const TEXTS = { counter: counterName };
const LABELS = { p95: "95th percentile" };

function System({ report, sections }: ToolAnswer<SystemReport>) {
  const table = tableTitled(sections, "Counters");
  const several = report.hosts.length > 1;
  const hostOf = (row: number) => (several ? { host: String(table?.columns?.host?.[row] ?? "") } : {});
  return (
    <>
      <Findings lines={report.findings} />
      <TableCard
        section={table}
        tool="system"
        id="counters"
        heading="Counters"
        main
        texts={TEXTS}
        labels={LABELS}
        links={(row) => [{ label: "Over time, in the timeline", href: linkTo("timeline", hostOf(row)) }]}
        actions={
          <a class="button quiet" href={linkTo("timeline")}>
            Over time, in the timeline <Icon name="arrow" size={14} />
          </a>
        }
      />
    </>
  );
}
