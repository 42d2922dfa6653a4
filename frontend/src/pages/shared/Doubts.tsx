/** What makes the figures of a session less certain: the same list behind the pill of every page and on Trust. */
import type { Doubt, Report } from "../../api";
import { counted } from "../../format";
import { linkTo } from "../../router";
import { session } from "../../session";
import { Code, sentence } from "../../ui/basics";
import { Icon } from "../../ui/icons";
import { Menu } from "../../ui/menu";

/** The doubts about the recording. */
export function Doubts() {
  const doubts = session.value?.doubts ?? [];
  if (!doubts.length) return null;
  return (
    <Menu
      label="Doubts about the recording"
      isTelling
      buttonClass="badge cut inline-row gap-m muted minor warn"
      button={
        <>
          <Icon name="warning" size={14} /> Recording: {counted(doubts.length, "doubt")}
        </>
      }
    >
      {() => (
        <div class="doubts">
          <DoubtList doubts={doubts} hosts={session.value?.hosts.length ?? 1} />
          <p>
            <a href={linkTo("trust")}>What else speaks for and against this recording</a>
          </p>
        </div>
      )}
    </Menu>
  );
}

/** What a page alone has to say of its figures; what all pages say of a chosen host has no host in front. */
export function ownWarnings({ report, missing }: { report: Report; missing: string | null }): readonly string[] {
  const known = session.value?.warnings ?? [];
  return report.warnings.filter((text) => {
    const [found = text] = text.split("; may be wrong: ");
    return text !== missing && !known.some((each) => each.includes(found));
  });
}

export function DoubtList({ doubts, hosts }: { doubts: readonly Doubt[]; hosts: number }) {
  return (
    <ul class="trust-list">
      {doubts.map((doubt) => (
        <li key={doubt.found} class={doubt.grave === "yes" ? "fails" : "limits"}>
          <Icon name="warning" size={16} />
          <DoubtText doubt={doubt} where={hosts > 1 ? whereOf(doubt.hosts ?? [], hosts) : ""} />
        </li>
      ))}
    </ul>
  );
}

function whereOf(names: readonly string[], hosts: number): string {
  if (names.length < 2) return names.length ? `${names[0]}: ` : "";
  return names.length === hosts
    ? `${names[0]}, and likewise the others: `
    : `${names[0]} and ${names.length - 1} more: `;
}

/** A warning says in one sentence what a doubt says in three. */
function DoubtText({ doubt, where }: { doubt: Doubt; where: string }) {
  const at = doubt.doubtful ? -1 : doubt.found.search(/[;:] /);
  const head = at < 0 ? doubt.found : doubt.found.slice(0, at);
  return (
    <span>
      <strong>
        <Code text={sentence(where + head)} />.
      </strong>
      {at >= 0 && (
        <span class="muted">
          {" "}
          <Code text={sentence(doubt.found.slice(at + 2))} />
        </span>
      )}
      {doubt.doubtful && (
        <span class="muted">
          {" "}
          May be wrong: <Code text={doubt.doubtful} />.
        </span>
      )}
      {doubt.fix && (
        <span>
          {" "}
          To avoid it: <Code text={doubt.fix} />.
        </span>
      )}
    </span>
  );
}
