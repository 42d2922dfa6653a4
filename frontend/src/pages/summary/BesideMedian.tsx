/** A step above the median of the others: both in the order of time, and what differs by line and op. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { address, type TableSection, useResource } from "../../api";
import { partsOfCauses } from "../../design/causes";
import { palette } from "../../design/theme";
import { linkTo, setParams } from "../../router";
import { host, sessionId } from "../../session";
import { Card, Code, Failed, Loading } from "../../ui/basics";
import { IconButton } from "../../ui/controls";
import { StackedBars } from "../shared/Bars";
import { useStepLinks } from "../shared/intervals";
import { Moments } from "../shared/Moments";
import { TableCard } from "../shared/sections";

interface OrderedStep {
  readonly number: number;
  readonly ms: number;
  readonly moments: readonly (readonly [string, number])[];
}

interface Answer {
  readonly sentence: string;
  readonly step: OrderedStep;
  readonly median: OrderedStep;
  readonly section: TableSection;
}

/** Where a step stands above the median one; null where there is no other. */
export function besideMedian(step: number, on: string | null, count: number): string | null {
  return count > 1 ? linkTo("steps", { beside: String(step), on }) : null;
}

/** It is asked for at the row of a step, so the page goes to it. */
export function BesideMedian({ step, on }: { step: string; on: string | null }) {
  const place = useRef<HTMLDivElement>(null);
  const found = useResource<Answer>(
    address(`api/sessions/${encodeURIComponent(sessionId.value ?? "")}/timeline/steps/${encodeURIComponent(step)}`, {
      host: on ?? host.value,
    }),
  );
  useLayoutEffect(() => place.current?.scrollIntoView(), [found.state]);
  const answer = found.state === "ready" ? found.data : null;
  return (
    <div ref={place} class="asked-for">
      <Card
        title={`Step ${step} and the median step`}
        note="critical paths"
        actions={
          <IconButton icon="close" label="Stop comparing" onClick={() => setParams({ beside: null, on: null })} />
        }
      >
        {found.state === "failed" && <Failed error={found.error} />}
        {found.state === "loading" && <Loading what={`Comparing step ${step}`} />}
        {answer && (
          <p class="below-m title-size">
            <Code text={`${answer.sentence}.`} />
          </p>
        )}
        {answer && <Strips both={[answer.step, answer.median]} on={on} />}
      </Card>
      {answer && <TableCard section={answer.section} id="differences" plain height="all" links={() => []} />}
    </div>
  );
}

function Strips({ both, on }: { both: readonly [OrderedStep, OrderedStep]; on: string | null }) {
  const link = useStepLinks();
  const longest_ms = Math.max(...both.map((each) => each.ms));
  const causes = [...new Set(both.flatMap(({ moments }) => moments.map(([cause]) => cause)))];
  return (
    <StackedBars
      label="Both steps by what they wait for"
      parts={partsOfCauses(
        causes.map((cause) => ({ cause, meaning: "" })),
        palette.value.surface,
      )}
      legendOf="0"
      rows={both.map(({ number, moments }, at) => ({
        key: String(at),
        label: `Step ${number}`,
        note: at ? "median" : "this step",
        parts: sums(moments),
        href: link(number, on),
        below: <Moments moments={moments} href={link(number, on)} longest_ms={longest_ms} />,
      }))}
    />
  );
}

function sums(moments: OrderedStep["moments"]): Record<string, number> {
  const found: Record<string, number> = {};
  for (const [cause, ms] of moments) found[cause] = (found[cause] ?? 0) + ms;
  return found;
}
