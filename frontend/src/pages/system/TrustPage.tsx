/** Whether the recording can be trusted: each doubt with what it does and what to do, what is missing, the checks. */
import type { Doubt, ToolAnswer } from "../../api";
import { counted } from "../../format";
import { session } from "../../session";
import { Card, Code, sentence } from "../../ui/basics";
import { Icon } from "../../ui/icons";
import { DoubtList } from "../shared/Doubts";
import { Findings } from "../shared/Findings";
import "./trust.css";

export default function Trust({ report }: ToolAnswer<"trust">) {
  const doubts = session.value?.doubts ?? [];
  const missing = report.missing ?? [];
  const checks = report.checks ?? [];
  const repairs = report.repairs ?? [];
  const [holds, untold] = ["yes", "unknown"].map((state) => checks.filter((row) => row.holds === state));
  const said = [...doubts.map(({ found }) => found), ...repairs.map(({ found }) => String(found))];
  const notes = report.warnings.filter((text) => !said.some((each) => text.includes(cause(each))));
  return (
    <>
      <Findings lines={verdictOf(doubts, holds?.length ?? 0)} />
      {doubts.length > 0 && (
        <Card title={doubts.length === 1 ? "The doubt" : `The ${doubts.length} doubts`}>
          <DoubtList doubts={doubts} hosts={report.hosts.length} />
        </Card>
      )}
      {missing.length > 0 && (
        <Card title="Not recorded" note="and how to record it">
          <ul class="trust-list">
            {missing.map(({ what, remedy }) => (
              <Line key={what} icon="help" strong={String(what)} text={String(remedy)} />
            ))}
          </ul>
        </Card>
      )}
      {repairs.length + notes.length > 0 && (
        <Card title="Repaired, or read in another way" note="the figures count on it">
          <ul class="trust-list">
            {repairs.map((row) => (
              <Line
                key={`${row.host} ${row.repair}`}
                icon="edit"
                strong={report.hosts.length > 1 ? `${row.host}: ${row.found}` : String(row.found)}
                text={`${row.done}; without it wrong: ${row.effect}`}
              />
            ))}
            {notes.map((text) => (
              <Line key={text} icon="edit" text={text} />
            ))}
          </ul>
        </Card>
      )}
      <Card title={`${counted(holds?.length ?? 0, "check")} passed`}>
        <ul class="ticks">
          {holds?.map(({ rule }) => (
            <li key={rule}>
              <Icon name="check" size={16} /> {sentence(String(rule))}
            </li>
          ))}
        </ul>
        {untold && untold.length > 0 && (
          <p class="above-m muted">
            Not checked, as nothing that could break it was recorded: {untold.map(({ rule }) => rule).join("; ")}.
          </p>
        )}
      </Card>
    </>
  );
}

/** What a doubt and the warning about the same fault share. */
function cause(found: string): string {
  return found.replace(/^a part of the recording is missing: /, "");
}

function verdictOf(doubts: readonly Doubt[], passed: number): readonly string[] {
  const grave = doubts.filter((doubt) => doubt.grave === "yes").length;
  if (grave) return [`Record again first: ${grave === 1 ? "a doubt concerns" : `${grave} doubts concern`} the verdict`];
  if (doubts.length)
    return [`${counted(doubts.length, "doubt")}, ${doubts.length === 1 ? "which is not" : "none of them"} grave`];
  return [`Nothing speaks against this recording: ${counted(passed, "check")} passed`];
}

function Line({ icon, strong = "", text }: { icon: string; strong?: string; text: string }) {
  return (
    <li>
      <Icon name={icon} size={16} />
      <span>
        {strong && (
          <strong>
            <Code text={sentence(strong)} />.
          </strong>
        )}{" "}
        <span class="muted">
          <Code text={sentence(text)} />
        </span>
      </span>
    </li>
  );
}
