/** Captures running jobs: the settings, the progress of each worker, and the new session. */
import { useLayoutEffect, useState } from "preact/hooks";
import { type ApiError, asApiError, getJson, send } from "../api";
import { bytes } from "../format";
import { refreshSessions } from "../session";
import { remember, remembered } from "../storage";
import { Failed } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { Icon } from "../ui/icons";
import { type CaptureForm, checked, fromForm, isToldByWorkers, USUAL, withToken } from "./captureForm";
import { openSessionNamed } from "./openSession";

interface Worker {
  readonly address: string;
  readonly state: string;
  readonly message: string;
  readonly bytes: number | null;
}

interface RunningServer {
  readonly address: string;
  readonly program: string;
}

interface CaptureState {
  readonly state: string;
  readonly seconds_left: number | null;
  readonly workers: readonly Worker[];
  readonly session: string | null;
  readonly error: string | { readonly error: string; readonly hint: string } | null;
}

const POLL_MS = 400;
const MOST_LOOKS = 25;
const LONGEST_TOKEN = 500;
const ENDINGS: Readonly<Record<string, string>> = {
  done: "The capture is complete",
  failed: "The capture failed",
  cancelled: "The capture was cancelled",
};
const ENDED = /^(done|finished|failed|cancelled|canceled|error|ready|partial)$/;

export function CaptureDialog({ onClose }: { onClose: () => void }) {
  const [form, setForm] = useState<CaptureForm>(() => checked(remembered("capture")));
  const [token, setToken] = useState(""); // never remembered
  const [id, setId] = useState<string | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [sending, setSending] = useState(false);
  const problem = fromForm(form);

  const begin = async (event: Event) => {
    event.preventDefault();
    if (!problem.ok) return;
    remember("capture", form);
    setSending(true);
    setError(null);
    try {
      setId((await send<{ id: string }>("POST", "api/capture", withToken(problem.request, token))).id);
    } catch (failure) {
      setError(asApiError(failure));
    }
    setSending(false);
  };

  return (
    <Dialog title="Capture a profile" onClose={onClose} class="capture">
      {id === null ? (
        <form onSubmit={(event) => void begin(event)}>
          <Fields form={form} onChange={setForm} error={problem.ok ? null : problem.field} />
          <TokenField value={token} onChange={setToken} />
          {!problem.ok && form.addresses.trim() !== "" && (
            <p class="form-error" role="alert">
              {problem.error}
            </p>
          )}
          {error && <Failed error={error} />}
          <footer class="dialog-foot flex gap-m">
            <button type="button" class="button quiet" onClick={() => setForm({ ...USUAL, addresses: form.addresses })}>
              Default settings
            </button>
            <button type="submit" class="button accent" disabled={!problem.ok || sending}>
              <Icon name="capture" size={16} />{" "}
              {sending ? "Asking" : `Capture ${Number(form.duration_ms) / 1000 || ""} s`}
            </button>
          </footer>
        </form>
      ) : (
        <Running
          id={id}
          onAgain={() => setId(null)}
          onOpened={(session) => {
            void refreshSessions().then(() => openSessionNamed(session));
            onClose();
          }}
        />
      )}
    </Dialog>
  );
}

const LEVELS = {
  host_tracer_level: ["Host", ["0 · off", "1 · steps and marks", "2 · ops and transfers", "3 · everything"]],
  device_tracer_level: ["Device", ["0 · off", "1 · on"]],
  python_tracer_level: ["Python", ["0 · off", "1 · every call"]],
} as const;

interface FieldsProps {
  form: CaptureForm;
  onChange: (form: CaptureForm) => void;
  error: keyof CaptureForm | null;
}

function Fields({ form, onChange, error }: FieldsProps) {
  const set = (key: keyof CaptureForm) => (event: { currentTarget: { value: string } }) =>
    onChange({ ...form, [key]: event.currentTarget.value });
  const servers = useRunningServers();
  const offered = servers.filter((server) => !form.addresses.includes(server.address));
  const add = (address: string) =>
    onChange({ ...form, addresses: [form.addresses.trim(), address].filter(Boolean).join(", ") });
  const number = (key: "duration_ms" | "delay_ms" | "retries", label: string, note: string) => (
    <label class="field">
      <span>{label}</span>
      <input inputMode="numeric" value={form[key]} aria-invalid={error === key} onInput={set(key)} />
      <small>{note}</small>
    </label>
  );
  return (
    <div class="fields">
      <label class="field wide">
        <span>Addresses</span>
        <textarea
          rows={2}
          placeholder="localhost:6009, worker-1:6009"
          value={form.addresses}
          aria-invalid={error === "addresses" && form.addresses.trim() !== ""}
          onInput={set("addresses")}
          autofocus
        />
        <small>
          Host and port of each job that runs a profiler server (stepscope.server.start,
          tf.profiler.experimental.server.start, jax.profiler.start_server), with commas or on lines of their own
        </small>
      </label>
      {offered.length > 0 && (
        <p class="field wide">
          <span>Running here</span>
          {offered.map((server) => (
            <button type="button" class="button quiet" key={server.address} onClick={() => add(server.address)}>
              {server.address} ({server.program})
            </button>
          ))}
        </p>
      )}
      {number("duration_ms", "Duration, ms", "long enough for a few steps")}
      {number("delay_ms", "Delay, ms", "until all workers start together; empty: chosen for you")}
      {number("retries", "Retries", "for a worker that is busy or recorded no events")}
      {(Object.keys(LEVELS) as (keyof typeof LEVELS)[]).map((key) => (
        <label class="field" key={key}>
          <span>{LEVELS[key][0]} level</span>
          <select value={form[key]} onChange={set(key)}>
            {LEVELS[key][1].map((text, level) => (
              <option key={text} value={String(level)}>
                {text}
              </option>
            ))}
          </select>
        </label>
      ))}
    </div>
  );
}

function TokenField({ value, onChange }: { value: string; onChange: (token: string) => void }) {
  return (
    <label class="field token">
      <span>Token of the job's port</span>
      <input
        type="password"
        autocomplete="off"
        maxLength={LONGEST_TOKEN}
        value={value}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      <small>only for jobs that ask for one; empty: that of this server's STEPSCOPE_CAPTURE_TOKEN</small>
    </label>
  );
}

/** The profiler servers of this user's jobs on the server's machine; none until the answer is there. */
function useRunningServers(): readonly RunningServer[] {
  const [servers, setServers] = useState<readonly RunningServer[]>([]);
  useLayoutEffect(() => {
    getJson<{ servers: readonly RunningServer[] }>("api/capture/addresses").then(
      (answer) => setServers(answer.servers ?? []),
      () => setServers([]),
    );
  }, []);
  return servers;
}

/** The running capture; polls the server until it has ended. */
function Running({ id, onAgain, onOpened }: { id: string; onAgain: () => void; onOpened: (session: string) => void }) {
  const [state, setState] = useState<CaptureState | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const url = `api/capture/${encodeURIComponent(id)}`;
  useLayoutEffect(() => {
    let timer = 0;
    let gone = false;
    let looks = 0;
    const ask = async () => {
      try {
        const now = await getJson<CaptureState>(url);
        if (gone) return;
        setState(now);
        if (now.session && !failureOf(now)) onOpened(now.session);
        else if (!ENDED.test(now.state) || (isStillLookedFor(now) && looks++ < MOST_LOOKS))
          timer = window.setTimeout(() => void ask(), POLL_MS);
      } catch (failure) {
        if (!gone) setError(asApiError(failure));
      }
    };
    void ask();
    return () => {
      gone = true;
      window.clearTimeout(timer);
    };
  }, [url]);
  const cancel = () => void send("DELETE", url).catch((failure: unknown) => setError(asApiError(failure)));
  const ended = state !== null && ENDED.test(state.state);
  const failure = state && failureOf(state);
  return (
    <div class="running">
      <div class="row gap-l title-size" role="status">
        {!ended && !error && <span class="spinner" aria-hidden="true" />}
        <strong>{ended ? (ENDINGS[state.state] ?? `The capture ended: ${state.state}`) : "Capturing"}</strong>
        {!ended && typeof state?.seconds_left === "number" && (
          <span class="to-end">{Math.ceil(state.seconds_left)} s left</span>
        )}
      </div>
      <ul class="workers">
        {(state?.workers ?? []).map((worker) => (
          <li key={worker.address} class={worker.state} {...(worker.state === "failed" ? { role: "alert" } : {})}>
            <span class="strong breaks">{worker.address}</span>
            <span class="worker-state">{worker.state}</span>
            <span class="muted">
              {[worker.message, worker.bytes ? bytes(worker.bytes) : ""].filter(Boolean).join(" · ")}
            </span>
          </li>
        ))}
      </ul>
      {failure && !isToldByWorkers(state.workers, failure) && (
        <p class="form-error" role="alert">
          {failure}
        </p>
      )}
      {error && <Failed error={error} />}
      <footer class="dialog-foot flex gap-m">
        {ended || error ? (
          <>
            {state?.session && (
              <button type="button" class="button" onClick={() => onOpened(state.session as string)}>
                Open what was captured
              </button>
            )}
            <button type="button" class="button accent" onClick={onAgain}>
              Change the settings
            </button>
          </>
        ) : (
          <button type="button" class="button" onClick={cancel}>
            Cancel
          </button>
        )}
      </footer>
    </div>
  );
}

/** Right after the end, the server may not have found the new session yet. */
function isStillLookedFor(state: CaptureState): boolean {
  return state.state === "done" && state.session === null;
}

function failureOf(state: CaptureState): string | null {
  if (!state.error) return null;
  return typeof state.error === "string"
    ? state.error
    : [state.error.error, state.error.hint].filter(Boolean).join("; ");
}
