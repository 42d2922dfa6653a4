/** The card on top of a page that shows how the session differs from another one. */
import { useMemo } from "preact/hooks";
import { ApiError, useResource, type Report, type ToolAnswer } from "../api";
import { CATEGORY_PARTS } from "../charts/steps";
import { otherName, stopComparing } from "../frame/ComparePicker";
import { duration, percent } from "../format";
import { linkTo } from "../router";
import { answerAddress, other, otherAddress, otherId, otherSteps, sessionId, sessionInfo, shortRun, steps } from "../session";
import { Table } from "../table/Table";
import { tools } from "../tools";
import { Card, Failed, Loading } from "../ui/basics";
import { hint } from "../ui/hint";
import { StackedBars } from "./Bars";
import { comparablesOf, type Comparable } from "./comparable";
import { compared, isBeyondNoise, toneOf, type StepCounts } from "./compare";
import { counterName, shapesText, shortKernel, shortPath } from "./names";
import type { OverviewReport } from "./reports";

export function Comparison({ tool, answer }: { tool: string; answer: ToolAnswer }) {
  const specs = comparablesOf(tool);
  const able = specs.length > 0;
  const found = useResource<ToolAnswer>(able ? otherAddress(tool) : null);
  const mine = useResource<ToolAnswer<OverviewReport>>(able ? answerAddress("overview") : null);
  const theirs = useResource<ToolAnswer<OverviewReport>>(able ? otherAddress("overview") : null);
  const failed = other.value?.error ?? unreadable() ?? (found.state === "failed" ? found.error : null);
  const ready = found.state === "ready" && mine.state === "ready" && theirs.state === "ready";
  return (
    <Card title={`Compared with ${otherName()}`} class="comparison table-card" actions={<Actions />}>
      {!able && <Elsewhere />}
      {able && failed && <Failed error={failed} />}
      {able && !failed && !ready && <Loading what={`Reading ${otherName()}`} />}
      {able && ready && (
        <>
          <StepTimeLine overviews={[mine.data.report, theirs.data.report]} />
          {found.data.missing ? <p class="muted">The other has nothing for this page.</p> : specs.map((spec, at) => <Difference key={spec.measure} id={at ? `compare-${at + 1}` : "compare"} tool={tool} spec={spec} mine={answer.report} theirs={found.data.report} overviews={[mine.data.report, theirs.data.report]} />)}
        </>
      )}
    </Card>
  );
}

/** Why the other session cannot be read, if it cannot. */
function unreadable(): ApiError | null {
  const state = other.value?.state;
  if (state?.state !== "failed") return null;
  return new ApiError(state.error?.error ?? "the session to compare with cannot be read", state.error?.hint ?? "", [], 409);
}

function Actions() {
  const back = { session: otherId.value, steps: otherSteps.value, with: sessionId.value, withSteps: steps.value, host: null };
  return (
    <>
      <a class="button quiet" href={linkTo(currentTool(), back)}>
        Swap
      </a>
      <button type="button" class="button quiet" onClick={stopComparing}>
        Stop comparing
      </button>
    </>
  );
}

function currentTool(): string {
  return window.location.hash.replace(/^#\/|\?.*$/g, "");
}

function Elsewhere() {
  const able = tools.value.filter((tool) => comparablesOf(tool.name).length > 0);
  return (
    <p class="muted">
      This page shows the open session alone. Compared are:{" "}
      {able.map((tool, index) => (
        <span key={tool.name}>
          {index > 0 && ", "}
          <a href={linkTo(tool.name)}>{tool.heading}</a>
        </span>
      ))}
    </p>
  );
}

interface DifferenceProps {
  id: string;
  tool: string;
  spec: Comparable;
  mine: Report;
  theirs: Report;
  overviews: readonly [OverviewReport, OverviewReport];
}

const TEXTS = { counter: counterName, kernel: shortKernel, call_site: shortPath, input_shapes: shapesText, kernels: (text: string) => text.split(CHAIN).map(shortKernel).join(CHAIN) };
/** Between the kernels of a sequence. */
const CHAIN = " -> ";
const OF_DIFFERENCE = ["difference", "change_percent"];
const LABELS = { this: "This", other: "Other", change_percent: "Change", this_count: "This, count", other_count: "Other, count" };

function Difference({ id, tool, spec, mine, theirs, overviews }: DifferenceProps) {
  const counts = stepCounts(overviews);
  const data = useMemo(() => {
    const sides = [spec.rows(mine), spec.rows(theirs)] as const;
    return sides[0] && sides[1] ? compared(spec, sides[0], sides[1], counts) : null;
  }, [spec, mine, theirs, counts?.mine, counts?.theirs]);
  if (!data) return <p class="muted">One of them has more rows than are laid side by side here. Choose fewer steps, or compare the exports.</p>;
  return (
    <>
      {spec.lines?.(mine, theirs).map((line) => (
        <p class="compare-said" key={line}>
          {line}
        </p>
      ))}
      {spec.title && <h3 class="compare-title">{spec.title}</h3>}
      {tool === "overview" && <TwoBars overviews={overviews} />}
      {spec.isTotal && <p class="muted compare-note">{counts ? `Per step: totals over ${counts.mine} and ${counts.theirs} steps` : "Totals of the captures: no steps are known on one side, so that a longer capture has more of everything"}</p>}
      <Table
        id={id}
        title={`${spec.title ?? "Compared"} with ${otherName()}`}
        data={data}
        texts={TEXTS}
        labels={LABELS}
        columns={data.fields.filter((field) => !spec.keys.includes(field.name) || data.columns[field.name]?.some((value) => value !== null)).map((field) => field.name)}
        signed={OF_DIFFERENCE}
        plain={data.rowCount <= 12}
        height={data.rowCount <= 12 ? "all" : "short"}
        tone={(row, field) => (!spec.isNeutral && OF_DIFFERENCE.includes(field) && data.columns[field]?.[row] !== null ? toneOf(data, row) : null)}
        empty="neither side has anything to compare"
      />
    </>
  );
}

function stepCounts([mine, theirs]: readonly [OverviewReport, OverviewReport]): StepCounts | null {
  const count = (report: OverviewReport) => (report.steps_source === "none" ? 0 : (report.steps?.length ?? 0));
  const [a, b] = [count(mine), count(theirs)];
  return a > 0 && b > 0 ? { mine: a, theirs: b } : null;
}

function StepTimeLine({ overviews: [mine, theirs] }: { overviews: readonly [OverviewReport, OverviewReport] }) {
  const [a, b] = [mine.step_time_ms, theirs.step_time_ms];
  if (a.mean === null || b.mean === null) return null;
  const change = (100 * (a.mean - b.mean)) / b.mean;
  const beyond = isBeyondNoise(a, b);
  const tone = beyond === false ? "muted" : change > 0 ? "worse" : "better";
  return (
    <p class="compare-line">
      <span data-hint-title="Mean step time" data-hint="of the complete steps, this and the other" data-hint-value={`${a.mean} ms, ${b.mean} ms`} tabIndex={0}>
        {duration(a.mean)} against {duration(b.mean)} a step
      </span>{" "}
      <strong class={tone} tabIndex={0} {...hint("Change of the mean step time", "this less the other, as a share of the other; it counts as beyond noise if it is more than two standard errors of the steps' scatter", `${change} %`)}>{`${change > 0 ? "+" : ""}${percent(change)}`}</strong>{" "}
      {beyond === false && <span class="muted">within the scatter of the steps</span>}
    </p>
  );
}

function TwoBars({ overviews: [mine, theirs] }: { overviews: readonly [OverviewReport, OverviewReport] }) {
  const parts = CATEGORY_PARTS.map((part) => ({ ...part, doc: "time of the category in the mean step" }));
  return (
    <StackedBars
      label="The mean step of both"
      parts={parts}
      rows={[
        { key: "this", label: "This", note: shortRun(sessionInfo.value?.run ?? ""), parts: mine.breakdown_ms },
        { key: "other", label: "Other", note: otherName(), parts: theirs.breakdown_ms },
      ]}
    />
  );
}
