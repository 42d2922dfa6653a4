/** What people say of sessions, and uploads: the client of `docs/serving.md`'s routes. */

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
  readonly can_upload: boolean;
  /** Whether there is a login, so that a link to share is more than an address. */
  readonly can_share: boolean;
}

/** A link to a view, below the server's address; it ends at `expires`, seconds since 1970. */
export interface SharedLink {
  readonly link: string;
  readonly expires: number;
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

/** A request is refused above 1 MiB. */
const PIECE_BYTES = 1 << 20;

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

export function mayUpload(): boolean {
  return allWords.value?.can_upload ?? false;
}

export function mayShare(): boolean {
  return allWords.value?.can_share ?? false;
}

/** Makes a link to a view of a session; `view` is the address from its `#` on. */
export function makeLink(session: string, view: string): Promise<SharedLink> {
  return send<SharedLink>("POST", `api/sessions/${encodeURIComponent(session)}/share`, { view });
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

/** Uploads a profile piece by piece; returns its session's id, or null if it is not listed yet. */
export async function uploadProfile(file: File, onProgress: (done: number) => void): Promise<string | null> {
  const upload = await send<{ id: string }>("POST", "api/uploads", { name: file.name, size: file.size });
  try {
    for (let done = 0; done < file.size; done += PIECE_BYTES) {
      await send("POST", `api/uploads/${upload.id}?offset=${done}`, file.slice(done, done + PIECE_BYTES));
      onProgress(Math.min(done + PIECE_BYTES, file.size));
    }
    return (await send<{ session: string | null }>("POST", `api/uploads/${upload.id}/end`)).session;
  } catch (error) {
    await send("DELETE", `api/uploads/${upload.id}`).catch(() => undefined); // it may be forgotten already
    throw error;
  }
}

/** Ends the login on the server, and leads to the login page. */
export async function logOut(): Promise<void> {
  await fetch("logout", { method: "POST" });
  window.location.assign("login");
}
