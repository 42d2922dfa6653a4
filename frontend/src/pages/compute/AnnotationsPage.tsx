/** The ranges that the program named, the longest first. */
import type { ToolAnswer } from "../../api";
import { CATEGORY_COLOUR } from "../../design/colours";
import { duration, percent } from "../../format";
import { findInTimeline } from "../../links";
import { middleCut, shortRange } from "../../names";
import { fieldOf, type RowOf, tableOf } from "../../sections";
import { fact } from "../../session";
import { hint } from "../../ui/hint";
import { RankedCard } from "../shared/Bars";
import { Findings } from "../shared/Findings";
import { TableCard } from "../shared/sections";
import { TELLING_PERCENT } from "../summary/topOps";

type Range = RowOf<"annotations", "rows">;

const MOST_BARS = 12;

const TEXTS = { name: shortRange };

export default function Annotations({ report, sections }: ToolAnswer<"annotations">) {
  const section = tableOf(sections, "rows");
  const onDevice = isDeviceBusy(report.rows ?? []);
  const ranges = longestInSteps(report.rows ?? [], onDevice ? "device_ms" : "total_ms");
  const isCapture = fact("steps_source") === "none"; // then nothing lies in steps, and no range marks one
  const columns = section.fields.map(({ name }) => name).filter((name) => !isCapture || !OF_STEPS.includes(name));
  const several = report.hosts.length > 1;
  return (
    <>
      <Findings
        lines={rangeSentences(ranges, onDevice)}
        meaning={hint("Share of the steps", fieldOf(section, "step_percent").doc)}
      />
      <RankedCard
        title={onDevice ? "Device time by range" : "Time by range"}
        note={several ? "on the host on which it is longest" : "ranges may lie within each other"}
        field={fieldOf(section, onDevice ? "device_ms" : "total_ms")}
        rows={ranges.slice(0, MOST_BARS).map((row) => ({
          key: String(row.name),
          label: shortRange(String(row.name)),
          whole: String(row.name),
          note: onDevice ? `${duration(Number(row.total_ms))} on the host` : several ? row.host : row.thread,
          ms: Number(row[onDevice ? "device_ms" : "total_ms"] ?? 0),
          percent: onDevice || isCapture ? null : (row.step_percent ?? null),
          colour: CATEGORY_COLOUR[onDevice ? "device_compute" : "host_compute"],
          href: findInTimeline(String(row.name).split("*", 1)[0] ?? "", several ? String(row.host) : null),
        }))}
      />
      <TableCard section={section} id="rows" main texts={TEXTS} columns={columns} />
    </>
  );
}

const OF_STEPS: readonly string[] = ["step_percent", "is_step"];

/** Whether devices work for most of the longest range; where they idle, what counts is how long the host takes. */
function isDeviceBusy(rows: readonly Range[]): boolean {
  const [longest, busiest] = [longestInSteps(rows, "total_ms")[0], longestInSteps(rows, "device_ms")[0]];
  return Number(busiest?.device_ms ?? 0) > Number(longest?.total_ms ?? 0) / 2;
}

/** The ranges that mark no steps, the longest first; of equal ones on several hosts or threads the longest. */
function longestInSteps(rows: readonly Range[], by: "device_ms" | "total_ms"): readonly Range[] {
  const sorted = rows
    .filter((row) => !row.is_step && Number(row[by]) > 0)
    .sort((one, other) => Number(other[by]) - Number(one[by]));
  return sorted.filter((row, at) => sorted.findIndex(({ name }) => name === row.name) === at);
}

/** The largest shares, and what devices do for the longest range where that outlasts the range. */
function rangeSentences([first, ...others]: readonly Range[], onDevice: boolean): readonly string[] {
  if (!first) return [];
  const second = others.find((row) => !onDevice || row.device_ms !== first.device_ms); // not what lies around it
  const whole = fact("steps_source") === "none" ? "capture" : "steps";
  const [name, total] = [middleCut(shortRange(String(first.name))), Number(first.total_ms)];
  const share = first.step_percent ?? 0;
  if (onDevice) {
    const works = (row: Range) =>
      `${duration(Number(row.device_ms))} for \`${middleCut(shortRange(String(row.name)))}\``;
    return [`Devices work ${[first, ...(second ? [second] : [])].map(works).join(", ")}`];
  }
  if (!share) return [`\`${name}\` takes ${duration(total)}`];
  if (share < TELLING_PERCENT)
    return [
      `No range that has a name takes more than ${percent(share)} of the ${whole}`,
      "Name forward, backward and input with `record_function` or `stepscope.annotate` to see their shares",
    ];
  const other =
    (second?.step_percent ?? 0) >= TELLING_PERCENT
      ? `, \`${middleCut(shortRange(String(second?.name)))}\` ${percent(Number(second?.step_percent))}`
      : "";
  return [`\`${name}\` takes ${percent(share)} of the ${whole}${other}`];
}
