/** The findings of a report, in sentences; the first is the page's verdict. */

import type { ComponentChildren } from "preact";
import { Code, sentence } from "../../ui/basics";
import type { HintAttributes } from "../../ui/hint";

interface FindingsProps {
  lines: readonly string[];
  /** What the numbers of the first line mean. */
  meaning?: HintAttributes;
  children?: ComponentChildren;
}

/** A headline has at most so many words; the rest of a longer sentence is a line below it. */
const MOST_WORDS = 14;

/** A finding cut behind its first clause, where it has several and is long: the headline, and what it rests on. */
export function headline(line: string): readonly string[] {
  const cuts = ["; ", ": ", ", "].map((sign) => line.indexOf(sign)).filter((at) => at > 0);
  const [at] = line.split(" ").length > MOST_WORDS ? cuts : [];
  return at === undefined ? [line] : [...headline(line.slice(0, at)), line.slice(at + 2)];
}

export function Findings({ lines, meaning = {}, children }: FindingsProps) {
  const [first, ...rest] = lines.flatMap((line, at) => (at ? [line] : headline(line)));
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
