/** The state of the whole page: the server's settings, its sessions, and the open session. */
import { computed, effect, signal } from "@preact/signals";
import {
  type ApiError,
  address,
  asApiError,
  type Cell,
  type Config,
  forget,
  getJson,
  type SessionInfo,
  type SessionState,
  type Sessions,
  toolAddress,
} from "./api";
import { setCategoryRules } from "./design/colours";
import { when } from "./format";
import { allWords, refreshWords, wordsOf } from "./people";
import { go, route, withParams } from "./router";

export const config = signal<Config | null>(null);
export const sessions = signal<Sessions | null>(null);
export const session = signal<SessionState | null>(null);
/** Why the page cannot start at all, or why its session cannot be opened. */
export const startError = signal<ApiError | null>(null);
export const sessionError = signal<ApiError | null>(null);

export const sessionId = computed(() => route.value.params.session ?? null);
export const host = computed(() => route.value.params.host ?? null);
export const steps = computed(() => route.value.params.steps ?? null);
export const isReady = computed(() => session.value?.id === sessionId.value && session.value?.state === "ready");

export const sessionInfo = computed<SessionInfo | null>(
  () => sessions.value?.sessions.find((each) => each.id === sessionId.value) ?? null,
);

/** The sessions that nobody has deleted, the newest first. */
export const listedSessions = computed<readonly SessionInfo[]>(() => {
  const said = allWords.value?.sessions ?? {};
  return (sessions.value?.sessions ?? []).filter((each) => !said[each.id]?.deleted);
});

/** When it was recorded: as stated, else by its name; the time of its files, which may be copies, is said to be. */
export function recordedText({ run, modified }: SessionInfo, stated?: string | null): string {
  if (stated) return when(Date.parse(stated) / 1e3);
  const found = /(\d{4})_(\d\d)_(\d\d)_(\d\d)_(\d\d)_(\d\d)/.exec(run)?.slice(1).map(Number);
  if (!found) return `file of ${when(modified)}`;
  const [year = 0, month = 1, ...rest] = found;
  return when(new Date(year, month - 1, ...rest).getTime() / 1e3);
}

/** The title that somebody gave to a session, otherwise its run. */
export function titleOf(info: SessionInfo): string {
  return wordsOf(info.id).title || info.run;
}

/** The title that somebody gave to a session, otherwise its short name. */
export function nameOf(info: SessionInfo): string {
  return wordsOf(info.id).title || shortRun(info.run);
}

/** A session's name without the time at its end, unless that is what tells it from another one. */
export function shortRun(run: string): string {
  const head = withoutTime(run);
  const alike = (sessions.value?.sessions ?? []).filter((each) => withoutTime(each.run) === head);
  return alike.length > 1 ? run : head;
}

function withoutTime(run: string): string {
  return run.replace(/(?<=.)\/\d{4}(?:[_-]\d{2}){5}$/, "");
}

/** The address of a tool's answer for the chosen host and steps; null while the session is being read. */
export function answerAddress(tool: string, suffix = ""): string | null {
  if (!isReady.value || !sessionId.value) return null;
  return address(toolAddress(sessionId.value, tool, suffix), { host: host.value, steps: steps.value });
}

/** Which part of the session is selected, for pages that it leaves empty; empty if all of it is. */
export function chosenPart(): string {
  const parts = [steps.value && `steps ${steps.value}`, host.value && `host ${host.value}`].filter(Boolean);
  return parts.length
    ? `Only ${parts.join(" of ")} ${steps.value ? "are" : "is"} shown; the rest of the session may have data.`
    : "";
}

/** A run that is or was watched: its id in addresses, and its name. */
export interface WatchedRun {
  readonly id: string;
  readonly run: string;
}

/** The runs that are or were watched, the newest first; empty until that is known. */
export const watchedRuns = signal<readonly WatchedRun[]>([]);

async function refreshWatchedRuns(): Promise<void> {
  try {
    watchedRuns.value = (await getJson<{ runs: readonly WatchedRun[] }>("api/over-time")).runs;
  } catch {
    watchedRuns.value = []; // the page offers none then
  }
}

/** What the session is compared with: another one, or other steps of itself. */
export const otherId = computed(() => route.value.params.with ?? null);
export const otherSteps = computed(() => route.value.params.withSteps ?? null);
export const other = signal<{
  readonly id: string;
  readonly state: SessionState | null;
  readonly error: ApiError | null;
} | null>(null);

/** Whether what is compared has been read. */
function isOtherReady(): boolean {
  const now = other.value;
  return now !== null && now.id === otherId.value && now.state?.state === "ready";
}

/** The chosen host, if what is compared has one of that name; else all of its hosts. */
function otherHost(): string | null {
  const hosts = other.value?.state?.hosts ?? [];
  return hosts.some((each) => each.name === host.value) ? host.value : null;
}

/** The address of a tool's differences; null while one of the sides is being read. */
export function compareAddress(tool: string, suffix = ""): string | null {
  if (!isReady.value || !sessionId.value || !isOtherReady()) return null;
  const path = `api/sessions/${encodeURIComponent(sessionId.value)}/compare${suffix}`;
  return address(path, {
    host: host.value,
    steps: steps.value,
    with: otherId.value,
    with_host: otherHost(),
    with_steps: otherSteps.value,
    tool,
  });
}

const POLL_MS = 350;
/** Once the first page is there, which of the others have something to show is asked less often. */
const REST_MS = 1500;
/** A server that does not answer is asked again after this long. */
const LOST_MS = 5000;

/** A session that is asked for until all of it is known, the open one or the one that it is compared with. */
interface Followed {
  timer: number;
  readonly id: () => string | null;
  readonly state: () => SessionState | null;
  readonly put: (id: string, state: SessionState | null, error: ApiError | null) => void;
}

const opened: Followed = {
  timer: 0,
  id: () => sessionId.peek(),
  state: () => session.peek(),
  put: (_, state, error) => {
    if (state) session.value = state;
    else sessionError.value = error;
  },
};

const compared: Followed = {
  timer: 0,
  id: () => otherId.peek(),
  state: () => other.peek()?.state ?? null,
  put: (id, state, error) => {
    other.value = { id, state, error };
  },
};

export async function start(): Promise<void> {
  try {
    [config.value, sessions.value] = await Promise.all([
      getJson<Config>("api/config"),
      getJson<Sessions>("api/sessions"),
      refreshWords(),
    ]);
    setCategoryRules(config.value.category_rules);
    startError.value = null;
  } catch (error) {
    startError.value = asApiError(error);
    return;
  }
  void refreshWatchedRuns();
  effect(() => {
    const id = sessionId.value;
    if (id) openSession(id);
    else openNewest();
  });
  effect(() => {
    const id = otherId.value;
    window.clearTimeout(compared.timer);
    other.value = id ? { id, state: null, error: null } : null;
    if (id) void follow(compared, id);
  });
}

/** Without a session in the address the newest is shown; the address then says which. */
function openNewest(): void {
  const newest = listedSessions.value[0];
  if (newest) go(withParams(route.value, { session: newest.id }), "replace");
}

function openSession(id: string): void {
  window.clearTimeout(opened.timer);
  if (session.peek()?.id !== id) session.value = null;
  sessionError.value = null;
  void follow(opened, id);
}

/** The first look answers at once, so that there is something to show; the next ones come when the session is ready. */
async function follow(one: Followed, id: string, wait = 0): Promise<void> {
  const asked = performance.now();
  const again = (milliseconds: number, next = 0) => {
    one.timer = window.setTimeout(() => void follow(one, id, next), milliseconds);
  };
  try {
    const state = await getJson<SessionState>(
      address(`api/sessions/${encodeURIComponent(id)}`, { wait: wait ? String(wait) : null }),
    );
    if (one.id() !== id) return;
    if (JSON.stringify(state) !== JSON.stringify(one.state())) one.put(id, state, null);
    if (state.state === "loading") again(wait ? asked + POLL_MS - performance.now() : 0, POLL_MS);
    else if (state.state === "ready" && state.tools.some((tool) => tool.has_data === null)) again(REST_MS);
  } catch (error) {
    if (one.id() !== id) return;
    const failed = asApiError(error);
    // A server that has ended takes nothing away that is here already; each page says what it lacks.
    if (failed.status === 0 && one.state()?.state === "ready") again(LOST_MS);
    else one.put(id, null, failed);
  }
}

/** Looks for new sessions, and for ones whose files have changed. */
export async function refreshSessions(): Promise<void> {
  try {
    const before = sessionInfo.peek();
    [sessions.value] = await Promise.all([getJson<Sessions>("api/sessions"), refreshWords()]);
    const now = sessionInfo.peek();
    if (before && now && (before.modified !== now.modified || before.bytes !== now.bytes)) reopen();
  } catch {
    // The list stays; the next request of a page reports that the server is gone.
  }
}

export function reopen(): void {
  forget();
  if (sessionId.peek()) openSession(sessionId.peek() as string);
}

/** The host that a page for one host shows: the chosen one, else that of the Summary's bar. */
export function shownHost(): string | null {
  const good = (session.value?.hosts ?? []).filter((each) => !each.error).map((each) => each.name);
  return host.value ?? good.find((each) => each === fact("pace_host")) ?? good[0] ?? null;
}

export function fact(name: string): Cell {
  return session.value?.facts?.[name] ?? null;
}
