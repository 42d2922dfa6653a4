/** Device time as trees: by program, by category, by scope, by line. */
import type { ToolAnswer } from "../../api";
import { CATEGORY_COLOUR, categoryOfOp } from "../../design/colours";
import { sharesSentence } from "../../names";
import { linkTo } from "../../router";
import { fieldOf, figuresOf, type RowOf, tableOf } from "../../sections";
import { hint } from "../../ui/hint";
import { RankedCard, type RankedRow } from "../shared/Bars";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import { FiguresCard, TableCard } from "../shared/sections";
import { ofAllDevices } from "../summary/topOps";

/** The tree whose first level is drawn: what kind of work it is. */
const DRAWN = "category";
/** As the report names the time without work, which has no share of the device time. */
const IDLE = "IDLE";
const MOST_BARS = 12;

function barOf(row: RowOf<"op-profile", "rows">): RankedRow {
  return {
    key: String(row.id),
    label: String(row.name),
    ms: Number(row.self_us ?? 0) / 1e3,
    percent: row.self_percent ?? null,
    colour: CATEGORY_COLOUR[categoryOfOp(String(row.name), String(row.name), "device")],
    href: null,
  };
}

/** What of the device time belongs to no program, such as copies: shares add up to the whole. */
function outside(bars: readonly RankedRow[]): RankedRow[] {
  const share = 100 - bars.reduce((sum, each) => sum + (each.percent ?? 0), 0);
  const [first] = bars;
  if (!first?.percent || share < 0.05) return [];
  const label = "no XLA program: copies, other kernels";
  const ms = first.ms * (share / first.percent);
  return [{ key: "outside", label, ms, percent: share, colour: CATEGORY_COLOUR.other, href: null }];
}

export default function HloProfile({ report, sections }: ToolAnswer<"op-profile">) {
  const section = tableOf(sections, "rows");
  const rows = report.rows ?? [];
  const longest = rows
    .filter((row) => row.tree === DRAWN && row.depth === 1 && row.name !== IDLE)
    .map(barOf)
    .sort((one, other) => other.ms - one.ms)
    .slice(0, MOST_BARS);
  const shares = longest.map(({ label, percent }) => ({ name: label, percent }));
  return (
    <>
      <Findings
        lines={[sharesSentence(shares, "the device time")]}
        meaning={hint("Share of the device time", fieldOf(section, "self_percent").doc)}
      />
      <RankedCard
        title="Device time by category"
        note={ofAllDevices()}
        actions={<a href={linkTo("hlo-stats")}>All instructions</a>}
        field={fieldOf(section, "self_us")}
        rows={[...longest, ...outside(longest)]}
      />
      <TableCard section={section} id="rows" main indent={(row) => Number(rows[row]?.depth ?? 0)} />
      <More title="Programs and devices" tables={["programs", "devices"]}>
        <TableCard section={tableOf(sections, "programs")} />
        <TableCard section={tableOf(sections, "devices")} />
        <FiguresCard title="How device work is matched to instructions" section={figuresOf(sections, "totals")} />
      </More>
    </>
  );
}
