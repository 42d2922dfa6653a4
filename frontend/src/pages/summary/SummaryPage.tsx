/** The start page: why training is slow, what to change, the gain; then the evidence. */
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { Figures, ToolAnswer } from "../../api";
import { partsOfCauses, partsOfRow } from "../../design/causes";
import { CATEGORY_COLOUR, categoryOfOp } from "../../design/colours";
import { palette } from "../../design/theme";
import { duration, percent } from "../../format";
import { frameworkName } from "../../frame/SessionPicker";
import { linkTo } from "../../router";
import { figuresOf, type RowOf, type Sections, tableOf } from "../../sections";
import { Card, Code, FigureRow, sentence } from "../../ui/basics";
import { hint } from "../../ui/hint";
import { AdviceCard, isMachineBusy } from "../advice/AdviceCard";
import { WhatIfButton } from "../advice/WhatIfButton";
import { HeldBar, RequestBar } from "../memory/HeldBar";
import { StackedBars } from "../shared/Bars";
import { useStepLinks } from "../shared/intervals";
import { Moments } from "../shared/Moments";
import { More } from "../shared/More";
import type { Pictures } from "../shared/pictures";
import type { OverviewReport } from "../shared/reports";
import { type GraphStep, longFrom, StepGraph } from "../shared/StepGraph";
import { TableCard } from "../shared/sections";
import { ToolPage } from "../shared/ToolPage";
import { besideMedian } from "./BesideMedian";
import { ofAllDevices, TELLING_PERCENT, tellingTypes } from "./topOps";

export default function SummaryPage() {
  return (
    <ToolPage<"overview", OverviewReport> tool="overview" headless>
      {(answer) => <Summary {...answer} />}
    </ToolPage>
  );
}

interface SummaryProps extends ToolAnswer<"overview", OverviewReport> {
  /** Of a report, which leads nowhere and shows all it has. */
  pictures?: Pictures | undefined;
  /** More cards below. */
  children?: ComponentChildren;
}

export function Summary(props: SummaryProps) {
  const { report, sections, pictures, children } = props;
  const filled = tableOf(sections, "filled");
  return (
    <div class="summary">
      <Verdict report={report} sections={sections} />
      <AdviceCards report={report} pictures={pictures} />
      {filled.row_count > 0 && (
        <TableCard section={filled} heading="What held it, by variable and line" plain height="all" links={none} />
      )}
      {isEnded(report) && report.top_ops.length > 0 && (
        <More title="What the job did before" note="steps and ops" tables={["account", "types", "top"]}>
          <StepCards {...props} />
        </More>
      )}
      {!isEnded(report) && <StepCards {...props} />}
      <div class="summary-side list gap-l">
        <EnvironmentCard sections={sections} />
        <MissingCard report={report} />
      </div>
      {children}
    </div>
  );
}

const none = () => [];

/** What the steps wait for, how long they last, and the ops in them. */
function StepCards({ report, sections, pictures }: SummaryProps) {
  const steps = useGraphSteps(report);
  const figures = report.steps_source === "none" ? [] : stepFigures(report);
  const topOps = tableOf(sections, "top_ops");
  const look = palette.value;
  const account = tableOf(sections, "step_account");
  const types = useMemo(() => tellingTypes(report, topOps), [report, topOps]);
  // They are those of the devices, where any device worked.
  const where = Number(figuresOf(sections, "placement").values.device_op_percent ?? 0) > 0 ? "device" : "host";
  const actions = !pictures && <a href={linkTo("op-stats")}>All ops</a>;
  return (
    <>
      {report.account_step && (
        <TableCard
          section={account}
          id="account"
          heading={`What ${wholeWords(report)} waits for`}
          note={medianNote(report)}
          actions={!pictures && <WhatIfButton />}
          columns={account.fields.flatMap(({ name, role }) => (role === "meaning" || isHowKnown(name) ? [] : [name]))}
          plain
          height="all"
          markOn="cause"
          mark={(row) => colourOfCause(sections, look.surface, row)}
        />
      )}
      {steps.length > 1 && (
        <Card
          title={`Step times${onPace(report)}`}
          note={howNote(report)}
          actions={!pictures && <a href={linkTo("steps")}>All steps</a>}
        >
          {figures.length > 0 && <FigureRow section={figuresOf(sections, "step_time")} names={figures} />}
          <StepGraph steps={steps} median_ms={report.median_step_ms} long_ms={longFrom(report)} />
        </Card>
      )}
      {types && (
        <TableCard
          section={types}
          id="types"
          heading="Top op types by self time"
          note={[`no single op takes ${TELLING_PERCENT} % of it`, ofAllDevices()].filter(Boolean).join("; ")}
          {...{ plain: true, height: "all", actions }}
          links={(row) => [
            {
              label: "Show its ops",
              href: linkTo("op-stats", {
                "ops.filter": `where=${where} type="${String(types.columns?.category?.[row] ?? "")}"`,
              }),
            },
          ]}
          mark={(row) => CATEGORY_COLOUR[categoryOfOp(String(types.columns?.category?.[row] ?? ""), "", where)]}
        />
      )}
      {!types && (
        <TableCard
          section={topOps}
          id="top"
          heading="Top ops by self time"
          note={ofAllDevices()}
          {...{ plain: true, height: "all", actions }}
          mark={(row) =>
            CATEGORY_COLOUR[
              categoryOfOp(String(report.top_ops[row]?.category ?? ""), String(report.top_ops[row]?.name ?? ""), where)
            ]
          }
        />
      )}
    </>
  );
}

/** How causes are known belongs to whom it concerns: the table's choice of columns has it, and Trust sums it up. */
const isHowKnown = (name: string) => /^(?:recorded|inferred|not_recorded)_percent$/.test(name);

/** Which step the account is of. */
function medianNote(report: OverviewReport): string {
  const step = report.account_step;
  if (!step || report.steps_source === "none") return "";
  const host = report.hosts.length > 1 ? ` on ${step.host}` : "";
  const others = step.median_of < Number(report.step_time_ms.count) ? ` of the ${report.step_time_ms.count}` : "";
  const middle = step.median_of === 2 ? "the shorter" : "the median"; // of two neither is in the middle
  const ofMany = step.median_of > 1 || others ? `${middle} of ${step.median_of}${others}` : "the only one";
  const which = step.is_median ? ofMany : "as half of the time is in steps that long";
  return `step ${step.step}${host}, ${which}, to the start of the next`;
}

function causeRows(sections: Sections<"overview">): { cause: string; meaning: string }[] {
  const columns = tableOf(sections, "step_account")?.columns;
  return (columns?.cause ?? []).map((cause, row) => ({
    cause: String(cause),
    meaning: String(columns?.meaning?.[row] ?? ""),
  }));
}

function colourOfCause(sections: Sections<"overview">, surface: string, row: number): string | null {
  const rows = causeRows(sections);
  return partsOfCauses(rows, surface).find((part) => part.key === rows[row]?.cause)?.colour ?? null;
}

function stepName(report: OverviewReport): string {
  if (report.steps_source === "none") return "the capture: no steps were found";
  const { is_median: isMedian, median_of: count, step, host } = report.account_step ?? {};
  const which = isMedian ? (count === 1 ? "the step" : "median step") : "long step";
  return `${which}, ${step}${report.hosts.length > 1 ? ` on ${host}` : ""}`;
}

/** What the account is of, in words that follow `what`. */
function wholeWords(report: OverviewReport): string {
  if (report.steps_source === "none") return "the capture";
  if (report.account_step?.median_of === 1) return "the step";
  return report.account_step?.is_median === false ? "the long step" : "the median step";
}

const EACH_STEP = "Each step";
/** Times the median step: where the mean is longer, as where half of the steps are long, the median is not each
 * step's length.  As in the summary of the command line. */
const MEAN_IS_FAR = 1.5;

function stepWords(report: OverviewReport): string {
  if (report.steps_source === "none") return "The capture";
  if (report.step_time_ms.count === 1) return "The step";
  return report.account_step?.is_median === false ? "A long step" : EACH_STEP;
}

const CRITICAL_PATH = "Critical path";
/** What a device does itself; the rest of its bar is what it waits for. */
const DEVICES_OWN = ["device_compute", "communication", "copy", "transfer"];
/** Bars of devices; the timeline has them all. */
const MOST_DEVICES = 4;

/** Of the step, by which devices that do the same may differ. */
const ALIKE = 0.02;

type Times = Readonly<Record<string, number>>;

function alike(one: Times, other: Times, step: OverviewReport["account_step"]): boolean {
  const causes = Object.keys({ ...one, ...other });
  return causes.every((cause) => Math.abs((one[cause] ?? 0) - (other[cause] ?? 0)) <= ALIKE * (step?.ms ?? 0));
}

/** What the step waits for, and below it what each device does meanwhile: two views of the same step, by name. */
function AccountBars({ report, sections }: { report: OverviewReport; sections: Sections<"overview"> }) {
  const look = palette.value;
  const columns = tableOf(sections, "step_account")?.columns;
  const working = (report.account_devices ?? []).filter((device) => device.busy_ms > 0);
  const parts = useMemo(() => {
    const known = causeRows(sections);
    const others = working.flatMap((device) => Object.keys(device.causes_ms));
    const rows = others.filter((cause) => !known.some((row) => row.cause === cause));
    return partsOfCauses([...known, ...rows.map((cause) => ({ cause, meaning: "" }))], look.surface);
  }, [sections, look, working]);
  const path = Object.fromEntries(
    (columns?.cause ?? []).map((cause, row) => [String(cause), Number(columns?.ms?.[row] ?? 0)]),
  );
  const link = useStepLinks();
  const step = report.account_step;
  const href = step && link(step.step, step.host);
  const isAlike =
    working.length > 1 && working.every((each) => alike(each.causes_ms, working[0]?.causes_ms ?? {}, step));
  const drawn = working.slice(0, isAlike ? 1 : MOST_DEVICES);
  const devices = drawn.map((device) => ({
    key: device.device,
    label: isAlike ? `${device.device} and ${working.length - 1} alike` : device.device,
    note: step ? `busy ${percent((100 * device.busy_ms) / step.ms)}` : "",
    parts: device.causes_ms,
    isThin: true,
    first: DEVICES_OWN,
    href,
  }));
  return (
    <>
      <StackedBars
        label="Critical path of the median step, and its devices"
        parts={parts}
        legendOf={CRITICAL_PATH}
        rows={[
          {
            key: CRITICAL_PATH,
            label: CRITICAL_PATH,
            note: stepName(report),
            parts: path,
            href,
            below: step && <Moments moments={step.moments ?? []} href={href} />,
          },
          ...devices,
        ]}
      />
      {working.length > drawn.length && !isAlike && (
        <p class="muted above-s">
          {`and ${working.length - drawn.length} more devices: `}
          <a href={href ?? linkTo("timeline")}>in the timeline</a>
        </p>
      )}
    </>
  );
}

/** The sentence and the bars. */
function Verdict({ report, sections }: { report: OverviewReport; sections: Sections<"overview"> }) {
  const [head, rest] = splitVerdict(report.verdict_text);
  const ended = isEnded(report);
  const filled = tableOf(sections, "filled").columns;
  return (
    <section class="card verdict" aria-label="Verdict">
      <h1>
        <StepTime report={report} />
        <span class="verdict-cause">{startsAlone(report) ? head.charAt(0).toUpperCase() + head.slice(1) : head}</span>
      </h1>
      {rest && (
        <p class="above-s muted title-size">
          <Code text={sentence(rest)} />
        </p>
      )}
      {unsaidEvidence(report).map((line) => (
        <p key={line} class="above-s muted">
          <Code text={`${sentence(line)}.`} />
        </p>
      ))}
      {report.partial && <CutOff warnings={report.warnings} />}
      {report.too_large_request && <RequestBar asked={report.too_large_request} />}
      {ended && (filled?.kind?.length ?? 0) > 0 && (
        <HeldBar kinds={filled?.kind ?? []} sizes={filled?.held_bytes ?? []} />
      )}
      {!ended && report.account_step && <AccountBars report={report} sections={sections} />}
    </section>
  );
}

const OF_PART = "a part of the recording is missing: ";

/** That the answer is of a part of the file only. */
function CutOff({ warnings }: { warnings: readonly string[] }) {
  const said = warnings.find((line) => line.startsWith(OF_PART))?.split(";", 1)[0];
  return (
    <p class="above-s">
      <Code
        text={`${sentence(said ?? "a part of the recording could not be read")}: all of this is about what was read.`}
      />
    </p>
  );
}

/** The one line that stands behind the headline and not in the first card as well; that there are no steps stands
 * beside the bar. */
function unsaidEvidence({ verdict_text, verdict_evidence, advice }: OverviewReport): readonly string[] {
  const said = `${verdict_text}; ${advice[0]?.evidence ?? ""}`;
  const share = /^[\d.]+ % of /;
  const isSaid = (clause: string) =>
    (/^(?:most of it|the largest part) is /.test(clause) &&
      (advice[0]?.culprit || said.includes(/`[^`]+`/.exec(clause)?.[0] ?? "\n"))) ||
    said.includes(clause.split(" (")[0] ?? clause) ||
    said.includes(share.exec(clause)?.[0].slice(0, -3) ?? "\n");
  const left = verdict_evidence.map((line) =>
    line
      .split("; ")
      .filter((clause) => !isSaid(clause))
      .join("; "),
  );
  return left.filter((line) => line !== "" && !line.endsWith("as no steps were found")).slice(0, 1);
}

/** Whether the headline stands without a step time before it. */
function startsAlone(report: OverviewReport): boolean {
  return isEnded(report) || report.step_time_ms.mean === null;
}

/** How long a step takes, in front of what it takes that for. */
function StepTime({ report }: { report: OverviewReport }) {
  const { mean } = report.step_time_ms;
  if (startsAlone(report) || mean === null) return null;
  const median = report.account_step?.ms ?? null;
  const words = stepWords(report);
  const isFar = words === EACH_STEP && mean > MEAN_IS_FAR * (median ?? mean);
  return (
    <span
      class="verdict-step"
      {...(median === null
        ? hint("Length of the capture", "no step was found: from the first event to the last", `${mean} ms`)
        : hint(sentence(stepName(report)), medianNote(report), `${median} ms`))}
    >
      {`${isFar ? "The median step" : words} takes `}
      <span class="oneline">{`${duration(median ?? mean)}${isFar ? `, the mean ${duration(mean)}` : ""}:`}</span>{" "}
    </span>
  );
}

/** How the ids of advice on a hang or on memory that ran out begin. */
const OF_JOB = "job.";

/** Whether the job hung or crashed: what a step takes is not the answer then. */
function isEnded(report: OverviewReport): boolean {
  return report.advice[0]?.id.startsWith(OF_JOB) ?? false;
}

const STEP_FIGURES = ["min", "max", "count", "between_steps_percent", "profiling_cost_percent"] as const;
const OF_SEVERAL: readonly string[] = ["min", "max", "count"];

/** The figures that are known and that differ from each other: one step has no longest, and a cost of
 * profiling within the noise, or below nothing, is none. */
function stepFigures(report: OverviewReport): readonly (keyof RowOf<"overview", "step_time">)[] {
  const isOne = report.step_time_ms.count === 1;
  const isCost = report.profiling_cost_is_clear !== false && (report.profiling_cost_percent ?? 0) >= 0;
  const known: Readonly<Record<string, unknown>> = {
    ...report.step_time_ms,
    between_steps_percent: report.between_steps_percent,
    profiling_cost_percent: isCost ? report.profiling_cost_percent : null,
  };
  return STEP_FIGURES.filter((name) => typeof known[name] === "number" && !(isOne && OF_SEVERAL.includes(name)));
}

/** `input-bound: 33.4 % of ...` as its two halves. */
function splitVerdict(text: string): [string, string] {
  const cut = text.indexOf(": ");
  const [head, rest] = cut < 0 ? [text, ""] : [text.slice(0, cut), text.slice(cut + 2)];
  return [head === "unknown" ? "what limits it is not known" : head, rest]; // after "Each step takes 608 ms: "
}

const SHOWN_BESIDE = 2;
/** In a report, beside the first. */
const MOST_SENT = 3;

function AdviceCards({ report, pictures }: Pick<SummaryProps, "report" | "pictures">) {
  const [first, ...others] = report.advice;
  if (!first) return null;
  const shown = pictures ? MOST_SENT : SHOWN_BESIDE;
  const isBusy = isMachineBusy(report.verdict_text);
  return (
    <div class={`advice ${others.length ? "" : "alone"}`} role="region" aria-label="What to do first">
      <AdviceCard advice={first} first said={report.verdict_text} isBusy={isBusy} pictures={pictures} />
      {others.length > 0 && (
        <div class="advice-others list gap-l">
          {others.slice(0, shown).map((advice) => (
            <AdviceCard key={advice.id} advice={advice} isBusy={isBusy} pictures={pictures} />
          ))}
          {others.length > shown && (
            <a class="more" href={linkTo("advice")}>
              {others.length - shown} more
            </a>
          )}
        </div>
      )}
    </div>
  );
}

const OF_DEVICES: readonly string[] = ["device_count", "devices_used"];

/** The figures that this kind of recording has. */
function known(section: Figures): string[] {
  return section.fields.map((field) => field.name).filter((name) => section.values[name] !== null);
}

function EnvironmentCard({ sections }: { sections: Sections<"overview"> }) {
  const found = figuresOf(sections, "environment");
  const framework = frameworkName(found.values.framework) || null; // in its own spelling: `pytorch` as PyTorch
  const environment = { ...found, values: { ...found.values, framework } };
  const placement = figuresOf(sections, "placement");
  const hasDevices = environment?.values.device_count !== 0;
  return (
    <Card title="Environment">
      <FigureRow
        section={environment}
        names={known(environment).filter((name) => hasDevices || !OF_DEVICES.includes(name))}
      />
      {known(placement).length > 0 && <FigureRow section={placement} names={known(placement)} />}
    </Card>
  );
}

function MissingCard({ report }: { report: OverviewReport }) {
  if (!report.missing.length) return null;
  return (
    <Card title="Not in this capture">
      <ul class="lacks list gap-l">
        {report.missing.map((item) => (
          <li key={item.what}>
            <strong>{sentence(item.what)}</strong>
            <span class="muted">
              <Code text={item.remedy} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

/** Of several hosts, which one all the steps are of. */
export function onPace({ hosts, steps }: OverviewReport): string {
  return hosts.length > 1 && steps?.[0] ? ` on ${steps[0].slowest_host}, which sets the pace` : "";
}

/** How the steps were found, unless a warning above says it already. */
export function howNote(report: OverviewReport): string {
  return report.warnings.some((warning) => warning.includes(report.steps_how)) ? "" : report.steps_how;
}

/** The steps of the overview, with the interval of each. */
export function useGraphSteps(report: OverviewReport): GraphStep[] {
  const link = useStepLinks();
  return useMemo(
    () =>
      (report.steps ?? []).map((step) => ({
        step: step.step,
        name: step.name,
        duration_ms: step.duration_ms,
        complete: step.complete,
        usual: step.usual,
        parts: partsOfRow(step),
        foot: "",
        href: link(step.step, step.slowest_host),
        beside: besideMedian(step.step, step.slowest_host, report.steps?.length ?? 0),
      })),
    [report, link],
  );
}
