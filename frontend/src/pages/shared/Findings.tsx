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

export function Findings({ lines, meaning = {}, children }: FindingsProps) {
  const [first, ...rest] = lines;
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
