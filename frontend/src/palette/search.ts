/** Ranks what the command palette offers by what was typed. */

export interface Command {
  readonly id: string;
  /** What it is: a page, a session, an op. */
  readonly kind: string;
  readonly text: string;
  readonly note?: string;
  readonly keys?: string;
  readonly run: () => void;
}

/** The best matches, best first; without words, the first of all. */
export function rankedCommands(all: readonly Command[], text: string, most: number): readonly Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return all.slice(0, most);
  return all
    .map((command, at) => ({ command, at, score: scoreOf(command, words) }))
    .filter((each) => each.score > 0)
    .sort((a, b) => b.score - a.score || a.at - b.at)
    .slice(0, most)
    .map((each) => each.command);
}

const START = 8;
const WORD_START = 4;
const INSIDE = 2;
const IN_NOTE = 1;
/** Rows that come with the longest first stay in that order. */
const BY_TIME: readonly string[] = ["Function", "Line"];
/** What leaves the open session comes after what is in it. */
const ELSEWHERE: readonly string[] = ["Session", "Compare with"];

/** Every word has to be found; 0 otherwise.  A match at a start counts more, and shorter texts come first. */
function scoreOf({ text, note = "", kind }: Command, words: readonly string[]): number {
  const shown = text.toLowerCase();
  const beside = `${note} ${kind}`.toLowerCase();
  let score = 0;
  for (const word of words) {
    const at = shown.indexOf(word);
    if (at === 0) score += START;
    else if (at > 0) score += /\w/.test(shown[at - 1] as string) ? INSIDE : WORD_START;
    else if (beside.includes(word)) score += IN_NOTE;
    else return 0;
  }
  return (score + (BY_TIME.includes(kind) ? 0.5 : 1 / (1 + shown.length))) / (ELSEWHERE.includes(kind) ? 2 : 1);
}
