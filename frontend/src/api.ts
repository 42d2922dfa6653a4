/** The server's API: its types, and how the page sends requests. */
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { CategoryRule } from "./design/colours";
import type { Cell, ReportOf, Sections, ToolName } from "./sections";

export type { Cell, Field, Figures, Prose, Report, Section, TableSection, Values } from "./sections";

export interface ToolInfo {
  readonly name: string;
  readonly title: string;
  readonly summary: string;
  readonly icon?: string;
  readonly group?: string;
}

export interface Config {
  readonly version: string;
  readonly logdir: string;
  readonly capture: boolean;
  /** Whether the server makes the file of `stepscope report`. */
  readonly report?: boolean;
  readonly tools: readonly ToolInfo[];
  /** How names are drawn; see `categoryOf`. */
  readonly category_rules: readonly CategoryRule[];
}

export interface SessionInfo {
  readonly id: string;
  readonly run: string;
  readonly path: string;
  readonly modified: number;
  readonly bytes: number;
  readonly hosts: readonly string[];
  readonly formats: readonly string[];
}

export interface Sessions {
  readonly sessions: readonly SessionInfo[];
  readonly skipped: readonly { readonly path: string; readonly reason: string }[];
  readonly searched: readonly string[];
}

export interface HostState {
  readonly name: string;
  readonly file: string;
  readonly bytes: number;
  readonly state: string;
  readonly error: ErrorBody | null;
  readonly partial: boolean;
}

/** An error as the server sends it. */
export interface ErrorBody {
  readonly error: string;
  readonly hint: string;
  readonly choices: readonly string[];
}

export interface Progress {
  readonly stage: string;
  readonly done_bytes: number | null;
  readonly total_bytes: number | null;
  readonly events: number | null;
  readonly seconds_left: number | null;
}

/** What makes the figures of a session less certain: what was found, what may be wrong then, how to record without. */
export interface Doubt {
  readonly found: string;
  readonly doubtful?: string;
  readonly fix?: string;
  readonly grave?: string;
  readonly hosts?: readonly string[];
}

export interface SessionState {
  readonly id: string;
  readonly run: string;
  readonly state: "loading" | "ready" | "failed";
  readonly progress: Progress | null;
  readonly hosts: readonly HostState[];
  readonly facts: Readonly<Record<string, Cell>> | null;
  readonly tools: readonly {
    readonly name: string;
    readonly has_data: boolean | null;
    readonly missing: string | null;
    /** By what it cannot group its rows. */
    readonly lacks: readonly string[];
  }[];
  /** Of the start page; the doubts hold them. */
  readonly warnings: readonly string[];
  readonly doubts: readonly Doubt[];
  readonly error: ErrorBody | null;
}

export interface ToolAnswer<T extends ToolName = ToolName, R = ReportOf<T>> {
  readonly report: R;
  readonly sections: Sections<T>;
  readonly missing: string | null;
}

/** The server's error answer: a sentence, what to do next, and the valid choices. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly hint: string,
    readonly choices: readonly string[],
    readonly status: number,
  ) {
    super(message);
  }
}

export type Query = Readonly<Record<string, string | null | undefined>>;

export function address(path: string, query: Query = {}): string {
  const parts = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value) parts.set(key, value);
  const text = parts.toString();
  return text ? `${path}?${text}` : path;
}

export function toolAddress(session: string, tool: string, suffix = ""): string {
  return `api/sessions/${encodeURIComponent(session)}/tools/${encodeURIComponent(tool)}${suffix}`;
}

export async function getJson<T>(url: string, abort?: AbortSignal): Promise<T> {
  return ask<T>(url, abort ? { signal: abort } : {});
}

/** POST and DELETE carry a header that other sites cannot send.  A blob goes as it is, anything else as JSON. */
export async function send<T>(method: "POST" | "DELETE", url: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { "X-Stepscope": "1" };
  if (body === undefined) return ask<T>(url, { method, headers });
  const isBlob = body instanceof Blob;
  headers["Content-Type"] = isBlob ? "application/octet-stream" : "application/json";
  return ask<T>(url, { method, headers, body: isBlob ? body : JSON.stringify(body) });
}

let isLeaving = false;
let answer: (url: string, init: RequestInit) => Promise<Response> = (url, init) => fetch(url, init);

/** Takes all answers from elsewhere: in a notebook there is no server, but a kernel. */
export function answerFrom(other: (url: string) => Promise<Response>): void {
  answer = other;
}

/** An answer of the page's server.  Where it asks for a login (401), the browser goes to the login page. */
export async function fetchAnswer(url: string, init: RequestInit = {}): Promise<Response> {
  const response = await answer(url, init);
  if (response.status === 401 && !isLeaving) {
    isLeaving = true; // a second answer would interrupt the way that the first has taken
    window.location.assign(loginAddress(window.location));
  }
  return response;
}

/** The most characters of a place that the login page leads back to. */
const LONGEST_WAY_BACK = 500;

/** The login page's address, which names the place to come back to; relative, like every address of the page. */
export function loginAddress(place: { pathname: string; search: string; hash: string }): string {
  const whole = place.pathname + place.search + place.hash.replaceAll("+", "%20");
  const plain = whole.replace(/[^\w./~%?&=#-]/g, encodeURIComponent); // the server takes no others
  return `login?next=${encodeURIComponent(plain.length <= LONGEST_WAY_BACK ? plain : place.pathname)}`;
}

async function ask<T>(url: string, init: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetchAnswer(url, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(
      "the page's server does not answer",
      "start it again (stepscope open LOGDIR), then reload",
      [],
      0,
    );
  }
  const text = await response.text();
  const value = parsed(text);
  if (response.ok && value !== undefined) return value as T;
  const said = (typeof value === "object" && value !== null ? value : {}) as {
    error?: unknown;
    hint?: unknown;
    choices?: unknown;
  };
  throw new ApiError(
    typeof said.error === "string" ? said.error : `the server answered with status ${response.status}`,
    typeof said.hint === "string" ? said.hint : "",
    Array.isArray(said.choices) ? said.choices.map(String) : [],
    response.status,
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export type Resource<T> =
  | { readonly state: "loading" }
  | { readonly state: "ready"; readonly data: T }
  | { readonly state: "failed"; readonly error: ApiError; readonly retry: () => void };

/**
 * Answers that the page has seen, used last at the end, so that going back to a page shows it at once.  `forget`
 * empties it, for when files have changed.
 */
const seen = new Map<string, unknown>();
const MOST_SEEN = 24;
export const generation = signal(0);

export function forget(): void {
  seen.clear();
  asked.clear();
  generation.value += 1;
}

function keep(url: string, data: unknown): void {
  seen.delete(url);
  seen.set(url, data);
  if (seen.size > MOST_SEEN) seen.delete(seen.keys().next().value as string);
}

/** Requests under way, so that two parts of a page that show one answer send one. */
const asked = new Map<string, Promise<unknown>>();

function askOnce<T>(url: string): Promise<T> {
  const known = asked.get(url);
  if (known) return known as Promise<T>;
  const answer = getJson<T>(url).finally(() => asked.get(url) === answer && asked.delete(url));
  asked.set(url, answer);
  return answer;
}

/** The content of an address; null requests nothing yet. */
export function useResource<T>(url: string | null): Resource<T> {
  const [attempt, setAttempt] = useState(0);
  const [found, setFound] = useState<{ url: string | null; result: Resource<T> }>({
    url: null,
    result: { state: "loading" },
  });
  const now = generation.value;
  useEffect(() => {
    if (!url) return undefined;
    const known = seen.get(url);
    if (known !== undefined) {
      // Kept here too: other requests may push it out of the cache while it is shown.
      keep(url, known);
      setFound({ url, result: { state: "ready", data: known as T } });
      return undefined;
    }
    let isGone = false;
    const put = (result: Resource<T>) => !isGone && setFound({ url, result });
    askOnce<T>(url).then(
      (data) => {
        keep(url, data);
        put({ state: "ready", data });
      },
      (error: unknown) =>
        put({ state: "failed", error: asApiError(error), retry: () => setAttempt((count) => count + 1) }),
    );
    put({ state: "loading" });
    return () => {
      isGone = true;
    };
  }, [url, attempt, now]);
  if (url && seen.has(url)) return { state: "ready", data: seen.get(url) as T };
  return found.url === url ? found.result : { state: "loading" };
}

export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(error instanceof Error ? error.message : String(error), "", [], 0);
}
