/** Views that a reader wants to find again, with names; only the reader deletes them. */
import { signal } from "@preact/signals";
import { formatHash, route } from "../router";
import { sessionInfo, shortRun } from "../session";
import { remember, remembered } from "../storage";
import { currentQuestion, currentView } from "../tools";
import { say } from "../ui/toast";

export interface Bookmark {
  readonly name: string;
  readonly hash: string;
}

const MOST_BOOKMARKS = 200;

export const bookmarks = signal<readonly Bookmark[]>(checkedBookmarks(remembered("bookmarks")));

export function checkedBookmarks(stored: unknown): Bookmark[] {
  if (!Array.isArray(stored)) return [];
  return stored.filter(
    (each): each is Bookmark =>
      typeof each?.name === "string" && typeof each?.hash === "string" && /^#\//.test(each.hash),
  );
}

function store(list: readonly Bookmark[]): void {
  bookmarks.value = list.slice(0, MOST_BOOKMARKS);
  remember("bookmarks", bookmarks.value);
}

/** Adds the shown view, named after its page and session. */
export function addBookmark(): void {
  const hash = formatHash(route.value);
  if (bookmarks.value.some((each) => each.hash === hash)) {
    say("Already bookmarked");
    return;
  }
  const page = [currentQuestion.value?.label, currentView.value?.label].filter(
    (text, at, all) => text && all.indexOf(text) === at,
  );
  const run = sessionInfo.value ? shortRun(sessionInfo.value.run) : "";
  store([{ name: [page.join(", "), run].filter(Boolean).join(" · "), hash }, ...bookmarks.value]);
  say("Bookmarked");
}

export function renameBookmark(hash: string, name: string): void {
  store(bookmarks.value.map((each) => (each.hash === hash ? { ...each, name: name.trim() || each.name } : each)));
}

export function deleteBookmark(hash: string): void {
  store(bookmarks.value.filter((each) => each.hash !== hash));
}
