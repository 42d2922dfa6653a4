/** The uploads of this page: one file after the other, each with its progress or the reason why it failed. */
import { signal } from "@preact/signals";
import { type ApiError, asApiError } from "../api";
import { uploadProfile } from "../people";
import { refreshSessions } from "../session";

export interface Upload {
  readonly number: number;
  readonly name: string;
  readonly bytes: number;
  readonly done: number;
  readonly state: "waiting" | "running" | "done" | "failed";
  /** Null until the server has found it. */
  readonly session: string | null;
  readonly error: ApiError | null;
}

export const uploads = signal<readonly Upload[]>([]);
let count = 0;
let last: Promise<void> = Promise.resolve();

/** Adds files to those that are uploaded; they take turns, so that each has the whole line. */
export function uploadFiles(files: Iterable<File>): void {
  for (const file of files) {
    const number = ++count;
    const upload: Upload = {
      number,
      name: file.name,
      bytes: file.size,
      done: 0,
      state: "waiting",
      session: null,
      error: null,
    };
    uploads.value = [...uploads.value, upload];
    last = last.then(() => run(number, file));
  }
}

export function dismissUpload(number: number): void {
  uploads.value = uploads.value.filter((each) => each.number !== number);
}

async function run(number: number, file: File): Promise<void> {
  update(number, { state: "running" });
  try {
    const session = await uploadProfile(file, (done) => update(number, { done }));
    await refreshSessions();
    update(number, { state: "done", session });
  } catch (error) {
    update(number, { state: "failed", error: asApiError(error) });
  }
}

function update(number: number, change: Partial<Upload>): void {
  uploads.value = uploads.value.map((each) => (each.number === number ? { ...each, ...change } : each));
}
