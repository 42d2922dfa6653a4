/** The ranges that the program named, the longest first. */
import type { ToolAnswer } from "../../api";
import { CATEGORY_COLOUR } from "../../design/colours";
import { duration, percent } from "../../format";
import { findInTimeline } from "../../links";
import { fieldOf, type RowOf, tableOf } from "../../sections";
import { fact } from "../../session";
import { hint } from "../../ui/hint";
import { RankedCard } from "../shared/Bars";
import { Findings } from "../shared/Findings";
import { middleCut } from "../shared/names";
import { TableCard } from "../shared/sections";
import { TELLING_PERCENT } from "../summary/topOps";

type Range = RowOf<"annotations", "rows">;

const MOST_BARS = 12;

/** The most important columns first: a narrow window shows only as many as fit. */
const COLUMNS = [
  ...([
    "name",
    "total_ms",
    "occurrences",
    "avg_ms",
    "step_percent",
    "device_ms",
    "self_ms",
    "min_ms",
    "max_ms",
  ] as const),
  ...(["thread", "is_step"] as const),
];

const OF_STEPS: readonly string[] = ["step_percent", "is_step"];

function columnsOf(severalHosts: boolean): readonly string[] {
  const known = COLUMNS.filter((name) => fact("steps_source") !== "none" || !OF_STEPS.includes(name));
  return severalHosts ? [known[0] as string, "host", ...known.slice(1)] : known;
}

export default function Annotations({ report, sections }: ToolAnswer<"annotations">) {
  const section = tableOf(sections, "rows");
  const rows = report.rows ?? [];
  const several = report.hosts.length > 1;
  return (
    <>
      <Findings lines={[rangeSentence(rows)]} meaning={hint("Time of the range", fieldOf(section, "total_ms").doc)} />
      {rows.length > 1 && (
        <RankedCard
          title="Time by range"
          note="each leads to its longest run"
          field={fieldOf(section, "total_ms")}
          rows={rows.slice(0, MOST_BARS).map((row) => ({
            key: `${row.host} ${row.thread} ${row.name}`,
            label: String(row.name),
            note: several ? row.host : row.thread,
            ms: Number(row.total_ms ?? 0),
            percent: row.step_percent ?? null,
            colour: CATEGORY_COLOUR.host_compute,
            href: findInTimeline(String(row.name), several ? String(row.host) : null),
          }))}
        />
      )}
      <TableCard section={section} id="rows" main columns={columnsOf(several)} />
    </>
  );
}

/** The range inside steps that takes most of them. */
function rangeSentence(rows: readonly Range[]): string {
  const inside = rows.filter((row) => !row.is_step);
  const [most] = [...inside].sort((one, other) => Number(other.total_ms) - Number(one.total_ms));
  if (!most) return rows.length ? "The program names its steps, and nothing inside them" : "";
  if (most.step_percent && most.step_percent < TELLING_PERCENT)
    return `No range inside the steps takes more than ${percent(most.step_percent)} of them`;
  const share = most.step_percent
    ? `, ${percent(most.step_percent)} of the ${fact("steps_source") === "none" ? "capture" : "steps"}`
    : "";
  const device = most.device_ms ? `; the device works ${duration(Number(most.device_ms))} for it` : "";
  return `\`${middleCut(String(most.name))}\` takes ${duration(Number(most.total_ms))}${share}${device}`;
}
