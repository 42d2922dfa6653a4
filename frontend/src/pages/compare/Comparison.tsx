/** The card on top of a page that shows how the session differs from another one. */
import { useMemo } from "preact/hooks";
import {
  ApiError,
  type Report,
  type Resource,
  type Section,
  type TableSection,
  type ToolAnswer,
  useResource,
} from "../../api";
import { BETWEEN_PART, CATEGORY_PARTS } from "../../charts/steps";
import { decimal } from "../../format";
import { otherName, stopComparing } from "../../frame/ComparePicker";
import { linkTo } from "../../router";
import type { ToolName } from "../../sections";
import {
  answerAddress,
  compareAddress,
  other,
  otherAddress,
  otherId,
  otherSteps,
  sessionId,
  sessionInfo,
  shortRun,
  steps,
} from "../../session";
import type { TableData } from "../../table/model";
import { useRows } from "../../table/rows";
import { Table } from "../../table/Table";
import { tools } from "../../tools";
import { Card, Failed, Loading, sentence } from "../../ui/basics";
import { hint } from "../../ui/hint";
import { StackedBars } from "../shared/Bars";
import { counterName, shapesText, shortKernel, shortPath } from "../shared/names";
import type { CompareReport, OverviewReport } from "../shared/reports";
import { type Comparable, comparablesOf, isCompared, OF_COMMAND } from "./comparable";
import { compared, type StepCounts, stepCounts, toneOf } from "./compare";

export function Comparison({ tool, answer }: { tool: string; answer: ToolAnswer }) {
  const able = isCompared(tool);
  const found = useResource<ToolAnswer<ToolName, CompareReport>>(able ? compareAddress() : null);
  const failed = other.value?.error ?? unreadable() ?? (found.state === "failed" ? found.error : null);
  return (
    <Card
      title={`Compared with ${otherName()}`}
      note={able ? "which is before; the open session is after" : ""}
      class="comparison table-card"
      actions={<Actions />}
    >
      {!able && <Elsewhere />}
      {able && failed && <Failed error={failed} />}
      {able && !failed && found.state !== "ready" && <Loading what={`Reading ${otherName()}`} />}
      {able && !failed && found.state === "ready" && (
        <>
          <Verdict report={found.data.report} />
          {tool in OF_COMMAND ? <OfCommand tool={tool} {...found.data} /> : <OfPage tool={tool} answer={answer} />}
        </>
      )}
    </Card>
  );
}

/** Why the other session cannot be read, if it cannot. */
function unreadable(): ApiError | null {
  const state = other.value?.state;
  if (state?.state !== "failed") return null;
  return new ApiError(
    state.error?.error ?? "the session to compare with cannot be read",
    state.error?.hint ?? "",
    [],
    409,
  );
}

function Actions() {
  const back = {
    session: otherId.value,
    steps: otherSteps.value,
    with: sessionId.value,
    withSteps: steps.value,
    host: null,
  };
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
  const able = tools.value.filter((tool) => isCompared(tool.name));
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

const TONES = { faster: "better", slower: "worse", within_noise: "muted", unknown: "muted" };

/** The sentence of `stepscope compare`, and what speaks against comparing the two at all. */
function Verdict({ report }: { report: CompareReport }) {
  const [head, rest] = cut(report.verdict_text.replace(" -> ", " → "));
  const width = report.uncertainty_ms === null ? "" : ` ± ${report.uncertainty_ms}`;
  const value = report.difference_ms === null ? "" : `${report.difference_ms}${width} ms`;
  const keep = [...report.notes, ...report.warnings.filter((text) => text.startsWith("before: "))];
  return (
    <>
      <p class="compare-line">
        <strong
          class={TONES[report.verdict]}
          tabIndex={0}
          {...hint(
            "Change of the mean step time",
            "from the start of a step to the start of the next, after less before; ± is half of the 95 % interval of " +
              "the difference (Welch), and what is no larger than that is within the noise",
            value,
          )}
        >
          {sentence(head)}
        </strong>
        {rest}
      </p>
      {keep.length > 0 && (
        <ul class="compare-notes" aria-label="To keep in mind">
          {keep.map((text) => (
            <li key={text}>{sentence(text)}</li>
          ))}
        </ul>
      )}
    </>
  );
}

/** `20.6 % faster (178 → 141 ms, ±26.6): ...` as its first words and the others. */
function cut(text: string): [string, string] {
  const at = text.search(/[:(]/);
  if (at < 0) return [text, ""];
  const end = text[at] === "(" ? at - 1 : at;
  return [text.slice(0, end), text.slice(end)];
}

const TEXTS = {
  counter: counterName,
  kernel: shortKernel,
  call_site: shortPath,
  input_shapes: shapesText,
  kernels: (text: string) => text.split(CHAIN).map(shortKernel).join(CHAIN),
};
/** Between the kernels of a sequence. */
const CHAIN = " -> ";

/** What `stepscope compare` lays side by side for this page. */
function OfCommand({ tool, report, sections }: { tool: string; report: CompareReport; sections: readonly Section[] }) {
  const section = sections.find((each): each is TableSection => each.kind === "table" && each.id === OF_COMMAND[tool]);
  const rows = useRows(section ?? null, compareAddress);
  if (!section) return <p class="muted">Neither side has anything to compare here.</p>;
  return (
    <>
      {tool === "overview" && <TwoBars report={report} />}
      {rows.state === "loading" && <Loading what={`Fetching ${section.row_count.toLocaleString("en-US")} rows`} />}
      {rows.state === "failed" && <Failed error={rows.error} />}
      {rows.state === "ready" && hasOneSide(rows.data) && <p class="muted">{NOTHING}</p>}
      {rows.state === "ready" && (
        <Sides
          id="compare"
          title={section.title}
          data={rows.data}
          columns={columnsOf(rows.data)}
          isNeutral={report.verdict === "within_noise" && tool !== "memory-profile"}
        />
      )}
    </>
  );
}

const LAST = ["type", "status"];

/** The numbers before what they repeat: that only one side has a row is seen from its unknown value. */
function columnsOf({ fields }: TableData): string[] {
  const names = fields.filter((field) => field.role !== "meaning").map((field) => field.name);
  return [...names.filter((name) => !LAST.includes(name)), ...names.filter((name) => LAST.includes(name))];
}

const NOTHING = "The other has nothing for this page.";

/** True if the session that the open one is compared with has none of the rows. */
function hasOneSide({ fields, columns }: TableData): boolean {
  const before = fields.find((field) => field.name.startsWith("before"));
  return before !== undefined && (columns[before.name] ?? []).every((value) => value === null);
}

interface SidesProps {
  id: string;
  title: string;
  data: TableData;
  columns: readonly string[];
  /** More of it is neither good nor bad. */
  isNeutral?: boolean;
}

function Sides({ id, title, data, columns, isNeutral = false }: SidesProps) {
  const few = data.rowCount <= 12;
  const changes = new Set(data.fields.filter((field) => field.role === "change").map((field) => field.name));
  return (
    <Table
      id={id}
      title={`${title}, compared with ${otherName()}`}
      data={data}
      texts={TEXTS}
      columns={columns}
      plain={few}
      height={few ? "all" : "short"}
      tone={(row, field) =>
        !isNeutral && changes.has(field) && data.columns[field]?.[row] !== null ? toneOf(data, row) : null
      }
      empty="neither side has anything to compare"
    />
  );
}

/** What the page's own report has on both sides. */
function OfPage({ tool, answer }: { tool: string; answer: ToolAnswer }) {
  const theirs = useResource<ToolAnswer>(otherAddress(tool));
  const counts = useStepCounts();
  const waiting: readonly Resource<unknown>[] = [theirs, ...counts.asked];
  const failed = waiting.find((each) => each.state === "failed");
  if (failed?.state === "failed") return <Failed error={failed.error} />;
  if (theirs.state !== "ready" || waiting.some((each) => each.state === "loading"))
    return <Loading what={`Reading ${otherName()}`} />;
  if (theirs.data.missing) return <p class="muted">{NOTHING}</p>;
  const { report } = theirs.data;
  return (
    <>
      {comparablesOf(tool).map((spec, at) => (
        <Difference
          key={spec.measure}
          id={at ? `compare-${at + 1}` : "compare"}
          spec={spec}
          mine={answer.report}
          theirs={report}
          counts={counts.both}
        />
      ))}
    </>
  );
}

/** A number of steps, which as a mean over hosts need not be whole. */
const howMany = (steps: number) => decimal(steps, Number.isInteger(steps) ? 0 : 1);

/** How many steps the totals of both sides are of; null where one has none. */
function useStepCounts(): {
  both: StepCounts | null;
  asked: readonly Resource<ToolAnswer<"overview", OverviewReport>>[];
} {
  const asked = [
    useResource<ToolAnswer<"overview", OverviewReport>>(answerAddress("overview")),
    useResource<ToolAnswer<"overview", OverviewReport>>(otherAddress("overview")),
  ] as const;
  const [mine, theirs] = asked.map((each) =>
    each.state === "ready" && !each.data.missing ? each.data.report : null,
  ) as [OverviewReport | null, OverviewReport | null];
  const both = useMemo(() => stepCounts(mine, theirs), [mine, theirs]);
  return { both, asked };
}

interface DifferenceProps {
  id: string;
  spec: Comparable;
  mine: Report;
  theirs: Report;
  counts: StepCounts | null;
}

function Difference({ id, spec, mine, theirs, counts }: DifferenceProps) {
  const data = useMemo(() => {
    const sides = [spec.rows(mine), spec.rows(theirs)] as const;
    return sides[0] && sides[1] ? compared(spec, sides[0], sides[1], counts) : null;
  }, [spec, mine, theirs, counts]);
  if (!data)
    return (
      <p class="muted">
        One of them has more rows than are laid side by side here. Choose fewer steps, or compare the exports.
      </p>
    );
  return (
    <>
      {spec.lines?.(mine, theirs).map((line) => (
        <p class="compare-said" key={line}>
          {line}
        </p>
      ))}
      {spec.title && <h3 class="compare-title">{spec.title}</h3>}
      {spec.isTotal && (
        <p class="muted compare-note">
          {counts
            ? `Per step: totals over ${howMany(counts.theirs)} steps before and ${howMany(counts.mine)} after`
            : "Totals of the captures: no steps are known on one side, so that a longer capture has more of everything"}
        </p>
      )}
      <Sides
        id={id}
        title={spec.title ?? "Compared"}
        data={data}
        columns={data.fields
          .filter(
            (field) => !spec.keys.includes(field.name) || data.columns[field.name]?.some((value) => value !== null),
          )
          .map((field) => field.name)}
        isNeutral={spec.isNeutral ?? false}
      />
    </>
  );
}

function TwoBars({ report }: { report: CompareReport }) {
  const parts = [...CATEGORY_PARTS, BETWEEN_PART].map((part) => ({
    ...part,
    doc: String(report.breakdown.find((row) => row.category === part.key)?.meaning ?? ""),
  }));
  const side = (name: "before_ms" | "after_ms") =>
    Object.fromEntries(report.breakdown.map((row) => [row.category, row[name] ?? 0]));
  return (
    <StackedBars
      label="The mean step of both"
      parts={parts}
      rows={[
        { key: "before", label: "Before", note: otherName(), parts: side("before_ms") },
        { key: "after", label: "After", note: shortRun(sessionInfo.value?.run ?? ""), parts: side("after_ms") },
      ]}
    />
  );
}
