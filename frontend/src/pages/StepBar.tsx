/** The mean step as one horizontal bar, with its times written in or below. */
import { CATEGORIES, CATEGORY_COLOUR, CATEGORY_LABEL, inkOn, type Category } from "../design/colours";
import { duration, percent } from "../format";
import { linkTo } from "../router";
import { hint } from "../ui/hint";

export interface Part {
  readonly category: Category;
  readonly ms: number;
  readonly percent: number;
}

export function partsOf(breakdown: Readonly<Record<string, number>>): Part[] {
  const total = CATEGORIES.reduce((sum, category) => sum + (breakdown[category] ?? 0), 0);
  if (!(total > 0)) return [];
  return CATEGORIES.map((category) => ({ category, ms: breakdown[category] ?? 0, percent: (100 * (breakdown[category] ?? 0)) / total })).filter((part) => part.ms > 0);
}

export function StepBar({ breakdown, meaning }: { breakdown: Readonly<Record<string, number>>; meaning: Readonly<Record<string, string>> }) {
  const parts = partsOf(breakdown);
  if (!parts.length) return null;
  return (
    <div class="step-bar" role="group" aria-label={`Mean step: ${parts.map((part) => `${CATEGORY_LABEL[part.category]} ${duration(part.ms)}`).join(", ")}`}>
      <div class="step-bar-track" data-marks={parts.length}>
        {parts.map((part) => (
          <a
            key={part.category}
            class="step-bar-part"
            href={linkTo("steps", { "steps.sort": `-${part.category}` })}
            aria-label={`${CATEGORY_LABEL[part.category]}, ${duration(part.ms)}: the steps with the most of it`}
            style={{ flexGrow: part.ms, background: CATEGORY_COLOUR[part.category], color: inkOn(CATEGORY_COLOUR[part.category]) }}
            {...hint(CATEGORY_LABEL[part.category], meaning[part.category] ?? "", `${part.ms} ms, ${percent(part.percent)}`)}
          >
            {part.percent >= 9 && <span>{duration(part.ms)}</span>}
          </a>
        ))}
      </div>
      <ul class="legend">
        {[...parts]
          .sort((a, b) => b.ms - a.ms)
          .map((part) => (
            <li key={part.category} tabIndex={0} data-category={part.category} data-value={part.ms} {...hint(CATEGORY_LABEL[part.category], meaning[part.category] ?? "", `${part.ms} ms`)}>
              <span class="swatch" style={{ background: CATEGORY_COLOUR[part.category] }} />
              <span class="legend-name">{CATEGORY_LABEL[part.category]}</span>
              <span class="legend-value">{duration(part.ms)}</span>
              <span class="legend-share">{percent(part.percent)}</span>
            </li>
          ))}
      </ul>
    </div>
  );
}
