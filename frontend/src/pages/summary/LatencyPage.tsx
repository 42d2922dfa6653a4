/** How long runs of models take: of a server's batches, of programs, or of steps. */
import type { ToolAnswer } from "../../api";
import { duration, percent } from "../../format";
import { docOf, type RowOf, tableOf } from "../../sections";
import { hint } from "../../ui/hint";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import { TableCard } from "../shared/sections";
import { WhatToDo } from "../shared/WhatToDo";

type Kind = RowOf<"inference", "rows">;

export default function Latency({ report, sections }: ToolAnswer<"inference">) {
  const kinds = report.rows ?? [];
  return (
    <>
      <Findings
        lines={[latencySentence(kinds), deviceSentence(kinds)].filter(Boolean)}
        meaning={hint("Latency", docOf(tableOf(sections, "rows"), "p50_ms"))}
      >
        <WhatToDo />
      </Findings>
      <TableCard section={tableOf(sections, "rows")} main />
      {kinds.some((kind) => Number(kind.runs) > 1) && (
        <More title="Slow runs" note="what differs in them, and each of them" tables={["differences", "slowest"]}>
          <TableCard section={tableOf(sections, "differences")} />
          <TableCard section={tableOf(sections, "slowest")} />
        </More>
      )}
    </>
  );
}

/** Of fewer runs half of them say nothing. */
const FEW_RUNS = 10;

/** What a single run is, by how it is known. */
const SOURCES: Readonly<Record<string, string>> = {
  server: "a batch that the server marked",
  program: "a program on the device",
  steps: "a step",
};

const mostFrequent = (kinds: readonly Kind[]) =>
  [...kinds].sort((one, other) => Number(other.runs) - Number(one.runs))[0];

/** How much of that time devices work: the rest is waiting, of whatever kind. */
function deviceSentence(kinds: readonly Kind[]): string {
  const share = mostFrequent(kinds)?.device_percent;
  return share == null ? "" : `Devices work for ${percent(share)} of that time`;
}

/** The most frequent kind of run: half of its runs, and one in a hundred. */
function latencySentence(kinds: readonly Kind[]): string {
  const most = mostFrequent(kinds);
  if (most?.p50_ms == null) return "";
  const runs = Number(most.runs);
  const time = duration(Number(most.mean_ms));
  if (runs === 1) return `One run was recorded: \`${most.name}\`, ${SOURCES[String(most.source)] ?? ""}, takes ${time}`;
  if (runs < FEW_RUNS) return `One of ${runs} runs of \`${most.name}\` takes ${time}`;
  const tail = most.p99_ms == null ? "" : `, and one in a hundred takes more than ${duration(most.p99_ms)}`;
  return `Half of the runs of \`${most.name}\` take less than ${duration(most.p50_ms)}${tail}`;
}
