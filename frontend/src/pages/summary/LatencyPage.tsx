/** How long runs of models take: of a server's batches, of programs, or of steps. */
import type { ToolAnswer } from "../../api";
import { CATEGORY_COLOUR } from "../../design/colours";
import { duration } from "../../format";
import { docOf, type RowOf, type Sections, tableOf } from "../../sections";
import { Card } from "../../ui/basics";
import { hint } from "../../ui/hint";
import { type BarPart, StackedBars, type StackedRow } from "../shared/Bars";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import { TableCard } from "../shared/sections";

type Kind = RowOf<"inference", "rows">;

const MOST_BARS = 16;

export default function Latency({ report, sections }: ToolAnswer<"inference">) {
  const kinds = report.rows ?? [];
  return (
    <>
      <Findings
        lines={[latencySentence(kinds)]}
        meaning={hint("Latency", docOf(tableOf(sections, "rows"), "p50_ms"))}
      />
      <Card title="Latency" note="median, and what slower runs take on top of it">
        <StackedBars
          label="Latency of each kind of run"
          parts={partsOf(sections)}
          rows={kinds.slice(0, MOST_BARS).map(barOf)}
        />
      </Card>
      <TableCard section={tableOf(sections, "rows")} main />
      <More title="Slow runs" note="what differs in them, and each of them" tables={["differences", "slowest"]}>
        <TableCard section={tableOf(sections, "differences")} />
        <TableCard section={tableOf(sections, "slowest")} />
      </More>
    </>
  );
}

/** Of fewer runs half of them say nothing. */
const FEW_RUNS = 10;

/** The most frequent kind of run: half of its runs, and one in a hundred. */
function latencySentence(kinds: readonly Kind[]): string {
  const [most] = [...kinds].sort((one, other) => Number(other.runs) - Number(one.runs));
  if (most?.p50_ms == null) return "";
  const runs = Number(most.runs);
  const one = runs === 1 ? "The one run" : `One of ${runs} runs`;
  if (runs < FEW_RUNS) return `${one} of \`${most.name}\` takes ${duration(Number(most.mean_ms))}`;
  const tail = most.p99_ms == null ? "" : `, and one in a hundred takes more than ${duration(most.p99_ms)}`;
  return `Half of the runs of \`${most.name}\` take less than ${duration(most.p50_ms)}${tail}`;
}

function partsOf(sections: Sections<"inference">): BarPart[] {
  const table = tableOf(sections, "rows");
  return [
    { key: "p50", label: "Median", colour: CATEGORY_COLOUR.device_compute, doc: docOf(table, "p50_ms") },
    { key: "p90", label: "Up to 9 of 10", colour: CATEGORY_COLOUR.host_compute, doc: docOf(table, "p90_ms") },
    { key: "p99", label: "Up to 99 of 100", colour: CATEGORY_COLOUR.input, doc: docOf(table, "p99_ms") },
  ];
}

function barOf(kind: Kind): StackedRow {
  const [half, most, nearly] = [kind.p50_ms, kind.p90_ms, kind.p99_ms].map((value) => Number(value ?? 0)) as [
    number,
    number,
    number,
  ];
  return {
    key: `${kind.source} ${kind.name}`,
    label: String(kind.name),
    note: kind.runs === 1 ? "1 run" : `${Number(kind.runs).toLocaleString("en-US")} runs`,
    parts: { p50: half, p90: Math.max(0, most - half), p99: Math.max(0, nearly - Math.max(most, half)) },
  };
}
