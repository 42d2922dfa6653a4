/** The card at the top of a page that compares the session with another one; the server computes it. */
import { ApiError, type Section, type TableSection, type ToolAnswer, useResource } from "../../api";
import { partsOfCauses } from "../../design/causes";
import { palette } from "../../design/theme";
import { decimal } from "../../format";
import { otherName, stopComparing } from "../../frame/ComparePicker";
import { counterName, shapesText, shortKernel } from "../../names";
import { linkTo, route } from "../../router";
import type { ToolName } from "../../sections";
import {
  compareAddress,
  fact,
  other,
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
import { termText } from "../../terms";
import { tools } from "../../tools";
import { Card, Code, Failed, Loading, sentence } from "../../ui/basics";
import { hint } from "../../ui/hint";
import { StackedBars } from "../shared/Bars";
import type { ComparedTable, CompareReport } from "../shared/reports";

export function Comparison({ tool }: { tool: string }) {
  const comparable = useResource<{ readonly tools: readonly string[] }>("api/comparable");
  const names = comparable.state === "ready" ? comparable.data.tools : null;
  const able = names?.includes(tool) ?? true;
  return (
    <Card
      title={`Compared with ${otherName()}`}
      note={able ? "before: that session; after: the open one" : ""}
      class="comparison table-card"
      actions={<Actions />}
    >
      {comparable.state === "failed" && <Failed error={comparable.error} />}
      {names && (able ? <Differences tool={tool} /> : <Elsewhere names={names} />)}
    </Card>
  );
}

function Differences({ tool }: { tool: string }) {
  const found = useResource<ToolAnswer<ToolName, CompareReport>>(compareAddress(tool));
  const failed = other.value?.error ?? unreadable() ?? (found.state === "failed" ? found.error : null);
  if (failed) return <Failed error={failed} />;
  if (found.state !== "ready") return <Loading what={`Reading ${otherName()}`} />;
  const { report, sections } = found.data;
  const isKnown = report.verdict !== "unknown" && !report.mismatches.length;
  return (
    <>
      <Lines label="Not like for like" lines={report.mismatches} />
      <Verdict report={report} sections={sections} isKnown={isKnown} />
      {report.breakdown && <TwoBars rows={report.breakdown} />}
      {report.tables.map((about, at) => (
        <Difference
          key={about.id}
          tool={tool}
          id={at ? `compare-${at + 1}` : "compare"}
          about={about}
          section={tableOf(sections, about.id)}
          isAlone={report.tables.length === 1}
          isKnown={isKnown}
        />
      ))}
    </>
  );
}

function linesOf(sections: readonly Section[], id: string): readonly string[] {
  const found = sections.find((each) => each.id === id);
  return found?.kind === "prose" ? found.lines : [];
}

function tableOf(sections: readonly Section[], id: string): TableSection | null {
  return sections.find((each): each is TableSection => each.kind === "table" && each.id === id) ?? null;
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
      <a class="button quiet" href={linkTo(route.value.tool, back)}>
        Swap
      </a>
      <button type="button" class="button quiet" onClick={stopComparing}>
        Stop comparing
      </button>
    </>
  );
}

function Elsewhere({ names }: { names: readonly string[] }) {
  const able = tools.value.filter((tool) => names.includes(tool.name));
  return (
    <p class="muted">
      This page shows only the open session. These pages can be compared:{" "}
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

/** The verdict of `stepscope compare`, what changed, and the notes on whether the two are comparable. */
function Verdict({
  report,
  sections,
  isKnown,
}: Pick<ToolAnswer<ToolName, CompareReport>, "report" | "sections"> & { isKnown: boolean }) {
  const [head, rest] = cut(arrows(report.verdict_text));
  const width = report.uncertainty_ms === null ? "" : ` ± ${report.uncertainty_ms}`;
  const value = report.difference_ms === null ? "" : `${report.difference_ms}${width} ms`;
  // Not how a file is read.
  const keep = [...report.notes, ...report.warnings.filter((text) => /^before: (?!\[)/.test(text))];
  return (
    <>
      <p class="compare-line below-l title-size">
        <strong
          class={isKnown ? TONES[report.verdict] : "muted"}
          tabIndex={0}
          {...hint(
            "Change of the mean step time",
            "from the start of a step to the start of the next, after minus before; ± is half of the 95 % interval " +
              "of the difference (Welch): a smaller difference is within the noise",
            value,
          )}
        >
          {sentence(head)}
        </strong>
        <Code text={rest} />
      </p>
      <Lines label="What changed" lines={linesOf(sections, "changes")} />
      <Lines label="What the advice predicted" lines={linesOf(sections, "prediction")} />
      <Lines label="Notes" lines={keep} />
    </>
  );
}

function Lines({ label, lines }: { label: string; lines: readonly string[] }) {
  if (!lines.length) return null;
  return (
    <>
      <h3 class="compare-title">{label}</h3>
      <ul class="compare-notes" aria-label={label}>
        {lines.map((text) => (
          <li key={text}>
            <Code text={sentence(arrows(text))} />
          </li>
        ))}
      </ul>
    </>
  );
}

const arrows = (text: string) => text.replaceAll(" -> ", " → ");

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
  input_shapes: shapesText,
  status: (text: string) => (text === "both" ? "" : termText(text)),
  kernels: (text: string) => text.split(CHAIN).map(shortKernel).join(CHAIN),
};
/** Between the kernels of a sequence. */
const CHAIN = " -> ";

interface DifferenceProps {
  tool: string;
  id: string;
  about: ComparedTable;
  section: TableSection | null;
  /** Its heading would repeat that of the page. */
  isAlone: boolean;
  /** Whether less time is better: not where the sides are of other jobs or hold different amounts of work. */
  isKnown: boolean;
}

function Difference({ tool, id, about, section, isAlone, isKnown }: DifferenceProps) {
  const rows = useRows(section, (suffix) => compareAddress(tool, suffix));
  const { before_steps: before, after_steps: after } = about;
  if (!section) return null;
  return (
    <>
      {!isAlone && <h3 class="compare-title">{about.title}</h3>}
      {about.sentences.map((line) => (
        <p class="compare-said below-m" key={line}>
          {sentence(line)}.
        </p>
      ))}
      {before !== null && after !== null && (
        <p class="muted below-m minor">
          {`Per step: totals over ${howMany(before)} steps before and ${howMany(after)} after`}
        </p>
      )}
      {rows.state === "loading" && <Loading what={`Fetching ${section.row_count.toLocaleString("en-US")} rows`} />}
      {rows.state === "failed" && <Failed error={rows.error} />}
      {rows.state === "ready" && <Sides id={id} section={section} data={rows.data} isKnown={isKnown} />}
    </>
  );
}

/** A number of steps; a mean over hosts may be fractional. */
const howMany = (steps: number) => decimal(steps, Number.isInteger(steps) ? 0 : 1);

/** After the numbers: that only one side has a row is seen from its unknown value. */
const LAST = ["type", "status"];

/** The columns with a value; explanations are shown on hover alone. */
function columnsOf({ fields, columns }: TableData): string[] {
  const names = fields
    .filter((field) => field.role !== "meaning" && columns[field.name]?.some((value) => value !== null))
    .map((field) => field.name);
  return [...names.filter((name) => !LAST.includes(name)), ...names.filter((name) => LAST.includes(name))];
}

const TONE_OF: Readonly<Record<string, "good" | "bad">> = { better: "good", worse: "bad" };

interface SidesProps extends Pick<DifferenceProps, "id" | "isKnown"> {
  section: TableSection;
  data: TableData;
}

function Sides({ id, section, data, isKnown }: SidesProps) {
  const few = data.rowCount <= 12;
  const changes = new Set(data.fields.filter((field) => field.role === "change").map((field) => field.name));
  const verdicts = data.columns.verdict ?? [];
  return (
    <Table
      id={id}
      title={`${section.title}, compared with ${otherName()}`}
      data={data}
      texts={TEXTS}
      columns={columnsOf(data).filter((name) => isKnown || name !== "verdict")}
      plain={few}
      height={few ? "all" : "short"}
      tone={(row, field) =>
        isKnown && changes.has(field) && data.columns[field]?.[row] !== null && data.columns.cause?.[row] !== "unknown"
          ? (TONE_OF[String(verdicts[row])] ?? null)
          : null
      }
      empty={section.empty ?? ""}
    />
  );
}

function TwoBars({ rows }: { rows: NonNullable<CompareReport["breakdown"]> }) {
  const look = palette.value;
  const whole = fact("steps_source") === "none" ? "the capture" : "the mean step";
  const parts = partsOfCauses(
    rows.map((row) => ({ cause: String(row.cause), meaning: String(row.meaning ?? "") })),
    look.surface,
  );
  const side = (name: "before_ms" | "after_ms") => Object.fromEntries(rows.map((row) => [row.cause, row[name] ?? 0]));
  return (
    <>
      <h3 class="compare-title">Critical path of {whole}</h3>
      <StackedBars
        label={`Critical path of ${whole}, before and after`}
        parts={parts}
        legendOf="after"
        rows={[
          { key: "before", label: "Before", note: otherName(), parts: side("before_ms") },
          {
            ...{ key: "after", label: "After", parts: side("after_ms") },
            note: shortRun(sessionInfo.value?.run ?? ""),
          },
        ]}
      />
    </>
  );
}
