/** Sampled counters over time: one line each, all on one axis of time. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { Chart } from "../../charts/Chart";
import { fromZero, numbers, type Plot } from "../../charts/plot";
import { CATEGORY_COLOUR } from "../../design/colours";
import { counterText, duration } from "../../format";
import { intervalInTimeline } from "../../links";
import { host as chosenHost, session, sessionId } from "../../session";
import { type CounterValues, type GroupInfo, Source, type TrackInfo, type WindowAnswer } from "../../timeline/wire";
import { Card, Loading } from "../../ui/basics";
import { hint } from "../../ui/hint";

const CELLS = 400;
const MOST_LINES = 40;
const AT_ONCE = 4;
const HEIGHT = 110;
const PS_PER_MS = 1e9;

interface Line {
  readonly track: TrackInfo;
  readonly values: CounterValues;
  readonly cells: number;
  readonly begin: number;
  readonly cell: number;
}

export function CounterLines() {
  const id = sessionId.value;
  const hosts = session.value?.hosts ?? [];
  const host = chosenHost.value ?? hosts[0]?.name ?? null;
  const [lines, setLines] = useState<readonly Line[] | null>(null);
  useEffect(() => {
    let isGone = false;
    setLines(null);
    if (id)
      fetchLines(new Source(id, host)).then(
        (found) => !isGone && setLines(found),
        () => !isGone && setLines([]), // the table below has the figures
      );
    return () => {
      isGone = true;
    };
  }, [id, host]);
  if (!lines) return <Loading what="Fetching the samples" />;
  if (!lines.length) return null;
  const several = hosts.length > 1;
  return (
    <Card title="Over time" note={`${several ? `on ${host}; ` : ""}click a moment to see it in the timeline`}>
      <ul class="counter-lines">
        {lines.map((line) => (
          <CounterLine key={line.track.id} line={line} host={several ? host : null} />
        ))}
      </ul>
    </Card>
  );
}

async function fetchLines(source: Source): Promise<Line[]> {
  const tracks = await source.tracks();
  const [begin, end] = tracks.span_ps;
  const counters = tracks.groups
    .filter((group) => group.kind === "counters")
    .flatMap(tracksOf)
    .slice(0, MOST_LINES);
  const lines: Line[] = [];
  for (let first = 0; first < counters.length; first += AT_ONCE) {
    const some = counters.slice(first, first + AT_ONCE);
    const span = { begin, end: Math.max(begin + 1, end) };
    const ids = some.map((track) => track.id);
    const [answer] = (await source.windows(span, CELLS, ids)) as [WindowAnswer];
    some.forEach((track, at) => {
      const values = answer.counters[at];
      if (values?.cell.length && track.lowest !== track.highest)
        // one value is in the table
        lines.push({ track, values, cells: answer.cells, begin: answer.begin, cell: 2 ** answer.level });
    });
  }
  return lines;
}

function tracksOf(group: GroupInfo): TrackInfo[] {
  return [...group.tracks, ...group.groups.flatMap(tracksOf)];
}

/** One counter over the recording; a click leads to the moment. */
function CounterLine({ line, host }: { line: Line; host: string | null }) {
  const { track } = line;
  const plot = useMemo(() => counterPlot(line), [line]);
  const range = [track.lowest, track.highest].map((value) => (value === null ? "" : counterText(value, track.unit)));
  const span = `${range[0]} to ${range[1]}`;
  const around = (ms: number) => aroundMoment(ms, line, host);
  const [low, high] = plot.x.range;
  return (
    <li>
      <span class="counter-name flex spread gap-l minor">
        <a href={around((low + high) / 2)} {...hint(track.name, track.detail, span)}>
          {track.name}
        </a>
        <span class="muted">{span}</span>
      </span>
      <Chart
        label={`${track.name} over time, ${span}`}
        plot={plot}
        height={HEIGHT}
        marks={line.values.cell.length}
        onPick={(_, ms) => {
          window.location.hash = around(ms);
        }}
      />
    </li>
  );
}

function aroundMoment(ms: number, line: Line, host: string | null): string {
  const half = (line.cells * line.cell) / PS_PER_MS / 50;
  return intervalInTimeline(Math.max(0, ms - half), ms + half, host);
}

/** The largest value of each moment, from zero or from the lowest value where that is negative. */
function counterPlot({ track, values, cells, begin, cell }: Line): Plot {
  const ms = (at: number) => (begin + at * cell) / PS_PER_MS;
  const x = Array.from(values.cell, ms);
  const y = Array.from(values.high);
  const colour = CATEGORY_COLOUR.host_compute;
  const write = (value: number) => counterText(value, track.unit);
  const base = track.unit === "bytes" ? 2 : 10;
  const low = track.lowest ?? 0;
  return {
    x: numbers([x[0] ?? ms(0), ms(cells)], duration),
    y: low < 0 ? numbers([low, track.highest ?? 0], write, "", base) : fromZero(track.highest ?? 1, write, "", base),
    curves: [
      {
        name: track.name,
        colour,
        x: [...x, ms(cells)],
        y: [...y, values.last.at(-1) ?? 0],
        fill: 0.25,
        isStepped: true,
      },
    ],
    places: x,
    popup: (at) => ({
      title: `at ${duration(x[at] as number)}`,
      lines: [{ name: track.name, value: write(y[at] as number), colour }],
    }),
  };
}
