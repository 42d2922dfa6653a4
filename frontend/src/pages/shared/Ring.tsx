/** A ring of shares with its legend; slices and legend entries lead to the table below. */
import { useMemo } from "preact/hooks";
import { Chart } from "../../charts/Chart";
import { ring, type Slice } from "../../charts/pie";
import { palette } from "../../design/theme";
import { percent } from "../../format";
import { LongName } from "../../ui/basics";

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
  const look = palette.value;
  const option = useMemo(() => ring(slices, look), [slices, look]);
  return (
    <figure class="ring">
      {title && <figcaption>{title}</figcaption>}
      <div class="ring-body" style={{ "--size": `${size}px` } as Record<string, string>}>
        <Chart
          label={`${title}: ${slices
            .slice(0, 5)
            .map((slice) => slice.name)
            .join(", ")}`}
          option={option}
          height={size}
          marks={slices.filter((slice) => slice.value > 0).length}
          {...(onPick ? { onPick: ({ name }) => onPick(name) } : {})}
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
                <span class="ring-share">{slice.percent === null ? "" : percent(slice.percent)}</span>
              </button>
            </li>
          ))}
        </ul>
      </div>
    </figure>
  );
}
