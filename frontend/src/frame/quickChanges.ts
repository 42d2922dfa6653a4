/** Changes by one click: a star, and deleting a session, which hides it and keeps its files, so it can be undone. */
import { signal } from "@preact/signals";
import { asApiError } from "../api";
import { changeWords, refreshWords, wordsOf } from "../people";
import { say } from "../ui/toast";

/** The session that was deleted last, until that is undone or dismissed. */
export const lastDeleted = signal<string | null>(null);

export async function setDeleted(session: string, deleted: boolean): Promise<void> {
  try {
    await changeWords(session, wordsOf(session).version, { deleted });
    lastDeleted.value = deleted ? session : null;
  } catch (error) {
    await reportFailure(error);
  }
}

export async function toggleStar(session: string): Promise<void> {
  const words = wordsOf(session);
  try {
    await changeWords(session, words.version, { starred: !words.starred });
  } catch (error) {
    await reportFailure(error);
  }
}

/** Says why a change was refused; the next attempt starts from what the server has now. */
async function reportFailure(error: unknown): Promise<void> {
  say(asApiError(error).message);
  await refreshWords();
}
