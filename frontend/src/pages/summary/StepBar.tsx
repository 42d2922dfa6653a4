/** The mean step as one horizontal bar, with its times written in or below. */
import { BETWEEN_PART } from "../../charts/steps";
import { CATEGORIES, CATEGORY_COLOUR, CATEGORY_LABEL, type Category, inkOn } from "../../design/colours";
import { duration, percent } from "../../format";
import { linkTo } from "../../router";
import { hint } from "../../ui/hint";
import { closestStep, type PartPlace } from "../shared/examples";
import type { GraphStep } from "../shared/StepGraph";

export interface Part {
  readonly category: Category;
  readonly ms: number;
  readonly percent: number;
}

export function partsOf(breakdown: Readonly<Record<string, number>>): Part[] {
  const total = CATEGORIES.reduce((sum, category) => sum + (breakdown[category] ?? 0), 0);
  if (!(total > 0)) return [];
  return CATEGORIES.map((category) => ({
    category,
    ms: breakdown[category] ?? 0,
    percent: (100 * (breakdown[category] ?? 0)) / total,
  })).filter((part) => part.ms > 0);
}

interface StepBarProps {
  breakdown: Readonly<Record<string, number>>;
  meaning: Readonly<Record<string, string>>;
  steps: readonly GraphStep[];
  /** From the end of a step to the start of the next, if it is large enough to show. */
  between_ms: number | null;
}

/** Time between steps below this share of the step-to-step time is not shown. */
const WORTH_PERCENT = 2;

/** The mean time from the end of a step to the start of the next; null if unknown or negligible. */
export function betweenSteps(mean_ms: number | null, share: number | null | undefined): number | null {
  if (mean_ms === null || share === null || share === undefined || share < WORTH_PERCENT || share >= 100) return null;
  return (mean_ms * share) / (100 - share);
}

/** The parts lead to the timeline, their names below to the rows of all steps. */
export function StepBar({ breakdown, meaning, steps, between_ms }: StepBarProps) {
  const parts = partsOf(breakdown);
  if (!parts.length) return null;
  const spoken = parts.map((part) => `${CATEGORY_LABEL[part.category]} ${duration(part.ms)}`);
  return (
    <div class="step-bar" role="group" aria-label={`Mean step: ${spoken.join(", ")}`}>
      <div class="step-bar-track" data-marks={parts.length}>
        {parts.map((part) => (
          <BarPart
            key={part.category}
            part={part}
            meaning={meaning[part.category] ?? ""}
            place={closestStep(steps, part.category, part.ms)}
          />
        ))}
        {between_ms !== null && (
          <span
            class="step-bar-part"
            tabIndex={0}
            style={{ flexGrow: between_ms, background: BETWEEN_PART.colour, color: inkOn(BETWEEN_PART.colour) }}
            {...hint(BETWEEN_PART.label, BETWEEN, `${between_ms} ms`)}
          >
            {between_ms >= 0.09 * parts.reduce((sum, part) => sum + part.ms, between_ms) && (
              <span>{duration(between_ms)}</span>
            )}
          </span>
        )}
      </div>
      <ul class="legend">
        {[...parts]
          .sort((a, b) => b.ms - a.ms)
          .map((part) => (
            <li
              key={part.category}
              data-category={part.category}
              data-value={part.ms}
              {...hint(
                CATEGORY_LABEL[part.category],
                `${meaning[part.category] ?? ""}${DOT}click to list the steps, those with most of it first`,
                `${part.ms} ms`,
              )}
            >
              <a class="legend-link" href={stepsWith(part.category)}>
                <span class="swatch" style={{ background: CATEGORY_COLOUR[part.category] }} />
                <span class="legend-name">{CATEGORY_LABEL[part.category]}</span>
                <span class="legend-value">{duration(part.ms)}</span>
                <span class="legend-share">{percent(part.percent)}</span>
              </a>
            </li>
          ))}
        {between_ms !== null && (
          <li tabIndex={0} data-value={between_ms} {...hint(BETWEEN_PART.label, BETWEEN, `${between_ms} ms`)}>
            <span class="swatch" style={{ background: BETWEEN_PART.colour }} />
            <span class="legend-name">{BETWEEN_PART.label}</span>
            <span class="legend-value">{duration(between_ms)}</span>
          </li>
        )}
      </ul>
    </div>
  );
}

const BETWEEN =
  "mean time from the end of a step to the start of the next: not part of any step, " +
  "but shorter steps do not shorten it";
const DOT = " · ";

function stepsWith(category: Category): string {
  return linkTo("steps", { "steps.sort": `-${category}` });
}

function BarPart({ part, meaning, place }: { part: Part; meaning: string; place: PartPlace | null }) {
  const label = CATEGORY_LABEL[part.category];
  const leads = place
    ? `click to show ${place.step} in the timeline: its ${duration(place.ms)} are closest to the mean`
    : "click to list the steps, those with most of it first";
  const goal = place ? `${place.step} in the timeline` : "the steps with most of it";
  return (
    <a
      class="step-bar-part"
      href={place?.href ?? stepsWith(part.category)}
      aria-label={`${label}, ${duration(part.ms)}: ${goal}`}
      style={{
        flexGrow: part.ms,
        background: CATEGORY_COLOUR[part.category],
        color: inkOn(CATEGORY_COLOUR[part.category]),
      }}
      {...hint(label, `${meaning}${DOT}${leads}`, `${part.ms} ms, ${percent(part.percent)}`)}
    >
      {part.percent >= 9 && <span>{duration(part.ms)}</span>}
    </a>
  );
}
