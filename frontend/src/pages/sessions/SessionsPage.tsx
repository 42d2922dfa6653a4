/** All sessions in one table: what each is limited by, how long its steps take; those that are ticked are compared. */

import { useMemo, useState } from "preact/hooks";
import { type SessionInfo, type TableSection, useResource } from "../../api";
import { colourOfCause } from "../../design/causes";
import { palette } from "../../design/theme";
import { duration, placesText, UNKNOWN } from "../../format";
import { awaited, type Glance, useGlance } from "../../frame/glances";
import { FORMATS, frameworkName, MOST_LISTED, matching, Sparkline, WordsLine } from "../../frame/SessionPicker";
import { allWords, wordsOf } from "../../people";
import { linkTo, route, setParams } from "../../router";
import { listedSessions, nameOf, recordedText, refreshSessions, sessions, titleOf } from "../../session";
import { termText } from "../../terms";
import { Failed, Loading, LongName } from "../../ui/basics";
import { SearchBox } from "../../ui/controls";
import { Icon } from "../../ui/icons";
import { NoSessions } from "../shared/Opening";
import { TableCard } from "../shared/sections";
import { FigureOverSessions } from "./FigureOverSessions";

const COLUMNS = ["Session", "Limited by", "Step", "Steps", "Cause", "Do first", "Framework", "Recorded"] as const;

export default function SessionsPage() {
  const [text, setText] = useState("");
  const compared = (route.value.params.compared ?? "").split(",").filter(Boolean);
  const hasFigure = Boolean(route.value.params.figure);
  const [ticked, setTicked] = useState<readonly string[]>(compared);
  const all = listedSessions.value;
  const found = useMemo(() => matching(all, text), [all, allWords.value, text]);
  if (sessions.value && all.length === 0) return <NoSessions sessions={sessions.value} />;
  const tick = (id: string) => setTicked(ticked.includes(id) ? ticked.filter((each) => each !== id) : [...ticked, id]);
  return (
    <>
      <header class="page-head baseline-row gap-l below-l wrap">
        <h1>Sessions</h1>
        <p class="page-summary muted">
          {[found, all].map((each) => each.length.toLocaleString("en-US")).join(" of ")}
          {awaited.value.size > 0 && `; ${awaited.value.size} to be read`}
        </p>
        <div class="page-controls row to-end gap-m rigid">
          <Compare ticked={ticked} />
          <button type="button" class="button" onClick={() => void refreshSessions()}>
            <Icon name="reload" size={16} /> Look again
          </button>
        </div>
      </header>
      {compared.length > 1 && <Compared ids={compared} />}
      {hasFigure && <FigureOverSessions />}
      <SearchBox
        label="Filter sessions"
        placeholder="Filter by name, host, label or note"
        value={text}
        onChange={setText}
      />
      <section class="card sessions-card" aria-label="Sessions" tabIndex={0}>
        <table class="sessions">
          <thead>
            <tr>
              <th>
                <span class="offscreen">Compare</span>
              </th>
              {COLUMNS.map((name) => (
                <th class={name === "Step" ? "number" : ""}>{name}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {found.slice(0, MOST_LISTED).map((each) => (
              <SessionRow key={each.id} info={each} isTicked={ticked.includes(each.id)} onTick={() => tick(each.id)} />
            ))}
          </tbody>
        </table>
        {found.length > MOST_LISTED && (
          <p class="muted">
            {`and ${(found.length - MOST_LISTED).toLocaleString("en-US")} more: filter by a part of the name`}
          </p>
        )}
      </section>
      {!hasFigure && all.length > 1 && <FigureOverSessions />}
    </>
  );
}

/** Two are compared page by page, more in a table. */
function Compare({ ticked }: { ticked: readonly string[] }) {
  const [before, after, ...more] = ticked;
  if (!before || !after) return <span class="muted">Tick two or more to compare them</span>;
  const pair = { session: after, with: before, host: null, steps: null, withSteps: null };
  const href = more.length ? linkTo("sessions", { compared: ticked.join(",") }) : linkTo("overview", pair);
  return (
    <a class="button accent" href={href}>
      {more.length ? `Compare the ${ticked.length}` : "Compare the two"}
    </a>
  );
}

/** How much longer or shorter the steps of several sessions are than those of the first. */
function Compared({ ids }: { ids: readonly string[] }) {
  const found = useResource<{ readonly sections: readonly TableSection[] }>(
    `api/compared?${ids.map((id) => `session=${encodeURIComponent(id)}`).join("&")}`,
  );
  if (found.state === "failed") return <Failed error={found.error} retry={found.retry} />;
  const section = found.state === "ready" && found.data.sections[0];
  if (!section) return <Loading what={`Comparing ${ids.length} sessions`} />;
  const stop = (
    <button type="button" class="button quiet" onClick={() => setParams({ compared: null }, "push")}>
      Stop comparing
    </button>
  );
  const heading = `Compared with ${section.columns?.run?.[0] ?? "the first"}`;
  return (
    <div class="below-l">
      <TableCard section={section} tool="runs" heading={heading} actions={stop} columns={SHOWN} />
    </div>
  );
}

const SHOWN = ["run", "step_ms", "change_percent", "change", "verdict", "cause", "cause_percent", "because"];

function SessionRow({ info, isTicked, onTick }: { info: SessionInfo; isTicked: boolean; onTick: () => void }) {
  const [row, glance] = useGlance<HTMLTableRowElement>(info.id);
  const title = titleOf(info);
  const hosts = glance?.hosts ?? placesText(info.hosts);
  return (
    <tr ref={row} class={isTicked ? "ticked" : ""} data-session={info.id}>
      <td style="grid-area: tick">
        <input type="checkbox" aria-label={`Compare ${title}`} checked={isTicked} onChange={onTick} />
      </td>
      <td class="sessions-name" style="grid-area: name">
        <a href={linkTo("overview", { session: info.id, host: null, steps: null, with: null, withSteps: null })}>
          <LongName text={nameOf(info)} whole={title} />
        </a>
        <WordsLine words={wordsOf(info.id)} />
      </td>
      {glance?.problem ? (
        <td colSpan={5} style="grid-area: first" class="muted cut" title={glance.problem}>
          {glance.problem}
        </td>
      ) : glance ? (
        <Known glance={glance} />
      ) : (
        <td colSpan={5} style="grid-area: first" class="muted">
          {awaited.value.has(info.id) ? "is being read" : "open it to read it"}
        </td>
      )}
      <td>
        {frameworkName(glance?.framework) || (
          <span class="muted">{info.formats.map((each) => FORMATS[each] ?? each).join(", ")}</span>
        )}
        <span class="muted">{hosts === "1 host" ? "" : `, ${hosts.replace(" of one host", "")}`}</span>
      </td>
      <td class="muted">{recordedText(info, glance?.recorded)}</td>
    </tr>
  );
}

function Known({ glance }: { glance: Glance }) {
  const look = palette.value;
  const { cause, cause_percent: share, long_step_ms: long, advice } = glance;
  return (
    <>
      <td class="wraps" style="grid-area: limit" title={termText(glance.limit)}>
        <span>{termText(glance.limit)}</span>
      </td>
      <td class="number" style="grid-area: step">
        {glance.step_ms === null ? UNKNOWN : duration(glance.step_ms)}
      </td>
      <td>
        <Sparkline times={glance.steps_ms} />
      </td>
      <td style="grid-area: cause">
        {cause && (
          <>
            <span class="oneline">
              <span class="swatch" style={{ background: colourOfCause(cause, look.surface) }} /> {termText(cause)}
            </span>{" "}
            {typeof share === "number" && `${Math.round(share)}\u00a0%`}
            {typeof long === "number" && <span class="muted">{` of a long step, ${duration(long)}`}</span>}
          </>
        )}
      </td>
      <td class="sessions-first wraps" style="grid-area: first" title={advice?.replaceAll("`", "")}>
        <span>{advice?.replaceAll("`", "")}</span>
      </td>
    </>
  );
}
