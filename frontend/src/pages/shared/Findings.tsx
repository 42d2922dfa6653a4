/** The findings of a report, in sentences; the first is the page's verdict. */

import type { ComponentChildren } from "preact";
import { Code, sentence } from "../../ui/basics";

export function Findings({ lines, children }: { lines: readonly string[]; children?: ComponentChildren }) {
  const [first, ...rest] = lines;
  if (!first && !children) return null;
  return (
    <section class="card verdict" aria-label="Findings">
      {first && (
        <h2 class="verdict-line">
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
