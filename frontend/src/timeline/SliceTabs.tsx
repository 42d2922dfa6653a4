/** The longest events of what the workbench is about, and how long all of them last. */
import { useMemo } from "preact/hooks";
import type { Field } from "../api";
import { Histogram } from "../charts/Histogram";
import { CATEGORY_COLOUR } from "../design/colours";
import { words } from "../format";
import { fromRows, type TableData } from "../table/model";
import { Table } from "../table/Table";
import { Failed, Loading } from "../ui/basics";
import { fieldNamed, PS_A_US } from "./columns";
import type { Model } from "./model";
import { categoryOfKind } from "./paint-colours";
import { duration } from "./ticks";
import { dataOf, scopeText, useScope } from "./useScope";
import type { SlicesAnswer, Spot } from "./wire";

const TOP = 200;

const SLICES: readonly Field[] = [
  fieldNamed("name", "name", "Name of the event; a click zooms to it"),
  fieldNamed("duration_us", "us", "From its start to its end"),
  fieldNamed("start_ms", "ms", "On the time axis of the session"),
  fieldNamed("kind", "text", "What sort of event it is"),
  fieldNamed("track", "text", "Where it is drawn"),
];

export function SlicesTab({ model }: { model: Model }) {
  const asked = useScope(model, (scope, abort) => model.source.slices(scope, TOP, abort));
  const answer = dataOf(asked);
  const data = useMemo(() => slicesOf(model, answer), [model, answer]);
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
        <Table
          id="longest"
          title="Longest events"
          data={data}
          pick={(row) => void model.goTo(answer.slices[row] as Spot, "fit")}
        />
      )}
    </div>
  );
}

function slicesOf(model: Model, answer: SlicesAnswer | null): TableData {
  return fromRows(
    SLICES,
    (answer?.slices ?? []).map(({ name, kind, line, start_ps, duration_ps }) => {
      const track = model.track(line);
      return {
        ...{ name, duration_us: duration_ps / PS_A_US, start_ms: start_ps / 1e3 / PS_A_US },
        kind: kind === "other" ? null : words(kind),
        track: [track?.name, track?.detail].filter(Boolean).join(" "),
      };
    }),
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
      {answer && answer.counts.length > 0 && <Lengths answer={answer} />}
      {answer?.counts.length === 0 && <p class="muted tl-wait">No events with a duration here.</p>}
    </div>
  );
}

function Lengths({ answer }: { answer: SlicesAnswer }) {
  const { counts, edges_ps: edges } = answer;
  const edge = (at: number) => duration(edges[at] as number);
  return (
    <Histogram
      label={`${answer.total} events by duration`}
      nouns={["event", "events"]}
      bins={counts.map((count, bin) => ({ count, range: `${edge(bin)} to ${edge(bin + 1)}` }))}
      colour={CATEGORY_COLOUR[categoryOfKind(answer.slices[0]?.kind ?? "") ?? "device_compute"]}
    >
      <span>{edge(0)}</span>
      <span>
        {`${answer.total.toLocaleString("en-US")} events, ${duration(answer.sum_ps)} in all; `}
        each bar is wider than the one before
      </span>
      <span>{edge(counts.length)}</span>
    </Histogram>
  );
}
