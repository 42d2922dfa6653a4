/** Device time as trees: by program, by category, by scope, by line. */
import type { ToolAnswer } from "../../api";
import { CATEGORY_COLOUR } from "../../design/colours";
import { linkTo } from "../../router";
import { fieldOf, figuresOf, tableOf } from "../../sections";
import { hint } from "../../ui/hint";
import { RankedCard, type RankedRow } from "../shared/Bars";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import { sharesSentence } from "../shared/names";
import { FiguresCard, TableCard } from "../shared/sections";
import { ofAllDevices } from "../summary/topOps";
import { barsOf, longestOf, OF_MATCHES, type Work } from "./hloBars";

/** The tree whose first level is drawn: what kind of work it is. */
const DRAWN = "category";
/** As the report names the time without work, which has no share of the device time. */
const IDLE = "IDLE";

/** What of the device time belongs to no program, such as copies: shares add up to the whole. */
function outside(work: readonly Work[]): RankedRow[] {
  const share = 100 - work.reduce((sum, each) => sum + (each.percent ?? 0), 0);
  const [first] = work;
  if (!first?.percent || share < 0.05) return [];
  const ms = Number(barsOf([first])[0]?.ms) * (share / first.percent);
  const label = "no XLA program: copies, other kernels";
  return [{ key: "outside", label, ms, percent: share, colour: CATEGORY_COLOUR.other, href: null }];
}

export default function HloProfile({ report, sections }: ToolAnswer<"op-profile">) {
  const section = tableOf(sections, "rows");
  const rows = report.rows ?? [];
  const longest = longestOf(
    rows
      .filter((row) => row.tree === DRAWN && row.depth === 1 && row.name !== IDLE)
      .map((row) => ({
        key: String(row.id),
        name: String(row.name),
        type: String(row.name),
        self_us: Number(row.self_us ?? 0),
        percent: row.self_percent ?? null,
        isFound: false,
      })),
  );
  return (
    <>
      <Findings
        lines={[sharesSentence(longest, "the device time")]}
        meaning={hint("Share of the device time", fieldOf(section, "self_percent").doc)}
      />
      <RankedCard
        title="Device time by category"
        note={ofAllDevices()}
        actions={<a href={linkTo("hlo-stats")}>All instructions</a>}
        field={fieldOf(section, "self_us")}
        rows={[...barsOf(longest), ...outside(longest)]}
      />
      <TableCard section={section} id="rows" main indent={(row) => Number(rows[row]?.depth ?? 0)} />
      <More title="Programs and devices" tables={["programs", "devices"]}>
        <TableCard section={tableOf(sections, "programs")} />
        <TableCard section={tableOf(sections, "devices")} />
        <FiguresCard title={OF_MATCHES} section={figuresOf(sections, "totals")} />
      </More>
    </>
  );
}
