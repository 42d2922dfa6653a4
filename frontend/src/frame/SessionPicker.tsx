/** Chooses the session: a searchable list, the starred first, then the newest. */

import { useMemo, useState } from "preact/hooks";
import type { SessionInfo } from "../api";
import { bytes, cellText, counted, duration, placesText } from "../format";
import { allWords, mayLabel, type Words, wordsOf } from "../people";
import { linkTo } from "../router";
import {
  fact,
  listedSessions,
  recordedText,
  refreshSessions,
  session,
  sessionId,
  sessionInfo,
  sessions,
  shortRun,
  titleOf,
} from "../session";
import { termText } from "../terms";
import { LongName } from "../ui/basics";
import { IconButton, SearchBox } from "../ui/controls";
import { Icon } from "../ui/icons";
import { Menu } from "../ui/menu";
import { editedSession } from "./dialogs";
import { type Glance, glances, sparkline, useGlance } from "./glances";
import { openSessionNamed } from "./openSession";
import { setDeleted, toggleStar } from "./quickChanges";

const FRAMEWORKS: Readonly<Record<string, string>> = { tensorflow: "TensorFlow", jax: "JAX", pytorch: "PyTorch" };

/** The file types of a session. */
export const FORMATS: Readonly<Record<string, string>> = {
  xspace: "xplane.pb",
  kineto: "trace.json",
  "nsight-sqlite": "Nsight Systems",
};

export function frameworkName(name: unknown): string {
  return typeof name === "string" ? (FRAMEWORKS[name] ?? name) : "";
}

export function SessionPicker() {
  const info = sessionInfo.value;
  return (
    <Menu
      label="Choose a session"
      isTelling
      align="left"
      buttonClass="picker session-picker"
      button={
        <>
          <span class="picker-main cut strong">
            {info ? (
              <LongName text={wordsOf(info.id).title || shortRun(info.run)} whole={info.run} />
            ) : (
              (session.value?.run ?? "No session")
            )}
          </span>
          <span class="picker-note">{facts()}</span>
          <Icon name="down" size={14} />
        </>
      }
    >
      {(close) => (
        <SessionList
          chosen={sessionId.value}
          onLeave={close}
          onPick={(id) => {
            openSessionNamed(id);
            close();
          }}
          onEdit={(id) => {
            close(); // first: the focus goes back to what has it now
            editedSession.value = id;
          }}
        />
      )}
    </Menu>
  );
}

/** `TensorFlow · 16 × V100 · 2.65 s` */
function facts(): string {
  const devices = fact("devices_used") || fact("device_count");
  const type = fact("device_type");
  const length = fact("duration_ms") ?? fact("capture_ms");
  const parts = [frameworkName(fact("framework"))];
  if (type)
    parts.push(typeof devices === "number" && devices > 1 ? `${devices} × ${cellText(type, "")}` : cellText(type, ""));
  if (typeof length === "number") parts.push(duration(length));
  return parts.filter(Boolean).join(" · ");
}

interface SessionListProps {
  chosen: string | null;
  onPick: (id: string) => void;
  /** Changes what is said of a session; without it sessions are only chosen. */
  onEdit?: (id: string) => void;
  /** Before another page is shown. */
  onLeave?: () => void;
}

/** The same function each time, so that a list scrolls when it opens and not with every letter of a search. */
function intoView(button: HTMLButtonElement | null): void {
  const row = button?.closest("li");
  const pane = row?.closest(".menu-pane");
  row?.scrollIntoView({ block: "start" });
  // Near the end of the list another row is the first one, and the search box would lie on half of it.
  const edge = pane?.querySelector(".filter")?.getBoundingClientRect().bottom ?? 0;
  const boxes = [...(row?.parentElement?.children ?? [])].map((each) => each.getBoundingClientRect());
  const cut = boxes.find((box) => box.top < edge && box.bottom > edge);
  if (pane && cut) pane.scrollTop -= edge - cut.top;
}

/** Likewise: a list that is drawn again leaves the focus where it is. */
function takeFocus(box: HTMLInputElement | null): void {
  box?.focus({ preventScroll: true });
}

export function SessionList({ chosen, onPick, onEdit, onLeave }: SessionListProps) {
  const [text, setText] = useState("");
  const found = useMemo(() => matching(listedSessions.value, text), [listedSessions.value, allWords.value, text]);
  const skipped = sessions.value?.skipped ?? [];
  return (
    <div class="session-list">
      <SearchBox
        label="Search sessions"
        value={text}
        box={takeFocus}
        onChange={setText}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || !text || !found[0]) return;
          event.preventDefault(); // the button, which gets the focus back, is not pressed
          onPick(found[0].id);
        }}
      >
        <IconButton
          icon="reload"
          size={16}
          isLarge
          label="Look for new sessions"
          onClick={() => void refreshSessions()}
        />
      </SearchBox>
      <ul class="choices">
        {found.slice(0, MOST_LISTED).map((each) => (
          <li key={each.id} class="session-row">
            <button
              type="button"
              class="choice"
              aria-pressed={each.id === chosen}
              title={each.path}
              ref={each.id === chosen ? intoView : null}
              onClick={() => onPick(each.id)}
            >
              <span class="strong breaks">{titleOf(each)}</span>
              <WordsLine words={wordsOf(each.id)} />
              <GlanceLine id={each.id} />
              <span class="muted minor breaks">
                {[
                  recordedText(each, glances.value[each.id]?.recorded),
                  glances.value[each.id]?.hosts ?? placesText(each.hosts),
                  bytes(each.bytes),
                  each.formats.map((format) => FORMATS[format] ?? format).join(", "),
                ].join(" · ")}
              </span>
            </button>
            <RowActions info={each} onEdit={onEdit} />
          </li>
        ))}
        {found.length > MOST_LISTED && (
          <li class="muted choice-none">
            {`and ${(found.length - MOST_LISTED).toLocaleString("en-US")} more: type a part of the name`}
          </li>
        )}
        {found.length === 0 && <li class="muted choice-none">No session matches</li>}
      </ul>
      {onEdit && (
        <a class="more" href={linkTo("sessions")} onClick={onLeave}>
          All sessions side by side
        </a>
      )}
      {onEdit && <Deleted />}
      {skipped.length > 0 && (
        <details class="skipped">
          <summary>{counted(skipped.length, "file")} skipped</summary>
          <ul>
            {skipped.map((each) => (
              <li key={each.path}>
                {each.path}: {each.reason}
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

/** Labels, and the first line of the note. */
export function WordsLine({ words }: { words: Words }) {
  if (!words.labels.length && !words.note) return null;
  return (
    <span class="words-line row wrap gap-s minor">
      {words.labels.map((label) => (
        <span class="badge cut inline-row gap-m muted minor" key={label}>
          {label}
        </span>
      ))}
      {words.note && <span class="cut">{words.note.split("\n", 1)[0]}</span>}
    </span>
  );
}

/** The star, which everybody sees, and what only those who may label can do. */
function RowActions({ info, onEdit }: { info: SessionInfo; onEdit: ((id: string) => void) | undefined }) {
  const mayChange = onEdit && mayLabel();
  if (!mayChange && !wordsOf(info.id).starred) return null;
  return <span class="row-actions">{mayChange ? <Changes info={info} onEdit={onEdit} /> : <Star id={info.id} />}</span>;
}

function Star({ id }: { id: string }) {
  if (!wordsOf(id).starred) return null;
  return (
    <span class="star on" role="img" aria-label="Starred">
      <Icon name="star" size={16} />
    </span>
  );
}

function Changes({ info, onEdit }: { info: SessionInfo; onEdit: (id: string) => void }) {
  const { starred } = wordsOf(info.id);
  return (
    <>
      <IconButton
        icon="star"
        size={16}
        class={`star ${starred ? "on" : ""}`}
        label={`Star ${titleOf(info)}`}
        aria-pressed={starred}
        onClick={() => void toggleStar(info.id)}
      />
      <IconButton icon="edit" size={16} label={`About ${titleOf(info)}`} onClick={() => onEdit(info.id)} />
    </>
  );
}

/** The sessions that were deleted, for those who may take that back. */
function Deleted() {
  const gone = (sessions.value?.sessions ?? []).filter((each) => wordsOf(each.id).deleted);
  if (!gone.length || !mayLabel()) return null;
  return (
    <details class="skipped">
      <summary>{counted(gone.length, "session")} deleted</summary>
      <ul class="plain-list">
        {gone.map((each) => (
          <li key={each.id}>
            {titleOf(each)}{" "}
            <button type="button" class="button quiet" onClick={() => void setDeleted(each.id, false)}>
              Restore
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}

/** More are found by typing: a logdir may hold a hundred thousand. */
export const MOST_LISTED = 200;

/** What the server knows of a session that it read before: devices, verdict, step times. */
function GlanceLine({ id }: { id: string }) {
  const [line, glance] = useGlance<HTMLSpanElement>(id);
  return (
    <span class="glance" ref={line}>
      {glance && <GlanceFacts glance={glance} />}
    </span>
  );
}

function GlanceFacts({ glance }: { glance: Glance }) {
  if (glance.problem) return <span class="muted cut">{glance.problem}</span>;
  const devices = Number(glance.devices_used || glance.device_count || 0);
  const type = glance.device_type && (devices > 1 ? `${devices} × ${glance.device_type}` : glance.device_type);
  return (
    <>
      <strong>{termText(glance.limit)}</strong>
      {glance.step_ms !== null && <span>{`${duration(glance.step_ms)} a step`}</span>}
      <Sparkline times={glance.steps_ms} />
      <span class="muted">{[frameworkName(glance.framework), type].filter(Boolean).join(", ")}</span>
    </>
  );
}

/** Step times in the order of the steps. */
export function Sparkline({ times }: { times: readonly number[] }) {
  const path = sparkline(times);
  if (!path) return null;
  return (
    <svg class="sparkline" viewBox="0 0 64 18" width="64" height="18" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}

/** The sessions that hold every word of a text in their names, hosts, labels or notes; the starred first. */
export function matching(all: readonly SessionInfo[], text: string): readonly SessionInfo[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter((each) => {
    const { title, labels, note } = wordsOf(each.id);
    const searched = [each.run, each.path, ...each.hosts, ...each.formats, title, ...labels, note];
    return words.every((word) => searched.join(" ").toLowerCase().includes(word));
  });
  return [...found.filter((each) => wordsOf(each.id).starred), ...found.filter((each) => !wordsOf(each.id).starred)];
}
