/** One item of advice: what to change, why, the gain, and the evidence. */

import { decimal, duration } from "../../format";
import { evidenceInTimeline } from "../../links";
import { shortKernel } from "../../names";
import { linkTo } from "../../router";
import { fact, session } from "../../session";
import { copyText } from "../../table/export";
import { toolEntry } from "../../tools";
import { Code, LongName, sentence } from "../../ui/basics";
import { IconButton } from "../../ui/controls";
import { hint } from "../../ui/hint";
import { Icon } from "../../ui/icons";
import { Picture, type Pictures } from "../shared/pictures";
import type { Advice, EvidenceInterval, EvidenceRow, Measured } from "../shared/reports";
import { evidenceLink, evidenceName } from "./evidence";
import { Source } from "./Source";

interface AdviceCardProps {
  advice: Advice;
  first?: boolean;
  /** With the reasoning, all actions, and every row and interval of the evidence. */
  whole?: boolean;
  rank?: number;
  /** What the page has said above: the card leaves it out. */
  said?: string;
  isBusy?: boolean;
  /** Of a report: they stand where the page leads to the timeline. */
  pictures?: Pictures | undefined;
}

export function AdviceCard({
  advice,
  first = false,
  whole = false,
  rank,
  said = "",
  isBusy = false,
  pictures,
}: AdviceCardProps) {
  const picture = pictures?.get(advice.id);
  const evidence = unsaid(advice.evidence, said);
  return (
    <article class={`card advice-card ${first ? "first" : ""}`} data-advice={advice.id}>
      {first && advice.class !== "none" && <p class="eyebrow minor strong">{advice.beside ?? "Do this first"}</p>}
      <h2>
        <Code text={rank !== undefined && advice.class !== "none" ? `${rank}. ${advice.title}` : advice.title} />
      </h2>
      <Gain advice={advice} isBusy={isBusy} />
      {whole && advice.class !== "none" && <Badges advice={advice} />}
      {evidence && (
        <p class="evidence">
          <Code text={sentence(evidence)} />
        </p>
      )}
      {(first || whole) && !pictures && <Source advice={advice} />}
      <Actions list={advice.actions} all={first || whole || !!pictures} />
      {(first || whole) && !pictures && !advice.measured && advice.prove && advice.class !== "none" && (
        <Prove command={advice.prove} />
      )}
      {whole && advice.reasoning && (
        <p class="reasoning">
          <strong>{advice.predicted_speedup === null ? "Why: " : "How it is predicted: "}</strong>
          <Code text={sentence(advice.reasoning).replaceAll(" -> ", " → ")} />
        </p>
      )}
      {picture && <Picture of={picture} />}
      {!pictures && (whole ? <Evidence advice={advice} /> : <MainEvidence advice={advice} />)}
    </article>
  );
}

/** Of what a share is: beside a headline that is clear. */
const OF_STEP = / % of (?:each|the)[ \w]*? step(?: without contention)?(?= is )/;

/** The parts of a sentence that another one does not have, be it in other words after a comma. */
function unsaid(text: string, said: string): string {
  const claim = (part: string) => (part.split(/, |: /, 1)[0] ?? "").replace(OF_STEP, " %");
  const known = new Set(said.split(/: |; (?:of the rest, )?/).map(claim));
  return text
    .split("; ")
    .map((part) => (known.has(claim(part)) ? part.split(": ").slice(1).join(": ").replace(/^`/, "mostly `") : part))
    .filter(Boolean)
    .join("; ");
}

function hasSeveralHosts(): boolean {
  return (session.value?.hosts.length ?? 1) > 1;
}

const STEP_TIME_HERE =
  "Step time here is the time from one step to the next on the slowest host, " +
  "without the cost of recording where it is known.";
const HOW_OFTEN = "The measured gain was in this range for four of five test programs.";

function times(factor: number): string {
  return decimal(factor, factor < 10 ? 2 : 0);
}

/** Where the range is wide, only its lower end means something; where it is narrow, the gain says as much. */
const WIDE = 2.5;
const NARROW = 1.15;

/** Without an upper end the lower one is said, if it is a gain at all; as the terminal does. */
const LEAST_GAIN = 1.03;

function rangeText(least: number, most: number | null): string {
  if (most === null || most > WIDE * least) return `at least ${times(least)}×`;
  return most < NARROW * least ? "" : `likely ${times(least)}× to ${times(most)}×`;
}

/** What was measured stands where the prediction would stand. */
function MeasuredGain({ measured }: { measured: Measured }) {
  const { speedup, speedup_least: least, speedup_most: most } = measured;
  return (
    <p
      class="gain"
      tabIndex={0}
      {...hint("Measured in the running job", sentence(measured.sentence), `${speedup}× faster`)}
    >
      <strong>{times(speedup)}× faster</strong>
      <span class="muted minor">
        measured {times(least)}× to {times(most)}×
      </span>
    </p>
  );
}

export function isMachineBusy(verdict: string): boolean {
  return verdict.startsWith("machine busy");
}

/** The gain that is said, as a factor and as the step time then, and whether it is only the least. */
export function gainOf(advice: Advice) {
  const { predicted_speedup: replayed, predicted_speedup_least: least, predicted_speedup_most: most } = advice;
  const isLeast = replayed !== null && least !== null && most === null && (replayed <= least || least >= LEAST_GAIN);
  const [gain, now] = [isLeast ? least : replayed, advice.step_time_ms];
  return { gain, isLeast, after: isLeast && now !== null ? now / least : advice.predicted_step_time_ms };
}

/** Times of a busy machine would not shrink in proportion, and are left out. */
function Gain({ advice, isBusy }: { advice: Advice; isBusy: boolean }) {
  if (advice.measured) return <MeasuredGain measured={advice.measured} />;
  const { predicted_speedup_least: least, predicted_speedup_most: most, step_time_ms: now } = advice;
  const { gain, isLeast, after } = gainOf(advice);
  if (gain === null && advice.class !== "none" && fact("steps_source") === "none") {
    return <p class="gain muted minor">gain not predicted: no steps were recorded</p>;
  }
  if (gain === null || gain <= 1) return null;
  const how = isLeast ? "at least" : "about";
  const isOne = least !== null && most !== null && times(least) === times(gain) && times(most) === times(gain);
  const hasRange = least !== null && !isLeast && !isOne;
  return (
    <p
      class="gain"
      tabIndex={0}
      {...hint(
        "Predicted step time",
        `${hasRange ? `${HOW_OFTEN} ` : ""}${sentence(advice.reasoning)}. ${STEP_TIME_HERE}`,
        `${isLeast ? "At least " : ""}${gain}× faster`,
      )}
    >
      {now !== null && after !== null && !isBusy && (
        <span class="inline-row gap-m strong">
          {duration(now)} <Icon name="arrow" size={14} /> {isLeast && "at most "}
          {duration(after)}
        </span>
      )}
      <strong>
        {how} {times(gain)}× faster
      </strong>
      {hasRange && <span class="muted minor">{rangeText(least, most)}</span>}
    </p>
  );
}

function Badges({ advice: { confidence: sure } }: { advice: Advice }) {
  if (sure === null) return null;
  return (
    <div class="row above-m">
      <span
        class="confidence"
        tabIndex={0}
        {...hint(
          "Confidence",
          "how sure the rule is that this is the cause, measured on programs with a known bottleneck",
          `${Math.round(100 * sure)} %`,
        )}
      >
        <span class="confidence-track" aria-hidden="true">
          <span style={{ width: `${100 * sure}%` }} />
        </span>
        {Math.round(100 * sure)} % sure
      </span>
    </div>
  );
}

/** The command that measures the gain in the running job. */
function Prove({ command }: { command: string }) {
  return (
    <p class="prove">
      Measure it first: <code>{command}</code>
      <CopyButton text={command} />
    </p>
  );
}

function CopyButton({ text }: { text: string }) {
  return (
    <IconButton
      icon="copy"
      class="copy"
      label={`Copy: ${text}`}
      onClick={() => void copyText(text)}
      {...hint("Copy", "")}
    />
  );
}

function Actions({ list, all }: { list: readonly string[]; all: boolean }) {
  if (!list.length) return null;
  if (!all || list.length === 1) {
    return (
      <p class="actions">
        <Code text={sentence(list[0] as string)} />
      </p>
    );
  }
  return (
    <ol class="actions">
      {list.map((action) => (
        <li key={action}>
          <Code text={sentence(action)} />
          <CopyButton text={action} />
        </li>
      ))}
    </ol>
  );
}

/** On the summary: the first interval, and the page that shows the rest. */
function MainEvidence({ advice }: { advice: Advice }) {
  const tool = toolEntry(advice.tool);
  const place = advice.intervals[0];
  const row = advice.rows.find((each) => each.tool === advice.tool);
  return (
    <p class="more-links flex wrap">
      {tool && !tool.missing && advice.tool !== "overview" && (
        <a class="more" href={row ? evidenceLink(row) : linkTo(advice.tool)}>
          Evidence in {tool.heading} <Icon name="arrow" size={14} />
        </a>
      )}
      {place && (
        <a class="more" href={placeLink(place, advice)}>
          Show in the timeline <Icon name="arrow" size={14} />
        </a>
      )}
      {advice.class !== "none" && (
        <a class="more" href={linkTo("advice")}>
          Why, and how sure it is
        </a>
      )}
    </p>
  );
}

function Evidence({ advice }: { advice: Advice }) {
  const tool = toolEntry(advice.tool);
  // The longest call of a row stands beside it, so that no name is there twice.
  const placeOf = (row: EvidenceRow) => advice.intervals.find((place) => place.name === evidenceName(row));
  const beside = advice.rows.map(placeOf);
  const places = advice.intervals.filter((place) => !beside.includes(place));
  return (
    <div class="evidence-lists">
      {advice.rows.length > 0 && (
        <section>
          <h3>Rows</h3>
          <ul>
            {advice.rows.map((row, at) => (
              <li key={`${row.tool} ${row.key}`} class="evidence-pair list">
                <RowLink row={row} />
                {beside[at] && <PlaceLink place={beside[at]} advice={advice} isBeside />}
              </li>
            ))}
          </ul>
        </section>
      )}
      {places.length > 0 && (
        <section>
          <h3>Longest in the timeline</h3>
          <ul>
            {places.map((place) => (
              <li key={`${place.host} ${place.start_ms}`}>
                <PlaceLink place={place} advice={advice} />
              </li>
            ))}
          </ul>
        </section>
      )}
      <section>
        <h3>More</h3>
        <ul>
          {tool && !tool.missing && !advice.rows.some((row) => row.tool === advice.tool) && (
            <li>
              <a class="evidence-row list gap-m" href={linkTo(advice.tool)}>
                <Icon name={advice.tool} size={16} /> <span>{tool.heading}</span>
              </a>
            </li>
          )}
          {advice.docs && (
            <li>
              <a
                class="evidence-row list gap-m"
                href={linkTo("advice", { about: advice.class })}
                {...hint(
                  "From the documentation",
                  "what the class means, when it is reported, how sure it is and how the gain is predicted",
                  advice.docs,
                )}
              >
                <Icon name="help" size={16} /> <span>What this means, and when it is said</span>
              </a>
            </li>
          )}
        </ul>
      </section>
    </div>
  );
}

function perStep(): string {
  return fact("steps_source") === "none" ? "in the capture" : "a step on average";
}

function RowLink({ row }: { row: EvidenceRow }) {
  const tool = toolEntry(row.tool);
  return (
    <a
      class="evidence-row list gap-m"
      href={evidenceLink(row)}
      {...hint(
        `${tool?.heading ?? row.tool}: ${evidenceName(row)}`,
        `a row of evidence for this advice; its time is ${perStep()}`,
        row.value_ms > 0 ? `${row.value_ms} ms` : "",
      )}
    >
      <Icon name={row.tool} size={16} />
      <LongName text={shortKernel(evidenceName(row))} />
      {row.value_ms > 0 && <strong>{`${duration(row.value_ms)} ${perStep()}`}</strong>}
    </a>
  );
}

function placeLink(place: EvidenceInterval, advice: Advice): string {
  const why = place.name ? `${advice.title}: ${place.name}` : advice.title;
  return evidenceInTimeline(place.start_ms, place.end_ms, why.slice(0, 200), hasSeveralHosts() ? place.host : null);
}

interface PlaceLinkProps {
  place: EvidenceInterval;
  advice: Advice;
  /** It stands behind the row of its name. */
  isBeside?: boolean;
}

function PlaceLink({ place, advice, isBeside = false }: PlaceLinkProps) {
  return (
    <a
      class="evidence-row list gap-m"
      href={placeLink(place, advice)}
      {...hint(place.name || "A place in the trace", `on ${place.host}`, `${place.start_ms} to ${place.end_ms} ms`)}
    >
      <Icon name="timeline" size={16} />
      {isBeside ? (
        <span class="offscreen">{`Its longest call: ${place.name}`}</span>
      ) : (
        <LongName text={shortKernel(place.name) || `at ${duration(place.start_ms)}`} />
      )}
      <strong>{duration(place.end_ms - place.start_ms)}</strong>
    </a>
  );
}
