/** The longest events of what the workbench is about, and how long all of them last. */
import { useState } from "preact/hooks";
import { CATEGORY_COLOUR } from "../design/colours";
import { words } from "../format";
import { Failed, Loading, LongName } from "../ui/basics";
import type { Model } from "./model";
import { categoryOfKind } from "./paint-colours";
import { duration, moment } from "./ticks";
import { dataOf, scopeText, useScope } from "./useScope";
import type { SlicesAnswer, Spot } from "./wire";

const TOP = 200;

export function SlicesTab({ model }: { model: Model }) {
  const asked = useScope(model, (scope, abort) => model.source.slices(scope, TOP, abort));
  const answer = dataOf(asked);
  const longest = answer?.slices[0]?.duration_ps ?? 1;
  return (
    <div class="wb-tab">
      <p class="wb-controls row wrap below-m minor muted">
        {answer
          ? `${scopeText(model)}: ${answer.total.toLocaleString("en-US")} events, the longest first`
          : scopeText(model)}
      </p>
      {asked.state === "failed" && <Failed error={asked.error} />}
      {!answer && asked.state === "loading" && <Loading what="Looking for the longest" />}
      {answer && (
        <div class="tl-table of-slices">
          <table>
            <thead>
              <tr>
                <th>Name</th>
                <th>Kind</th>
                <th>Track</th>
                <th>Start</th>
                <th>Duration</th>
                <th aria-label="Share of the longest" />
              </tr>
            </thead>
            <tbody>
              {answer.slices.map((spot) => (
                <SliceRow key={spot.event} model={model} spot={spot} longest={longest} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

function SliceRow({ model, spot, longest }: { model: Model; spot: Spot; longest: number }) {
  const track = model.track(spot.line);
  const isChosen = model.selected.value?.event === spot.event;
  return (
    <tr class={isChosen ? "chosen" : ""}>
      <td>
        <button type="button" onClick={() => void model.goTo(spot, "fit")}>
          <LongName text={spot.name} />
        </button>
      </td>
      <td>{spot.kind === "other" ? "" : words(spot.kind)}</td>
      <td>{[track?.name, track?.detail].filter(Boolean).join(" ").slice(0, 40)}</td>
      <td>{moment(spot.start_ps)}</td>
      <td>{duration(spot.duration_ps)}</td>
      <td class="tl-share">
        <span style={{ width: `${(100 * spot.duration_ps) / longest}%` }} />
      </td>
    </tr>
  );
}

// -- durations --------------------------------------------------------------------------------------------------

export function DurationsTab({ model }: { model: Model }) {
  const asked = useScope(model, (scope, abort) => model.source.slices(scope, 1, abort));
  const answer = dataOf(asked);
  return (
    <div class="wb-tab">
      <p class="wb-controls row wrap below-m minor muted">{`${scopeText(model)}: how many events last how long`}</p>
      {asked.state === "failed" && <Failed error={asked.error} />}
      {!answer && asked.state === "loading" && <Loading what="Counting" />}
      {answer && answer.counts.length > 0 && <Histogram answer={answer} />}
      {answer?.counts.length === 0 && <p class="muted tl-wait">No events with a duration here.</p>}
    </div>
  );
}

function Histogram({ answer }: { answer: SlicesAnswer }) {
  const [at, setAt] = useState<number | null>(null);
  const { counts, edges_ps: edges } = answer;
  const most = Math.max(...counts);
  const kind = answer.slices[0]?.kind ?? "";
  const colour = CATEGORY_COLOUR[categoryOfKind(kind) ?? "device_compute"];
  const range = (bin: number) => `${duration(edges[bin] as number)} to ${duration(edges[bin + 1] as number)}`;
  const said = (bin: number) => `${(counts[bin] as number).toLocaleString("en-US")} events of ${range(bin)}`;
  return (
    <figure class="histogram">
      <ul aria-label="Events by duration">
        {counts.map((count, bin) => (
          <li
            key={edges[bin]}
            tabIndex={0}
            aria-label={said(bin)}
            onMouseEnter={() => setAt(bin)}
            onFocus={() => setAt(bin)}
          >
            <span style={{ height: `${(100 * count) / most}%`, background: colour }} />
          </li>
        ))}
      </ul>
      <ol class="histogram-axis flex spread muted minor" aria-hidden="true">
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <li key={share}>{duration(edges[Math.round(share * counts.length)] as number)}</li>
        ))}
      </ol>
      <figcaption>
        <span>{`up to ${most.toLocaleString("en-US")} events a bar`}</span>
        <strong role="status">
          {at === null ? `${answer.total.toLocaleString("en-US")} events, ${duration(answer.sum_ps)} in all` : said(at)}
        </strong>
        <span>duration, each bar wider than the one before</span>
      </figcaption>
    </figure>
  );
}
