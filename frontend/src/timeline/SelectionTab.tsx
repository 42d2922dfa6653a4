/** The selected event, or the totals of the selected region. */
import { useMemo } from "preact/hooks";
import type { Field } from "../api";
import { percent, words } from "../format";
import { shortKernel } from "../names";
import { linkTo } from "../router";
import { fromRows, type TableData } from "../table/model";
import { Table } from "../table/Table";
import { Code, Segmented } from "../ui/basics";
import { fieldNamed, PS_A_US } from "./columns";
import { isScoped } from "./layout";
import type { Model, SumBy } from "./model";
import { culpritFacts, StretchDetails } from "./StretchTab";
import { nameOf, saidOf } from "./said";
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
  const isScope = track !== null && isScoped(track);
  return (
    <div class="tl-details">
      <header>
        <h2 title={details.full_name}>
          <Code text={saidOf(details, links)} />
        </h2>
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
      {isScope ? <p class="tl-path muted">{OF_A_SCOPE}</p> : <Paths model={model} details={details} links={links} />}
      <details class="tl-recorded">
        <summary>
          {`As recorded: times, track and ${details.stats.length} ${details.stats.length === 1 ? "value" : "values"}`}
        </summary>
        <div class="tl-columns list">
          <dl class="tl-facts">
            {factsOf(model, details, links)
              .filter(([name]) => !(isScope && OF_EVENTS.includes(name)))
              .map(([name, value]) => (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{value}</dd>
                </div>
              ))}
          </dl>
          {!isScope && <Stats stats={details.stats} />}
        </div>
      </details>
    </div>
  );
}

function factsOf(
  model: Model,
  { spot, self_ps, inside, full_name }: EventDetails,
  links: EventLinks | null,
): [string, preact.ComponentChildren][] {
  const track = model.track(spot.line);
  const whole_ps = inside ? spot.duration_ps : 0;
  const share = whole_ps > 0 && self_ps !== null ? ` (${percent((self_ps / whole_ps) * 100, 0)})` : "";
  const op = links?.op && (
    <a href={linkTo("op-stats", { "ops.filter": `name="${links.op.replaceAll('"', "")}"` })}>{links.op}</a>
  );
  return [
    ["Name", full_name || "(no name)"],
    ["Duration", duration(spot.duration_ps)],
    ["Self time", self_ps === null ? <span class="muted">not nested</span> : `${duration(self_ps)}${share}`],
    ["Start", moment(spot.start_ps)],
    ["End", moment(spot.start_ps + spot.duration_ps)],
    ["Track", `${track?.name ?? ""} ${track?.detail ?? ""}`],
    ["Kind", spot.kind === "other" ? <span class="muted">unknown</span> : words(spot.kind)],
    ["Step", links ? (links.step ?? <span class="muted">none</span>) : <Wait />],
    ["Op", links ? op || <span class="muted">none</span> : <Wait />],
    ...(links?.work ? workFacts(model, links.work) : []),
    ...(inside ? [["Inside it", `${inside.toLocaleString("en-US")} events`] as [string, string]] : []),
  ];
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

/** Where an event comes from, the outermost call first, and what it starts. */
function Paths({ model, details, links }: { model: Model; details: EventDetails; links: EventLinks | null }) {
  const around = details.around.filter((spot) => spot.lane >= 0);
  const launch = links?.cause ? [links.cause] : [];
  const effects = links?.effects ?? [];
  const started = effects.length + (links?.effects_hidden ?? 0);
  return (
    <>
      {links?.work ? (
        <Path model={model} label="Launched from" spots={[...links.work.stack, ...launch]} />
      ) : (
        <>
          <Path model={model} label="Caused by" spots={launch} />
          <Path model={model} label="Inside" spots={around} />
        </>
      )}
      <Path
        model={model}
        label={started > 1 ? `Starts ${started.toLocaleString("en-US")}` : "Starts"}
        spots={effects.slice(0, MOST_IN_PATH)}
        isApart
      />
    </>
  );
}

/** So many of a stack are shown, the innermost. */
const MOST_IN_PATH = 8;

interface PathProps {
  model: Model;
  label: string;
  spots: readonly Spot[];
  /** They do not lie inside each other. */
  isApart?: boolean;
}

function Path({ model, label, spots, isApart = false }: PathProps) {
  if (!spots.length) return null;
  const shown = spots.slice(-MOST_IN_PATH);
  return (
    <p class={`tl-path ${isApart ? "apart" : ""}`}>
      <span class="muted">{label}</span>
      {spots.length > shown.length && <span class="muted">{`… ${spots.length - shown.length} more ›`}</span>}
      {shown.map((spot) => (
        <SpotLink key={spot.event} model={model} spot={spot} />
      ))}
    </p>
  );
}

function SpotLink({ model, spot }: { model: Model; spot: Spot }) {
  return (
    <button
      type="button"
      class="tl-spot cut"
      title={`${spot.name}, ${duration(spot.duration_ps)}`}
      onClick={() => void model.goTo(spot)}
    >
      {nameOf(spot)}
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

const TEXTS = { name: shortKernel };

/** What a region is summed by. */
const SUMMED_BY: Readonly<Record<SumBy, string>> = { name: "Name", op: "Op", track: "Track" };

function sumFields(by: SumBy): readonly Field[] {
  return [
    fieldNamed(by, "name", by === "track" ? "A click selects that track alone" : "A click finds all of them"),
    fieldNamed("events", "count", "How many of its events overlap the selection"),
    fieldNamed("total_us", "us", "Sum of the time of these events inside the selection"),
    fieldNamed("self_us", "us", "Total without the time of the events nested directly inside them"),
    fieldNamed("share", "share", "Self time as a share of the selection's length, summed over tracks"),
  ];
}

function Selected({ model, summary }: { model: Model; summary: SelectionAnswer | null }) {
  const region = model.region.value;
  const by = model.sumBy.value;
  const length = region ? region.end - region.begin : 1;
  const data = useMemo(() => sumsOf(summary, by, length), [summary, by, length]);
  if (!region) return null;
  const pick = (row: number) => {
    const found = summary?.rows[row];
    if (by === "track" && found) void model.choose({ ...region, tracks: [`t${found.type}`] });
    else if (found) void model.search(found.name.slice(0, 400), false);
  };
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
          <Segmented
            label="Sum up by"
            value={by}
            options={(Object.keys(SUMMED_BY) as SumBy[]).map((each) => ({ value: each, label: SUMMED_BY[each] }))}
            onChange={(chosen) => model.sumUpBy(chosen)}
          />
          <button type="button" class="button" title="Zoom to the selection (F)" onClick={() => model.fit()}>
            Zoom to selection
          </button>
          <button type="button" class="button" title="Mark the selection (M)" onClick={() => model.mark()}>
            Mark
          </button>
        </div>
      </header>
      {summary ? (
        <Table id="sums" title="Events of the selection" data={data} pick={pick} texts={TEXTS} />
      ) : (
        <p class="muted tl-wait">Computing totals …</p>
      )}
    </div>
  );
}

function sumsOf(summary: SelectionAnswer | null, by: SumBy, length: number): TableData {
  const rows = [...(summary?.rows ?? []), ...(summary?.rest ? [summary.rest] : [])];
  return fromRows(
    sumFields(by),
    rows.map(({ name, events, total_ps, self_ps }) => ({
      ...{ [by]: name || "(no name)", events, total_us: total_ps / PS_A_US, self_us: self_ps / PS_A_US },
      share: (100 * self_ps) / length,
    })),
  );
}

function tracksText(count: number): string {
  return count === 1 ? "one track" : `${count} tracks`;
}
