/** What to change, the largest gain first, each with all of its evidence. */
import { lazy, Suspense } from "preact/compat";
import type { Report, ToolAnswer } from "../../api";
import { route, setParams } from "../../router";
import { fact, host, steps } from "../../session";
import { type RecordedStep, toExplain } from "../shared/differences";
import { Findings } from "../shared/Findings";
import type { Advice } from "../shared/reports";
import { ToolPage } from "../shared/ToolPage";
import { AdviceCard } from "./AdviceCard";
import { WhatIfButton } from "./WhatIfButton";

const AdviceDocs = lazy(() => import("./AdviceDocs"));

interface AdviceReport extends Report {
  readonly verdict_text: string;
  readonly advice: readonly Advice[];
}

export default function AdvicePage() {
  return (
    <ToolPage<"advice", AdviceReport> tool="advice" controls={<WhatIfButton />}>
      {(answer) => <All {...answer} />}
    </ToolPage>
  );
}

/** Known of the whole session only, which is what the summary shows first. */
function recordedStep(): RecordedStep | null {
  const median_ms = fact("step_time_ms");
  return typeof median_ms !== "number" || fact("steps_source") === "none" || host.value || steps.value
    ? null
    : { median_ms };
}

function All({ report }: ToolAnswer<"advice", AdviceReport>) {
  const about = route.value.params.about;
  const explained = toExplain(report.advice, recordedStep());
  return (
    <>
      <Findings lines={report.verdict_text ? [report.verdict_text] : []} />
      {report.advice.map((advice, index) => (
        <AdviceCard
          key={advice.id}
          advice={advice}
          first={index === 0}
          whole
          rank={index + 1}
          recorded={explained[index] ?? null}
          said={report.verdict_text}
        />
      ))}
      {about && (
        <Suspense fallback={null}>
          <AdviceDocs key={about} kind={about} onClose={() => setParams({ about: null })} />
        </Suspense>
      )}
    </>
  );
}
