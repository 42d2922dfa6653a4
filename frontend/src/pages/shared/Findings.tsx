/** The findings of a report, in sentences; the first is the page's verdict. */
import { type ComponentChildren, createContext } from "preact";
import { useContext } from "preact/hooks";
import { Code, sentence } from "../../ui/basics";
import type { HintAttributes } from "../../ui/hint";

interface FindingsProps {
  lines: readonly string[] | undefined;
  /** What the numbers of the first line mean. */
  meaning?: HintAttributes;
  children?: ComponentChildren;
}

/** A headline has at most so many words; the rest of a longer sentence is a line below it. */
const MOST_WORDS = 14;

/** A long finding cut behind the last clause that a headline has room for: the headline, and what it rests on. */
export function headline(line: string): readonly string[] {
  if (countWords(line) <= MOST_WORDS) return [line];
  const cuts = [...line.matchAll(/(?:[;:]|,(?! with | but )) (?!which )/g)]
    .map(({ index }) => index)
    .filter((at) => isBetweenClauses(line, at));
  const at = cuts.findLast((each) => countWords(line.slice(0, each)) <= MOST_WORDS) ?? cuts[0];
  return at === undefined ? [line] : [line.slice(0, at), line.slice(at + 2)];
}

function countWords(text: string): number {
  return text.split(" ").length;
}

/** Whether a place lies neither in code nor in brackets. */
function isBetweenClauses(line: string, at: number): boolean {
  const before = line.slice(0, at);
  const count = (sign: string) => before.split(sign).length - 1;
  return count("`") % 2 === 0 && (count("`") > 0 || count("(") === count(")"));
}

/** What the page's answer doubts that the session does not: said below what it found. */
export const Caveats = createContext<readonly string[]>([]);

export function Findings({ lines = [], meaning = {}, children }: FindingsProps) {
  const caveats = useContext(Caveats).filter((line) => !lines.includes(line));
  const [first, ...found] = lines.flatMap((line, at) => (at ? [line] : headline(line)));
  const rest = [...found, ...caveats];
  if (!first && !children) return null;
  return (
    <section class="card verdict" aria-label="Findings">
      {first && (
        <h2 class="verdict-line" {...meaning}>
          <Code text={sentence(first)} />
        </h2>
      )}
      {rest.length > 0 && (
        <ul class="prose">
          {rest.map((line) => (
            <li key={line}>
              <Code text={sentence(line)} />
            </li>
          ))}
        </ul>
      )}
      {children}
    </section>
  );
}
