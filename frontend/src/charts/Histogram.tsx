/** How many things are of which size: bars of counts, with what they say on hover and focus. */
import { hint } from "../ui/hint";

export interface Bin {
  readonly count: number;
  /** Its range in words. */
  readonly range: string;
}

interface HistogramProps {
  label: string;
  /** What is counted, one and many: `step`, `steps`. */
  nouns: readonly [string, string];
  bins: readonly Bin[];
  colour?: string;
  /** What is written below: usually both ends of the axis. */
  children: preact.ComponentChildren;
}

export function Histogram({ label, nouns, bins, colour, children }: HistogramProps) {
  const most = Math.max(...bins.map((bin) => bin.count));
  return (
    <figure class="histogram">
      <div class="histogram-bars" role="img" aria-label={label}>
        {bins.map(({ count, range }) => (
          <span
            key={range}
            style={{ height: `${(100 * count) / most}%`, background: colour }}
            {...hint(range, "", `${count.toLocaleString("en-US")} ${nouns[count === 1 ? 0 : 1]}`)}
          />
        ))}
      </div>
      <figcaption class="muted">{children}</figcaption>
    </figure>
  );
}
