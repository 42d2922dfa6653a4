/** What to change, the largest gain first, each with all of its evidence. */
import { lazy, Suspense } from "preact/compat";
import type { Report, ToolAnswer } from "../../api";
import { route, setParams } from "../../router";
import type { Advice } from "../shared/reports";
import { ToolPage } from "../shared/ToolPage";
import { AdviceCard, isMachineBusy } from "./AdviceCard";
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

function All({ report }: ToolAnswer<"advice", AdviceReport>) {
  const about = route.value.params.about;
  return (
    <>
      {report.advice.map((advice, index) => (
        <AdviceCard
          key={advice.id}
          advice={advice}
          first={index === 0}
          whole
          rank={index + 1}
          isBusy={isMachineBusy(report.verdict_text)}
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
