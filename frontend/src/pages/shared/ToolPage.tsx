/** What all pages of tools share: the title, what the numbers come from, the states, the warnings. */
import type { ComponentChildren } from "preact";
import { address, type Report, type ToolAnswer, toolAddress, useResource } from "../../api";
import { placesText } from "../../format";
import { linkTo } from "../../router";
import type { ReportOf, ToolName } from "../../sections";
import { answerAddress, chosenPart, config, host, otherId, session, sessionId, steps } from "../../session";
import { toolEntry } from "../../tools";
import { Code, Empty, Failed, Loading, sentence, Warnings } from "../../ui/basics";
import { FileMenu } from "../../ui/FileMenu";
import { hint } from "../../ui/hint";
import { Icon } from "../../ui/icons";
import { Comparison } from "../compare/Comparison";
import { Doubts, ownWarnings } from "./Doubts";
import { Caveats } from "./Findings";
import { PageHead } from "./PageHead";
import { ToolOfPage } from "./sections";

interface ToolPageProps<T extends ToolName, R extends Report = ReportOf<T>> {
  tool: T;
  children: (answer: ToolAnswer<T, R>) => ComponentChildren;
  /** Controls beside the title. */
  controls?: ComponentChildren;
  /** The start page's title is its verdict. */
  headless?: boolean;
}

export function ToolPage<T extends ToolName, R extends Report = ReportOf<T>>(props: ToolPageProps<T, R>) {
  const { tool, children, controls, headless = false } = props;
  const entry = toolEntry(tool);
  const found = useResource<ToolAnswer<T, R>>(answerAddress(tool));
  const answer = found.state === "ready" ? found.data : null;
  const own = answer && tool !== "trust" ? ownWarnings(answer) : [];
  return (
    <>
      <PageHead
        tool={tool}
        isUntitled={headless}
        controls={
          <>
            {controls}
            {answer && <Doubts />}
            {answer && <Origin report={answer.report} />}
            <Exports tool={tool} />
          </>
        }
      />
      {found.state === "loading" && <Loading what={`Computing ${entry?.heading ?? tool}`} />}
      {found.state === "failed" && <Failed error={found.error} retry={found.retry} />}
      {answer && (answer.missing || WITHOUT_FINDINGS.includes(tool)) && <Warnings items={own} />}
      {answer && !answer.missing && otherId.value && <Comparison tool={tool} />}
      <ToolOfPage.Provider value={tool}>
        <Caveats.Provider value={own}>
          {answer && (answer.missing ? <Missing text={answer.missing} /> : children(answer))}
        </Caveats.Provider>
      </ToolOfPage.Provider>
    </>
  );
}

/** Pages that begin with something else than a sentence. */
const WITHOUT_FINDINGS: readonly ToolName[] = ["overview", "steps", "hlo-stats", "memory-profile", "memory-viewer"];

/** What a tool without data lacks, and how to record it. */
export function Missing({ text }: { text: string }) {
  return (
    <Empty title={chosenPart() ? "The selection has no data for this page" : "This profile has no data for this page"}>
      <p>
        <Code text={sentence(text)} />
      </p>
      {chosenPart() && <p>{chosenPart()}</p>}
      <p>
        <a class="button" href={linkTo("overview")}>
          Back to the summary
        </a>
      </p>
    </Empty>
  );
}

/** The hosts that the numbers cover, and whether something of them is missing. */
export function Origin({ report }: { report: Report }) {
  const files = (session.value?.hosts ?? [])
    .filter((each) => report.hosts.includes(each.name))
    .map((each) => each.file);
  const text = report.hosts.length === 1 ? `${report.hosts[0]}` : placesText(report.hosts);
  return (
    <>
      {report.partial && (
        <span
          class="badge cut inline-row gap-m muted minor warn"
          tabIndex={0}
          {...hint(
            "Partial",
            "A part of the recording is missing or damaged; the warnings say which. " +
              "The numbers cover what could be read.",
          )}
        >
          <Icon name="warning" size={14} /> partial
        </span>
      )}
      <span
        class="badge cut inline-row gap-m muted minor"
        tabIndex={0}
        {...hint(
          "Where the numbers come from",
          files.slice(0, 12).join("\n") + (files.length > 12 ? `\nand ${files.length - 12} more` : ""),
        )}
      >
        <span class="cut">
          {text}
          {steps.value ? ` · steps ${steps.value}` : ""}
        </span>
      </span>
    </>
  );
}

const FORMATS = [
  ["csv", "CSV, the main table"],
  ["json", "JSON, everything"],
  ["parquet", "Parquet"],
  ["arrow", "Arrow"],
] as const;

function Exports({ tool }: { tool: string }) {
  const id = sessionId.value;
  if (!id) return null;
  const query = { host: host.value, steps: steps.value };
  const report = {
    label: "HTML report, to send",
    name: "report.html",
    href: `api/sessions/${encodeURIComponent(id)}/report`,
  };
  const tables = FORMATS.map(([suffix, label]) => ({
    ...{ label, name: `${tool}.${suffix}` },
    href: address(toolAddress(id, tool, `.${suffix}`), query),
  }));
  return <FileMenu label="Export" text="Export" files={config.value?.report ? [report, ...tables] : tables} />;
}
