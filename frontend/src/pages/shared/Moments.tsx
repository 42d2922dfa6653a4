/** A step as a tiny timeline: where in it each cause sits. */
import { colourOfCause } from "../../design/causes";
import { palette } from "../../design/theme";
import { duration } from "../../format";
import { linkTo } from "../../router";
import { termText } from "../../terms";
import { hint } from "../../ui/hint";

interface MomentsProps {
  /** Causes in the order of time, each with how long it goes on. */
  moments: readonly (readonly [string, number])[];
  href: string | null;
  /** The length that fills the width; that of the step if not given. */
  longest_ms?: number;
}

export function Moments({ moments, href, longest_ms }: MomentsProps) {
  const look = palette.value;
  if (moments.length < 2) return null;
  const total = moments.reduce((sum, [, ms]) => sum + ms, 0); // parts that grow by less than 1 in all leave room
  let at = 0;
  const parts = moments.map(([cause, ms]) => {
    const start = at;
    at += ms;
    return { cause, ms, start };
  });
  return (
    <a class="moments" href={href ?? linkTo("timeline")} aria-label="In order: where in the step each cause sits">
      <span class="muted">In order</span>
      <span class="moments-track" style={{ width: `${(100 * total) / (longest_ms ?? total)}%` }}>
        {parts.map(({ cause, ms, start }) => (
          <span
            key={start}
            style={{ flexGrow: (100 * ms) / total, background: colourOfCause(cause, look.surface) }}
            {...hint(termText(cause), `${duration(start)} after the start of the step`, duration(ms))}
          />
        ))}
      </span>
      <span class="stacked-total strong to-right oneline" />
    </a>
  );
}
