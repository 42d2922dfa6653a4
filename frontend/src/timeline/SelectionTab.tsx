/** The selected event, or the totals of the selected region. */
import { useMemo } from "preact/hooks";
import type { Field } from "../api";
import { percent, words } from "../format";
import { linkTo } from "../router";
import { fromRows, type TableData } from "../table/model";
import { Table } from "../table/Table";
import { Code } from "../ui/basics";
import { fieldNamed, PS_A_US } from "./columns";
import { isScoped } from "./layout";
import type { Model } from "./model";
import { culpritFacts, StretchDetails } from "./StretchTab";
import { saidOf } from "./said";
import { duration, moment } from "./ticks";
import type { EventDetails, EventLinks, SelectionAnswer, Spot } from "./wire";

/** What is selected; how to select something where nothing is. */
export function SelectionTab({ model }: { model: Model }) {
  const details = model.details.value;
  if (details) return <Details model={model} details={details} links={model.links.value} />;
  if (model.run.value) return <StretchDetails model={model} />;
  if (model.region.value) return <Selected model={model} summary={model.summary.value} />;
  return <p class="muted tl-wait">Click an event, or drag over tracks with Shift to sum up their events.</p>;
}

// -- an event -------------------------------------------------------------------------------------------------------

function Details({ model, details, links }: { model: Model; details: EventDetails; links: EventLinks | null }) {
  const { spot } = details;
  const track = model.track(spot.line);
  const whole_ps = details.inside ? spot.duration_ps : 0;
  const share = whole_ps > 0 && details.self_ps !== null ? ` (${percent((details.self_ps / whole_ps) * 100, 0)})` : "";
  const isScope = track !== null && isScoped(track);
  const facts: [string, preact.ComponentChildren][] = [
    ["Duration", <strong key="d">{duration(spot.duration_ps)}</strong>],
    [
      "Self time",
      details.self_ps === null ? <span class="muted">not nested</span> : `${duration(details.self_ps)}${share}`,
    ],
    ["Start", moment(spot.start_ps)],
    ["End", moment(spot.start_ps + spot.duration_ps)],
    ["Track", `${track?.name ?? ""} ${track?.detail ?? ""}`],
    ["Kind", spot.kind === "other" ? <span class="muted">unknown</span> : words(spot.kind)],
    ["Step", links ? (links.step ?? <span class="muted">none</span>) : <Wait />],
    [
      "Op",
      links ? (
        links.op ? (
          <a href={linkTo("op-stats", { "ops.filter": `name="${links.op.replaceAll('"', "")}"` })}>{links.op}</a>
        ) : (
          <span class="muted">none</span>
        )
      ) : (
        <Wait />
      ),
    ],
    ...(links?.work ? workFacts(model, links.work) : []),
  ];
  return (
    <div class="tl-details">
      <header>
        <h2 title={details.full_name}>{details.full_name || "(no name)"}</h2>
        <div class="flex gap-m rigid">
          <button type="button" class="button" onClick={() => model.fit()} title="Zoom to it (F)">
            {isScope ? "Zoom to scope" : "Zoom to event"}
          </button>
          {isScope && (
            <button
              type="button"
              class="button"
              onClick={() =>
                void model.choose({
                  begin: spot.start_ps,
                  end: spot.start_ps + spot.duration_ps,
                  tracks: [`t${spot.line}`],
                })
              }
              title="The events inside it, summed up by name"
            >
              Sum up
            </button>
          )}
          <button
            type="button"
            class="button"
            onClick={() => void model.search(spot.name, false)}
            title="Find all with this name"
          >
            Find all
          </button>
          <button type="button" class="button" onClick={() => model.mark()} title="Mark the event (M)">
            Mark
          </button>
        </div>
      </header>
      <p class="tl-said">
        <Code text={saidOf(details, links)} />
      </p>
      <div class="tl-columns list fills">
        <Flows model={model} details={details} links={links} />
        <dl class="tl-facts">
          {facts
            .filter(([name]) => !(isScope && OF_EVENTS.includes(name)))
            .map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
        </dl>
        {isScope ? (
          <div class="tl-stats muted">{OF_A_SCOPE}</div>
        ) : (
          <details>
            <summary>
              {`As recorded: ${details.stats.length} ${details.stats.length === 1 ? "value" : "values"}`}
            </summary>
            <Stats stats={details.stats} />
          </details>
        )}
      </div>
    </div>
  );
}

/** Facts that a scope of a program does not have. */
const OF_EVENTS: readonly string[] = ["Self time", "Op"];

const OF_A_SCOPE =
  "A named scope of the compiled program. It lasts from the first to the last piece of work on this stream whose op " +
  "is inside the scope.";

type Work = NonNullable<EventLinks["work"]>;

/** Of device work: the line and layer that it is of, and what it waited for. */
function workFacts(model: Model, { how, idle_ps, waited_for, culprit }: Work): [string, preact.ComponentChildren][] {
  const idle = idle_ps > 0 ? `its stream idled ${duration(idle_ps)}` : "";
  return [
    ...culpritFacts(culprit)
      .filter(([name]) => name !== "Op")
      .map(([name, value]): [string, preact.ComponentChildren] => [name, value]),
    [
      "Waited for",
      <>
        {WAITED[how]}
        {idle && <span class="muted"> ({idle})</span>}
        {waited_for && <SpotLink model={model} spot={waited_for} />}
      </>,
    ],
  ];
}

const WAITED: Readonly<Record<Work["how"], string>> = {
  launch: "its launch",
  stream: "the work before it on its stream",
  queue: "work of another queue",
};

function Wait() {
  return <span class="muted">…</span>;
}

function Flows({ model, details, links }: { model: Model; details: EventDetails; links: EventLinks | null }) {
  const around = details.around.slice(-12);
  const more = details.around_hidden + details.around.length - around.length;
  return (
    <div class="tl-flows">
      {links?.cause && (
        <>
          <h3>Caused by</h3>
          <SpotLink model={model} spot={links.cause} />
        </>
      )}
      {links && links.effects.length > 0 && (
        <>
          <h3>
            Caused{" "}
            {links.effects.length + links.effects_hidden > 1 && (
              <span class="muted">{(links.effects.length + links.effects_hidden).toLocaleString("en-US")} events</span>
            )}
          </h3>
          {links.effects.slice(0, 6).map((spot) => (
            <SpotLink key={spot.event} model={model} spot={spot} />
          ))}
          {links.effects.length + links.effects_hidden > 6 && (
            <div class="muted">
              and {(links.effects.length + links.effects_hidden - 6).toLocaleString("en-US")} more
            </div>
          )}
        </>
      )}
      {links?.work && links.work.stack.length > 0 && (
        <>
          <h3>Launched from</h3>
          {links.work.stack.map((spot) => (
            <SpotLink key={spot.event} model={model} spot={spot} />
          ))}
        </>
      )}
      {(around.length > 0 || !links?.work) && <h3>Inside</h3>}
      {more > 0 && <div class="muted">{more} more around these</div>}
      {around.map((spot, depth) => (
        <div key={spot.event} style={{ paddingLeft: Math.min(depth, 8) * 8 }}>
          <SpotLink model={model} spot={spot} />
        </div>
      ))}
      {!around.length && !links?.work && <div class="muted">nothing: no event of its track contains it</div>}
      {details.inside > 0 && (
        <div class="muted tl-inside">
          {details.inside === 1 ? "1 event inside it" : `${details.inside.toLocaleString("en-US")} events inside it`}
        </div>
      )}
    </div>
  );
}

function SpotLink({ model, spot }: { model: Model; spot: Spot }) {
  return (
    <button type="button" class="tl-spot flex gap-l" title={spot.name} onClick={() => void model.goTo(spot)}>
      <span class="tl-spot-name cut fills">{spot.name}</span>
      <span class="rigid muted">{duration(spot.duration_ps)}</span>
    </button>
  );
}

function Stats({ stats }: { stats: EventDetails["stats"] }) {
  if (!stats.length) return <div class="tl-stats muted">The recording has no further details of this event.</div>;
  return (
    <dl class="tl-stats">
      {stats.map(([name, value]) => (
        <div key={name}>
          <dt title={name}>{name}</dt>
          <dd>{statText(name, value)}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A detail as text: ids unchanged, stacks one frame per line. */
function statText(name: string, value: string | number | null): string {
  if (value === null) return "–";
  if (typeof value === "string") return /stack/i.test(name) ? value.replaceAll(";", "\n") : value;
  return /\bid\b|_id$|number|index|device|stream|rank|level/i.test(name)
    ? String(value)
    : value.toLocaleString("en-US", { maximumFractionDigits: 6 });
}

// -- a selection ----------------------------------------------------------------------------------------------------

const SUMS: readonly Field[] = [
  fieldNamed("name", "name", "Name of the events; a click finds all of them"),
  fieldNamed("events", "count", "How many events of this name overlap the selection"),
  fieldNamed("total_us", "us", "Sum of the time of these events inside the selection"),
  fieldNamed("self_us", "us", "Total without the time of the events nested directly inside them"),
  fieldNamed("share", "share", "Self time as a share of the selection's length, summed over tracks"),
];

function Selected({ model, summary }: { model: Model; summary: SelectionAnswer | null }) {
  const region = model.region.value;
  const length = region ? region.end - region.begin : 1;
  const data = useMemo(() => sumsOf(summary, length), [summary, length]);
  if (!region) return null;
  return (
    <div class="tl-details">
      <header>
        <h2>
          {duration(length)}{" "}
          <span class="muted">
            from {moment(region.begin)} on {region.tracks ? tracksText(region.tracks.length) : "all tracks"}
            {summary && `: ${summary.events.toLocaleString("en-US")} events, ${duration(summary.self_ps)} in all`}
          </span>
        </h2>
        <div class="flex gap-m rigid">
          <button type="button" class="button" title="Zoom to the selection (F)" onClick={() => model.fit()}>
            Zoom to selection
          </button>
          <button type="button" class="button" title="Mark the selection (M)" onClick={() => model.mark()}>
            Mark
          </button>
        </div>
      </header>
      {summary ? (
        <Table
          id="sums"
          title="Events of the selection"
          data={data}
          pick={(row) => void model.search(String(data.columns.name?.[row]).slice(0, 400), false)}
        />
      ) : (
        <p class="muted tl-wait">Computing totals …</p>
      )}
    </div>
  );
}

function sumsOf(summary: SelectionAnswer | null, length: number): TableData {
  const rows = [...(summary?.rows ?? []), ...(summary?.rest ? [summary.rest] : [])];
  return fromRows(
    SUMS,
    rows.map(({ name, events, total_ps, self_ps }) => ({
      ...{ name: name || "(no name)", events, total_us: total_ps / PS_A_US, self_us: self_ps / PS_A_US },
      share: (100 * self_ps) / length,
    })),
  );
}

function tracksText(count: number): string {
  return count === 1 ? "one track" : `${count} tracks`;
}
