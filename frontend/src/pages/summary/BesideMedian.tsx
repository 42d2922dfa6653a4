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

interface BesideMedianProps {
  step: string;
  on: string | null;
}

/** It is asked for at the row of a step, so the page goes to it. */
export function BesideMedian(props: BesideMedianProps) {
  const place = useRef<HTMLDivElement>(null);
  return (
    <div ref={place} class="asked-for">
      <Beside {...props} onDrawn={() => place.current?.scrollIntoView()} />
    </div>
  );
}

function Beside({ step, on, onDrawn }: BesideMedianProps & { onDrawn: () => void }) {
  const found = useResource<Answer>(
    address(`api/sessions/${encodeURIComponent(sessionId.value ?? "")}/timeline/steps/${encodeURIComponent(step)}`, {
      host: on ?? host.value,
    }),
  );
  useLayoutEffect(onDrawn, [found.state]);
  const close = (
    <IconButton icon="close" label="Stop comparing" onClick={() => setParams({ beside: null, on: null })} />
  );
  if (found.state !== "ready")
    return (
      <Card title={`Step ${step} and the median step`} actions={close}>
        {found.state === "failed" ? <Failed error={found.error} /> : <Loading what={`Comparing step ${step}`} />}
      </Card>
    );
  const { sentence, median, section } = found.data;
  return (
    <>
      <Card title={`Step ${step} and the median step`} note="critical paths" actions={close}>
        <p class="below-m title-size">
          <Code text={`${sentence}.`} />
        </p>
        <Strips both={[found.data.step, median]} on={on} />
      </Card>
      <TableCard section={section} id="differences" plain height="all" links={() => []} />
    </>
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
