/** A ring of shares with its legend; slices and legend entries lead to the table below. */
import { percent } from "../../format";
import { LongName } from "../../ui/basics";

export interface Slice {
  readonly name: string;
  readonly value: number;
  /** As the API gave it; a slice of several has none. */
  readonly percent: number | null;
  readonly colour: string;
  readonly text: string;
}

interface RingProps {
  size?: number;
  /** Entries of the legend; the report holds about ten slices and the rest as one. */
  most?: number;
  title: string;
  /** How a name is written; the whole is shown on hover. */
  short?: (name: string) => string;
  slices: readonly Slice[];
  onPick?: (name: string) => void;
}

export function Ring({ title, slices, onPick, short, size = 168, most = 12 }: RingProps) {
  return (
    <figure class="ring">
      {title && <figcaption>{title}</figcaption>}
      <div class="ring-body" style={{ "--size": `${size}px` } as Record<string, string>}>
        <div
          class="ring-picture"
          role="img"
          aria-label={`${title}: ${slices
            .slice(0, 5)
            .map((slice) => slice.name)
            .join(", ")}`}
          style={{ background: gradientOf(slices) }}
        />
        <ul class="ring-legend">
          {slices.slice(0, most).map((slice) => (
            <li key={slice.name}>
              <button
                type="button"
                disabled={!onPick || slice.name === "others" || slice.name === "idle"}
                onClick={() => onPick?.(slice.name)}
                data-hint-title={slice.name}
                data-hint-value={slice.text}
              >
                <span class="swatch" style={{ background: slice.colour }} />
                <LongName text={short?.(slice.name) ?? slice.name} whole={slice.name} />
                <span class="strong">{slice.percent === null ? "" : percent(slice.percent)}</span>
              </button>
            </li>
          ))}
        </ul>
      </div>
    </figure>
  );
}

/** The slices around a circle, the first from the top. */
export function gradientOf(slices: readonly Pick<Slice, "value" | "colour">[]): string {
  const whole = slices.reduce((sum, slice) => sum + slice.value, 0);
  let at = 0;
  const parts = slices.map(({ value, colour }) => {
    const from = at;
    at += (100 * value) / whole;
    return `${colour} ${from.toFixed(2)}% ${at.toFixed(2)}%`;
  });
  return `conic-gradient(${parts.join(", ")})`;
}
