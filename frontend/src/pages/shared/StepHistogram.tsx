/** How step times are spread: how many steps take how long, with the slow ones named. */
import { Histogram } from "../../charts/Histogram";
import { bins } from "../../charts/steps";
import { duration } from "../../format";
import { type GraphStep, isLong } from "./StepGraph";

/** Of fewer steps each can be seen in the graph. */
const LEAST_STEPS = 20;
const MOST_NAMED = 5;

export function StepHistogram({ steps, long_ms }: { steps: readonly GraphStep[]; long_ms: number }) {
  const counted = steps.filter((step) => step.usual);
  if (counted.length < LEAST_STEPS) return null;
  const times = counted.map((step) => step.duration_ms);
  const slow = counted.filter((step) => isLong(step, long_ms)).sort((a, b) => b.duration_ms - a.duration_ms);
  return (
    <Histogram
      label={`Histogram of the times of ${counted.length} steps`}
      nouns={["step", "steps"]}
      bins={bins(times).map(({ low, high, count }) => ({ count, range: `${duration(low)} to ${duration(high)}` }))}
    >
      <span>{duration(Math.min(...times))}</span>
      <Slow steps={slow} />
      <span>{duration(Math.max(...times))}</span>
    </Histogram>
  );
}

function Slow({ steps }: { steps: readonly GraphStep[] }) {
  if (!steps.length) return <span>how many steps take how long</span>;
  const more = steps.length - MOST_NAMED;
  return (
    <span>
      Slow:{" "}
      {steps.slice(0, MOST_NAMED).map((step, at) => (
        <span key={`${step.step} ${at}`}>
          {at > 0 && ", "}
          {step.beside ? <a href={step.beside}>{`step ${step.step}`}</a> : `step ${step.step}`}{" "}
          {duration(step.duration_ms)}
        </span>
      ))}
      {more > 0 && ` and ${more} more`}
    </span>
  );
}
