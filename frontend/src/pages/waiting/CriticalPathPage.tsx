/** The critical path of the median step: its parts, and the events on it.  Steps has that of every step. */
import { useMemo } from "preact/hooks";
import type { ToolAnswer } from "../../api";
import { partsOfCauses } from "../../design/causes";
import { palette } from "../../design/theme";
import { percent } from "../../format";
import { shortKernel } from "../../names";
import { linkTo } from "../../router";
import { type ReportOf, type RowOf, tableOf } from "../../sections";
import { fact, host, steps } from "../../session";
import { termText } from "../../terms";
import { type BarPart, StackedBars } from "../shared/Bars";
import { Findings } from "../shared/Findings";
import type { Row } from "../shared/reports";
import { TableCard } from "../shared/sections";
import { WhatToDo } from "../shared/WhatToDo";

/** Names of templates are long; `DecodeImageV2Op::PNG` is a name. */
const TEXTS = { name: (text: string) => (/[<(]/.test(text) ? shortKernel(text) : text) };

export default function Path({ report, sections }: ToolAnswer<"critical-path">) {
  const look = palette.value;
  const parts = useMemo(() => partsOf(report.parts ?? [], look.surface), [report, look]);
  const table = tableOf(sections, "rows");
  const hasSteps = fact("steps_source") !== "none";
  const median = Object.fromEntries((report.parts ?? []).map((row) => [String(row.part), Number(row.ms ?? 0)]));
  return (
    <>
      <Findings lines={withLimit(report)}>
        <StackedBars
          label="Parts of the critical path"
          parts={parts}
          leadsTo={(part) => linkTo("critical-path", { "path.filter": `part="${part}"` })}
          rows={[{ key: "path", label: "Critical path", note: hasSteps ? "" : "the capture", parts: median }]}
        />
        <WhatToDo />
      </Findings>
      <TableCard
        section={table}
        id="path"
        heading={hasSteps ? table.title : "On the path of the capture"}
        main
        texts={TEXTS}
        mark={(row) => parts.find((part) => part.key === report.rows?.[row]?.part)?.colour ?? null}
      />
    </>
  );
}

const LONGEST = "longest, with less to gain:";

/** The findings; what limits the step comes first, as on the Summary, where that is not the longest part. */
function withLimit({ findings = [], parts = [] }: ReportOf<"critical-path">): readonly string[] {
  const [cause, share] = [fact("cause"), fact("cause_percent")];
  const largest = parts.reduce<Row | null>((most, row) => (Number(row.ms) > Number(most?.ms ?? 0) ? row : most), null);
  if (!cause || typeof share !== "number" || host.value || steps.value || String(largest?.part) === cause)
    return findings;
  const limit = findings.find((line) => line.startsWith(percent(share)));
  if (!limit) return findings;
  const others = findings.filter((line) => line !== limit).map((line) => line.replace(/^longest part:/i, LONGEST));
  return [`${termText(String(cause))} limits the step: ${limit}`, ...others];
}

function partsOf(rows: readonly RowOf<"critical-path", "parts">[], surface: string): BarPart[] {
  return partsOfCauses(
    rows.map((row) => ({ cause: String(row.part), meaning: String(row.meaning ?? "") })),
    surface,
  );
}
