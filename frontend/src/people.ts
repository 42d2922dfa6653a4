/** What people say of sessions, and uploads: the client of `docs/serving.md`'s routes. */

import { ApiError, getJson, send } from "./api";

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

export function loadWords(): Promise<AllWords> {
  return getJson<AllWords>("api/words");
}

/** Fails with status 409 if somebody else changed it meanwhile; `version` is that of the words that were changed. */
export function changeWords(session: string, version: number, change: Change): Promise<Words> {
  return send<Words>("POST", `api/sessions/${encodeURIComponent(session)}/words`, { version, ...change });
}

/** Uploads a profile piece by piece; returns its session's id, or null if it is not listed yet. */
export async function uploadProfile(file: File, onProgress: (done: number) => void): Promise<string | null> {
  const begun = await send<{ id: string }>("POST", "api/uploads", { name: file.name, size: file.size });
  try {
    for (let done = 0; done < file.size; done += PIECE_BYTES) {
      await sendPiece(begun.id, done, file.slice(done, done + PIECE_BYTES));
      onProgress(Math.min(done + PIECE_BYTES, file.size));
    }
    return (await send<{ session: string | null }>("POST", `api/uploads/${begun.id}/end`)).session;
  } catch (error) {
    await send("DELETE", `api/uploads/${begun.id}`).catch(() => undefined); // it may be forgotten already
    throw error;
  }
}

async function sendPiece(upload: string, offset: number, piece: Blob): Promise<void> {
  const response = await fetch(`api/uploads/${upload}?offset=${offset}`, {
    method: "POST",
    headers: { "X-Stepscope": "1", "Content-Type": "application/octet-stream" },
    body: piece,
  });
  if (!response.ok) throw new ApiError("a part of the file could not be uploaded", "try again", [], response.status);
}
