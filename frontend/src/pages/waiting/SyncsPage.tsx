/** Where the host waits for a device, by line of the program. */
import type { Field, ToolAnswer } from "../../api";
import { CATEGORY_COLOUR } from "../../design/colours";
import { findInTimeline } from "../../links";
import { fieldOf, type RowOf, tableOf } from "../../sections";
import { RankedCard } from "../shared/Bars";
import { Findings } from "../shared/Findings";
import { shortPath } from "../shared/names";
import { TableCard } from "../shared/sections";
import { WhatToDo } from "../shared/WhatToDo";

const TEXTS = { call_site: shortPath };
const MOST_BARS = 10;

export default function Syncs({ report, sections }: ToolAnswer<"syncs">) {
  const table = tableOf(sections, "rows");
  const field = fieldOf(table, "total_us");
  return (
    <>
      <Findings lines={report.findings}>
        <WhatToDo />
      </Findings>
      {(report.rows ?? []).length > 0 && (
        <Longest rows={report.rows ?? []} field={field} several={report.hosts.length > 1} />
      )}
      <TableCard section={table} id="syncs" main texts={TEXTS} />
    </>
  );
}

interface LongestProps {
  rows: readonly RowOf<"syncs", "rows">[];
  field: Field;
  several: boolean;
}

function Longest({ rows, field, several }: LongestProps) {
  const longest = [...rows].sort((a, b) => Number(b.total_us) - Number(a.total_us)).slice(0, MOST_BARS);
  return (
    <RankedCard
      title="Longest waits"
      note="click one to find its calls in the timeline"
      field={field}
      rows={longest.map((row, index) => ({
        key: String(index),
        label: shortPath(String(row.call_site ?? row.op ?? row.call)),
        note: [
          several ? row.host : null,
          row.call_site || row.op ? row.call : null,
          row.reason,
          row.count === 1 ? "once" : `${Number(row.count).toLocaleString("en-US")} times`,
          row.per_step === 0 ? "outside of steps" : null,
        ]
          .filter(Boolean)
          .join(" · "),
        ms: Number(row.total_us) / 1e3,
        percent: row.per_step === 0 ? null : row.step_percent,
        colour: CATEGORY_COLOUR.output,
        href: findInTimeline(String(row.call), several ? String(row.host) : null),
      }))}
    />
  );
}
