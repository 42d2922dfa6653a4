/** The instructions of XLA programs: which take the time, and where they come from. */
import type { ToolAnswer } from "../../api";
import { linkTo } from "../../router";
import { fieldOf, figuresOf, tableOf } from "../../sections";
import { Card, FigureRow } from "../../ui/basics";
import { hint } from "../../ui/hint";
import { RankedBars } from "../shared/Bars";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import { TableCard } from "../shared/sections";
import { barsOf, longestOf, workSentence } from "./hloBars";
import { MatchCard } from "./MatchCard";

export default function Hlo({ report, sections }: ToolAnswer<"hlo-stats">) {
  const rows = tableOf(sections, "rows");
  const longest = longestOf(
    (report.rows ?? []).map((row) => ({
      key: `${row.program} ${row.name}`,
      name: String(row.name),
      type: String(row.category ?? ""),
      self_us: Number(row.self_us ?? 0),
      percent: row.self_percent ?? null,
      isFound: true,
    })),
  );
  return (
    <>
      <Findings
        lines={[workSentence(longest)]}
        meaning={hint("Share of the device time", fieldOf(rows, "self_percent").doc)}
      />
      <Card
        title="Self time by instruction"
        note="each leads to its longest run"
        actions={<a href={linkTo("op-profile")}>As trees</a>}
      >
        <RankedBars label="Self time by instruction" field={fieldOf(rows, "self_us")} rows={barsOf(longest)} />
      </Card>
      <TableCard section={rows} id="rows" main />
      <More title="Programs and what was compiled" tables={["programs", "compiled", "compilations"]}>
        <TableCard section={tableOf(sections, "programs")} />
        <TableCard section={tableOf(sections, "compiled")} />
        <TableCard section={tableOf(sections, "compilations")} />
      </More>
      <More title="Steps and devices" tables={["devices"]}>
        <Card title="Use of the hardware by steps">
          <FigureRow section={figuresOf(sections, "steps")} />
        </Card>
        <TableCard section={tableOf(sections, "devices")} />
        <MatchCard section={figuresOf(sections, "totals")} />
      </More>
    </>
  );
}
