/** The instructions of XLA programs: which take the time, and where they come from. */
import type { ToolAnswer } from "../../api";
import { linkTo } from "../../router";
import { fieldOf, figuresOf, tableOf } from "../../sections";
import { hint } from "../../ui/hint";
import { RankedCard } from "../shared/Bars";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import { sharesSentence } from "../shared/names";
import { FiguresCard, TableCard } from "../shared/sections";
import { ofAllDevices } from "../summary/topOps";
import { barsOf, longestOf, OF_MATCHES } from "./hloBars";

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
        lines={[sharesSentence(longest, "the device time")]}
        meaning={hint("Share of the device time", fieldOf(rows, "self_percent").doc)}
      />
      <RankedCard
        title="Self time by instruction"
        note={["each leads to its longest run", ofAllDevices()].filter(Boolean).join("; ")}
        actions={<a href={linkTo("op-profile")}>As trees</a>}
        field={fieldOf(rows, "self_us")}
        rows={barsOf(longest)}
      />
      <TableCard section={rows} id="rows" main />
      <More title="Programs and what was compiled" tables={["programs", "compiled", "compilations"]}>
        <TableCard section={tableOf(sections, "programs")} />
        <TableCard section={tableOf(sections, "compiled")} />
        <TableCard section={tableOf(sections, "compilations")} />
      </More>
      <More title="Steps and devices" tables={["devices"]}>
        <FiguresCard title="Use of the hardware by steps" section={figuresOf(sections, "steps")} />
        <TableCard section={tableOf(sections, "devices")} />
        <FiguresCard title={OF_MATCHES} section={figuresOf(sections, "totals")} />
      </More>
    </>
  );
}
