/** Chooses the session: a searchable list, newest first. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { SessionInfo } from "../api";
import { bytes, cellText, duration, when } from "../format";
import { fact, refreshSessions, session, sessionId, sessionInfo, sessions, shortRun } from "../session";
import { termText } from "../terms";
import { LongName } from "../ui/basics";
import { Icon } from "../ui/icons";
import { Menu } from "../ui/menu";
import { type Glance, glances, sparkline, wantGlance } from "./glances";
import { openSessionNamed } from "./openSession";

const FRAMEWORKS: Readonly<Record<string, string>> = { tensorflow: "TensorFlow", jax: "JAX", pytorch: "PyTorch" };

/** The file types of a session. */
const FORMATS: Readonly<Record<string, string>> = { xspace: "xplane.pb", kineto: "trace.json" };

export function frameworkName(name: unknown): string {
  return typeof name === "string" ? (FRAMEWORKS[name] ?? name) : "";
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
        {found.slice(0, MOST_LISTED).map((each) => (
          <li key={each.id}>
            <button
              type="button"
              class="choice"
              aria-pressed={each.id === chosen}
              ref={each.id === chosen ? intoView : null}
              onClick={() => onPick(each.id)}
            >
              <span class="choice-main">{each.run}</span>
              <GlanceLine id={each.id} />
              <span class="choice-note">
                {when(each.modified)} · {each.hosts.length === 1 ? "1 host" : `${each.hosts.length} hosts`} ·{" "}
                {bytes(each.bytes)} · {each.formats.map((format) => FORMATS[format] ?? format).join(", ")}
              </span>
              <span class="choice-path">{each.path}</span>
            </button>
          </li>
        ))}
        {found.length > MOST_LISTED && (
          <li class="muted choice-none">
            {`and ${(found.length - MOST_LISTED).toLocaleString("en-US")} more: type a part of the name`}
          </li>
        )}
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

/** More are found by typing: a logdir may hold a hundred thousand. */
const MOST_LISTED = 200;

/** What the server knows of a session that it read before: devices, verdict, step times. */
function GlanceLine({ id }: { id: string }) {
  const line = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    const watch = new IntersectionObserver((seen) => seen.some((each) => each.isIntersecting) && wantGlance(id));
    if (line.current) watch.observe(line.current);
    return () => watch.disconnect();
  }, [id]);
  const glance = glances.value[id];
  return (
    <span class="glance" ref={line}>
      {glance && <GlanceFacts glance={glance} />}
    </span>
  );
}

function GlanceFacts({ glance }: { glance: Glance }) {
  const devices = Number(glance.device_count ?? 0);
  const type = glance.device_type && (devices > 1 ? `${devices} × ${glance.device_type}` : glance.device_type);
  const path = sparkline(glance.steps_ms);
  return (
    <>
      <strong>{termText(glance.verdict)}</strong>
      {glance.has_steps && glance.step_time_ms !== null && <span>{`${duration(glance.step_time_ms)} a step`}</span>}
      {path && (
        <svg viewBox="0 0 64 18" width="64" height="18" aria-hidden="true">
          <path d={path} />
        </svg>
      )}
      <span class="muted">{[frameworkName(glance.framework), type].filter(Boolean).join(", ")}</span>
    </>
  );
}

function matching(all: readonly SessionInfo[], text: string): readonly SessionInfo[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter((each) => {
    const searched = [each.run, each.path, ...each.hosts, ...each.formats].join(" ").toLowerCase();
    return words.every((word) => searched.includes(word));
  });
}
