/** What people say of sessions: the client of `docs/serving.md`'s routes. */

import { signal } from "@preact/signals";
import { getJson, send } from "./api";

export type Role = "see" | "label" | "capture";

export interface Words {
  readonly title: string;
  readonly note: string;
  readonly labels: readonly string[];
  readonly starred: boolean;
  readonly deleted: boolean;
  readonly version: number;
  readonly changed_by: string;
  readonly changed_at: number | null;
}

export interface AllWords {
  readonly sessions: Readonly<Record<string, Words>>;
  readonly person: string;
  readonly role: Role;
  readonly has_login: boolean;
}

export type Change = Partial<Pick<Words, "title" | "note" | "labels" | "starred" | "deleted">>;

export const NOTHING_SAID: Words = {
  title: "",
  note: "",
  labels: [],
  starred: false,
  deleted: false,
  version: 0,
  changed_by: "",
  changed_at: null,
};

/** What is known of all sessions; null until the server has answered. */
export const allWords = signal<AllWords | null>(null);

/** Fetches it anew; what was known stays if the server does not answer. */
export async function refreshWords(): Promise<void> {
  try {
    allWords.value = await getJson<AllWords>("api/words");
  } catch {
    // The sessions can be looked at without words.
  }
}

export function wordsOf(session: string): Words {
  return allWords.value?.sessions[session] ?? NOTHING_SAID;
}

export function mayLabel(): boolean {
  return allWords.value !== null && allWords.value.role !== "see";
}

/** Where nothing is known of roles, the server's settings alone say it. */
export function mayCapture(): boolean {
  return (allWords.value?.role ?? "capture") === "capture";
}

export function hasLogin(): boolean {
  return allWords.value?.has_login ?? false;
}

/** Fails with status 409 if somebody else changed it meanwhile; `version` is that of the words that were changed. */
export async function changeWords(session: string, version: number, change: Change): Promise<Words> {
  const words = await send<Words>("POST", `api/sessions/${encodeURIComponent(session)}/words`, { version, ...change });
  const known = allWords.peek();
  if (known) allWords.value = { ...known, sessions: { ...known.sessions, [session]: words } };
  return words;
}

/** Labels as they are typed, with commas between; each once. */
export function parseLabels(text: string): readonly string[] {
  return [...new Set(text.split(",").map((label) => label.trim()))].filter(Boolean);
}

/** Ends the login on the server, and leads to the login page. */
export async function logOut(): Promise<void> {
  await fetch("logout", { method: "POST" });
  window.location.assign("login");
}
