/** The mean step as one horizontal bar, with its times written in or below. */
import { CATEGORIES, CATEGORY_COLOUR, CATEGORY_LABEL, inkOn, type Category } from "../design/colours";
import { duration, percent } from "../format";
import { linkTo } from "../router";
import { hint } from "../ui/hint";
import { closestStep, type PartPlace } from "./examples";
import type { GraphStep } from "./StepGraph";

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

interface StepBarProps {
  breakdown: Readonly<Record<string, number>>;
  meaning: Readonly<Record<string, string>>;
  steps: readonly GraphStep[];
}

/** The parts lead to the timeline, their names below to the rows of all steps. */
export function StepBar({ breakdown, meaning, steps }: StepBarProps) {
  const parts = partsOf(breakdown);
  if (!parts.length) return null;
  return (
    <div class="step-bar" role="group" aria-label={`Mean step: ${parts.map((part) => `${CATEGORY_LABEL[part.category]} ${duration(part.ms)}`).join(", ")}`}>
      <div class="step-bar-track" data-marks={parts.length}>
        {parts.map((part) => (
          <BarPart key={part.category} part={part} meaning={meaning[part.category] ?? ""} place={closestStep(steps, part.category, part.ms)} />
        ))}
      </div>
      <ul class="legend">
        {[...parts]
          .sort((a, b) => b.ms - a.ms)
          .map((part) => (
            <li key={part.category} data-category={part.category} data-value={part.ms} {...hint(CATEGORY_LABEL[part.category], `${meaning[part.category] ?? ""}${DOT}a click lists the steps, those with the most of it first`, `${part.ms} ms`)}>
              <a class="legend-link" href={stepsWith(part.category)}>
                <span class="swatch" style={{ background: CATEGORY_COLOUR[part.category] }} />
                <span class="legend-name">{CATEGORY_LABEL[part.category]}</span>
                <span class="legend-value">{duration(part.ms)}</span>
                <span class="legend-share">{percent(part.percent)}</span>
              </a>
            </li>
          ))}
      </ul>
    </div>
  );
}

const DOT = " · ";

function stepsWith(category: Category): string {
  return linkTo("steps", { "steps.sort": `-${category}` });
}

function BarPart({ part, meaning, place }: { part: Part; meaning: string; place: PartPlace | null }) {
  const label = CATEGORY_LABEL[part.category];
  const leads = place ? `a click shows ${place.step} in the timeline: with ${duration(place.ms)} it is the closest to the mean` : "a click lists the steps, those with the most of it first";
  return (
    <a
      class="step-bar-part"
      href={place?.href ?? stepsWith(part.category)}
      aria-label={`${label}, ${duration(part.ms)}: ${place ? `${place.step} in the timeline` : "the steps with the most of it"}`}
      style={{ flexGrow: part.ms, background: CATEGORY_COLOUR[part.category], color: inkOn(CATEGORY_COLOUR[part.category]) }}
      {...hint(label, `${meaning}${DOT}${leads}`, `${part.ms} ms, ${percent(part.percent)}`)}
    >
      {part.percent >= 9 && <span>{duration(part.ms)}</span>}
    </a>
  );
}
