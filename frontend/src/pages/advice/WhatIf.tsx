/** What if a part of the step took less time: the prediction of `stepscope whatif`, while sliders move. */
import { useEffect, useState } from "preact/hooks";
import { type ApiError, asApiError, getJson, type ToolAnswer, useResource } from "../../api";
import { duration } from "../../format";
import { middleCut, shortKernel } from "../../names";
import { answerAddress, sessionId } from "../../session";
import { termText } from "../../terms";
import { Code, Failed, Loading, sentence, uncapital } from "../../ui/basics";
import { Drawer } from "../../ui/dialog";
import { Icon } from "../../ui/icons";
import type { Advice, OverviewReport } from "../shared/reports";
import { gainOf } from "./AdviceCard";

interface Prediction {
  readonly step_time_ms: number | null;
  readonly predicted_step_time_ms: number | null;
  readonly predicted_least_ms: number | null;
  readonly predicted_most_ms: number | null;
  readonly predicted_speedup: number | null;
  readonly reasoning: string;
}

interface Part {
  readonly name: string;
  readonly label: string;
  readonly note: string;
}

const WHOLE = 100;
const REST_MS = 300;
/** Smaller parts of the step have no slider. */
const LEAST_PERCENT = 1;

export default function WhatIf({ onClose }: { onClose: () => void }) {
  const overview = useResource<ToolAnswer<"overview", OverviewReport>>(answerAddress("overview"));
  const [own, setOwn] = useState<readonly string[]>([]);
  const [shares, setShares] = useState<Readonly<Record<string, number>>>({});
  const report = overview.state === "ready" ? overview.data.report : null;
  const parts: Part[] = [
    ...(report?.account ?? [])
      .filter((cause) => Number(cause.percent) >= LEAST_PERCENT)
      .map((cause) => ({
        name: cause.cause,
        label: termText(cause.cause),
        note: `${duration(cause.ms)}${cause.culprit ? `, most of it ${partName(cause.culprit.name)}` : ""}`,
      })),
    ...own.map((name) => ({ name, label: name, note: "" })),
  ];
  const shareOf = ({ name }: Part) => shares[name] ?? WHOLE;
  const changes = parts.map((part) => [part.name, shareOf(part)] as const).filter(([, share]) => share !== WHOLE);
  const answer = usePrediction(changes);
  return (
    <Drawer title="What if a part took less time?" onClose={onClose}>
      {changes.length > 0 ? <PredictionOf answer={answer} /> : <Advised advice={report?.advice[0]} />}
      <p class="muted">
        Choose how much of a part’s time stays. The recorded steps are replayed with that change, so what overlaps is
        counted once.
      </p>
      <ul class="whatif-parts list gap-m">
        {parts.map((part) => (
          <PartRow
            key={part.name}
            part={part}
            share={shareOf(part)}
            setShare={(share) => setShares({ ...shares, [part.name]: share })}
          />
        ))}
      </ul>
      <AddPart add={(name) => own.includes(name) || setOwn([...own, name])} />
    </Drawer>
  );
}

/** A kernel's name without namespaces, and a range without what PyTorch puts behind it, no longer than a row. */
const partName = (text: string) => middleCut(/^void |<.*>/.test(text) ? shortKernel(text) : text.replace(/#.*/, ""));

function PartRow({ part, share, setShare }: { part: Part; share: number; setShare: (share: number) => void }) {
  const isKnown = part.name !== "unknown";
  return (
    <li>
      <label>
        <span class="whatif-name list breaks">
          <strong>{part.label}</strong>
          <span class="muted" title={part.note}>
            {isKnown ? part.note : `${part.note}; nothing recorded says what it is, so it stays`}
          </span>
        </span>
        <input
          type="range"
          min={0}
          max={WHOLE}
          step={5}
          value={share}
          disabled={!isKnown}
          aria-valuetext={`${share} % of its time stays`}
          onInput={(event) => setShare(Number(event.currentTarget.value))}
        />
      </label>
      <output>{share === 0 ? "gone" : `${share} %`}</output>
    </li>
  );
}

function AddPart({ add }: { add: (name: string) => void }) {
  return (
    <form
      class="whatif-add flex gap-m"
      onSubmit={(event) => {
        event.preventDefault();
        const name = String(new FormData(event.currentTarget).get("part") ?? "").trim();
        if (name) add(name);
        event.currentTarget.reset();
      }}
    >
      <input
        type="text"
        name="part"
        aria-label="Another part"
        placeholder="an op, a kernel, a function, or train.py:12"
      />
      <button type="submit" class="button">
        Add
      </button>
    </form>
  );
}

type Answer = { readonly prediction: Prediction } | { readonly error: ApiError } | null;

function usePrediction(changes: readonly (readonly [string, number])[]): Answer {
  const [answer, setAnswer] = useState<Answer>(null);
  const query = changes.map(([part, share]) => `scale=${encodeURIComponent(`${part}:${share / WHOLE}`)}`).join("&");
  const id = sessionId.value;
  useEffect(() => {
    if (!query || !id) {
      setAnswer(null);
      return undefined;
    }
    const abort = new AbortController();
    const timer = window.setTimeout(() => {
      getJson<Prediction>(`api/sessions/${encodeURIComponent(id)}/whatif?${query}`, abort.signal).then(
        (prediction) => !abort.signal.aborted && setAnswer({ prediction }),
        (error: unknown) => !abort.signal.aborted && setAnswer({ error: asApiError(error) }),
      );
    }, REST_MS);
    return () => {
      window.clearTimeout(timer);
      abort.abort();
    };
  }, [query, id]);
  return answer;
}

function PredictionOf({ answer }: { answer: Answer }) {
  if (!answer) return <Loading what="Replaying the steps" />;
  if ("error" in answer) return <Failed error={answer.error} />;
  return <Predicted {...answer.prediction} />;
}

/** Before any slider is moved, what the first advice gives. */
function Advised({ advice }: { advice: Advice | undefined }) {
  if (!advice?.predicted_speedup) return <p class="muted whatif-answer">Move a slider</p>;
  const first = uncapital(advice.title);
  const reasoning = `this is the first advice, ${first}; move a slider for something else`;
  const { gain, isLeast, after } = gainOf(advice);
  const said = { predicted_speedup: gain, predicted_step_time_ms: after, step_time_ms: advice.step_time_ms, reasoning };
  return <Predicted {...said} predicted_least_ms={isLeast ? 0 : null} predicted_most_ms={isLeast ? after : null} />;
}

function Predicted(found: Prediction) {
  const { step_time_ms: now, predicted_step_time_ms: then, predicted_least_ms: least, predicted_most_ms: most } = found;
  if (now === null || then === null) return <p class="whatif-answer">The step cannot be predicted.</p>;
  const isMost = least === 0 && then > 0 && then === most;
  return (
    <div class="whatif-answer" role="status">
      <p class="whatif-times row wrap gap-m title-size">
        {duration(now)} <Icon name="arrow" size={16} /> {isMost && "at most "}
        <strong>{duration(then)}</strong>
        {found.predicted_speedup !== null && (
          <span>{`${isMost ? "at least " : ""}${found.predicted_speedup}× faster`}</span>
        )}
      </p>
      <div class="hbar-track below-m">
        <span style={{ width: `${(100 * then) / Math.max(now, then)}%`, background: "var(--good)" }} />
      </div>
      {least !== null && most !== null && !isMost && (
        <p class="muted">{`between ${duration(least)} and ${duration(most)} a step`}</p>
      )}
      <p class="muted">
        <Code text={sentence(found.reasoning)} />
      </p>
    </div>
  );
}
