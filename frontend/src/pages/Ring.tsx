/** A ring of shares with its legend; slices and legend entries lead to the table below. */
import { useMemo } from "preact/hooks";
import { Chart } from "../charts/Chart";
import { ring, type Slice } from "../charts/pie";
import { palette } from "../design/theme";
import { percent } from "../format";
import { LongName } from "../ui/basics";

interface RingProps {
  title: string;
  slices: readonly Slice[];
  onPick?: (name: string) => void;
}

export function Ring({ title, slices, onPick }: RingProps) {
  const look = palette.value;
  const option = useMemo(() => ring(slices, look), [slices, look]);
  return (
    <figure class="ring">
      <figcaption>{title}</figcaption>
      <div class="ring-body">
        <Chart label={`${title}: ${slices.slice(0, 5).map((slice) => slice.name).join(", ")}`} option={option} height={168} marks={slices.filter((slice) => slice.value > 0).length} {...(onPick ? { onPick: ({ name }) => onPick(name) } : {})} />
        <ul class="ring-legend">
          {slices.slice(0, 7).map((slice) => (
            <li key={slice.name}>
              <button type="button" disabled={!onPick} onClick={() => onPick?.(slice.name)} data-hint-title={slice.name} data-hint-value={slice.text}>
                <span class="swatch" style={{ background: slice.colour }} />
                <LongName text={slice.name} />
                <span class="ring-share">{slice.percent === null ? "" : percent(slice.percent)}</span>
              </button>
            </li>
          ))}
        </ul>
      </div>
    </figure>
  );
}

/** The largest slices by name and the rest as one. */
export function withRest(slices: readonly Slice[], most: number, colour: string, text: (sum: number) => string): Slice[] {
  if (slices.length <= most + 1) return [...slices];
  const rest = slices.slice(most);
  const sum = rest.reduce((total, slice) => total + slice.value, 0);
  const share = rest.every((slice) => slice.percent !== null) ? rest.reduce((total, slice) => total + (slice.percent as number), 0) : null;
  return [...slices.slice(0, most), { name: `${rest.length} others`, value: sum, percent: share, colour, text: text(sum) }];
}
