/** Chooses the session: a searchable list, newest first. */
import { useMemo, useState } from "preact/hooks";
import type { SessionInfo } from "../api";
import { bytes, cellText, duration, when } from "../format";
import { go, route, withParams } from "../router";
import { fact, refreshSessions, session, sessionId, sessionInfo, sessions, shortRun } from "../session";
import { LongName } from "../ui/basics";
import { Icon } from "../ui/icons";
import { Menu } from "../ui/menu";

const FRAMEWORKS: Readonly<Record<string, string>> = { tensorflow: "TensorFlow", jax: "JAX", pytorch: "PyTorch" };

/** The file types of a session. */
const FORMATS: Readonly<Record<string, string>> = { xspace: "xplane.pb", kineto: "trace.json" };

export function frameworkName(name: unknown): string {
  return typeof name === "string" ? (FRAMEWORKS[name] ?? name) : "";
}

export function openSessionNamed(id: string): void {
  go(withParams({ tool: route.value.tool, params: {} }, { session: id }));
}

export function SessionPicker() {
  const info = sessionInfo.value;
  return (
    <Menu
      label="Choose a session"
      align="left"
      buttonClass="picker session-picker"
      button={
        <>
          <span class="picker-main">
            {info ? <LongName text={shortRun(info.run)} whole={info.run} /> : (session.value?.run ?? "No session")}
          </span>
          <span class="picker-note">{facts()}</span>
          <Icon name="down" size={14} />
        </>
      }
    >
      {(close) => (
        <SessionList
          chosen={sessionId.value}
          onPick={(id) => {
            openSessionNamed(id);
            close();
          }}
        />
      )}
    </Menu>
  );
}

/** `TensorFlow · 16 × V100 · 2.65 s` */
function facts(): string {
  const devices = fact("device_count");
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
}

/** The same function each time, so that a list scrolls when it opens and not with every letter of a search. */
function intoView(button: HTMLButtonElement | null): void {
  button?.scrollIntoView({ block: "nearest" });
}

export function SessionList({ chosen, onPick }: SessionListProps) {
  const [text, setText] = useState("");
  const found = useMemo(() => matching(sessions.value?.sessions ?? [], text), [sessions.value, text]);
  const skipped = sessions.value?.skipped ?? [];
  return (
    <div class="session-list">
      <div class="filter">
        <Icon name="search" size={16} />
        <input
          type="search"
          aria-label="Search sessions"
          placeholder="Search sessions"
          value={text}
          ref={(box) => box?.focus({ preventScroll: true })}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button
          type="button"
          class="icon-button"
          aria-label="Look for new sessions"
          onClick={() => void refreshSessions()}
        >
          <Icon name="reload" size={16} />
        </button>
      </div>
      <ul class="choices">
        {found.map((each) => (
          <li key={each.id}>
            <button
              type="button"
              class="choice"
              aria-pressed={each.id === chosen}
              ref={each.id === chosen ? intoView : null}
              onClick={() => onPick(each.id)}
            >
              <span class="choice-main">{each.run}</span>
              <span class="choice-note">
                {when(each.modified)} · {each.hosts.length === 1 ? "1 host" : `${each.hosts.length} hosts`} ·{" "}
                {bytes(each.bytes)} · {each.formats.map((format) => FORMATS[format] ?? format).join(", ")}
              </span>
              <span class="choice-path">{each.path}</span>
            </button>
          </li>
        ))}
        {found.length === 0 && <li class="muted choice-none">No session matches</li>}
      </ul>
      {skipped.length > 0 && (
        <details class="skipped">
          <summary>{skipped.length === 1 ? "1 file was skipped" : `${skipped.length} files were skipped`}</summary>
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

function matching(all: readonly SessionInfo[], text: string): readonly SessionInfo[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter((each) => {
    const searched = [each.run, each.path, ...each.hosts, ...each.formats].join(" ").toLowerCase();
    return words.every((word) => searched.includes(word));
  });
}
