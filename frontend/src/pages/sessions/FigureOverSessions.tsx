/** One figure of every session that was read, the oldest first: which run got slower, and when. */

import { useMemo } from "preact/hooks";
import { address, type Report, type TableSection, useResource } from "../../api";
import { Chart } from "../../charts/Chart";
import { fromZero, names, type Plot, plain } from "../../charts/plot";
import { colourOfCause } from "../../design/causes";
import { CATEGORY_COLOUR } from "../../design/colours";
import { palette } from "../../design/theme";
import { bytes, cellText, exact, unitLabel } from "../../format";
import { linkTo, route, setParams } from "../../router";
import { listedSessions } from "../../session";
import { termText } from "../../terms";
import { Card, Failed, Loading, Warnings } from "../../ui/basics";

/** Those that the table of runs has without being asked. */
const OWN = ["step_ms", "mfu_percent", "memory_bytes", "cause_percent", "predicted_speedup"];
const EXAMPLES = ["input_percent", "idle.devices.idle_percent", "op-stats.rows.occurrences"];

interface Runs {
  readonly report: Report;
  readonly sections: readonly TableSection[];
}

export function FigureOverSessions() {
  const figure = route.value.params.figure ?? "";
  const asked = figure && !OWN.includes(figure) ? { figure } : {};
  const found = useResource<Runs>(figure ? address("api/runs", asked) : null);
  return (
    <Card title="Over time" class="below-l" actions={<FigureBox figure={figure} />}>
      {!figure && <p class="muted">Choose a figure to see it for every session that was read</p>}
      {figure && found.state === "loading" && <Loading what={`Reading ${figure} of each session`} />}
      {figure && found.state === "failed" && <Failed error={found.error} retry={found.retry} />}
      {figure && found.state === "ready" && <Drawn figure={figure} {...found.data} />}
    </Card>
  );
}

function FigureBox({ figure }: { figure: string }) {
  return (
    <>
      <input
        list="figures"
        aria-label="Figure"
        placeholder="step_ms, or TOOL.TABLE.COLUMN"
        size={34}
        defaultValue={figure}
        key={figure}
        onChange={(event) => setParams({ figure: event.currentTarget.value.trim() || null }, "push")}
      />
      <datalist id="figures">
        {[...OWN, ...EXAMPLES].map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </>
  );
}

function Drawn({ figure, report, sections }: Runs & { readonly figure: string }) {
  const table = sections[0] as TableSection;
  const surface = palette.value.surface;
  const plot = useMemo(() => figurePlot(table, figure, surface), [table, figure, surface]);
  const open = (at: number) => {
    const session = listedSessions.value.find((each) => each.run === table.columns?.run?.[at]);
    if (session) window.location.assign(linkTo("overview", { session: session.id, host: null, steps: null }));
  };
  const known = (table.columns?.[figure] ?? []).filter((value) => typeof value === "number").length;
  const label = `${figure} of ${known} sessions, by what limits each`;
  return (
    <>
      <Warnings items={report.warnings} />
      {known > 0 && <Chart label={label} plot={plot} height={220} marks={known} onPick={open} />}
    </>
  );
}

/** A column per session, in the colour of the cause that limits its steps. */
function figurePlot({ columns, fields, row_count }: TableSection, figure: string, surface: string): Plot {
  const text = (name: string, at: number) => String(columns?.[name]?.[at] ?? "");
  const values = Array.from({ length: row_count }, (_, at) => columns?.[figure]?.[at] ?? null);
  const heights = values.map((value) => (typeof value === "number" ? value : 0));
  const causes = values.map((_, at) => text("cause", at));
  const unit = fields.find((each) => each.name === figure)?.unit ?? "";
  return {
    x: names(
      values.map((_, at) => text("run", at).slice(-8)),
      "session",
    ),
    y: fromZero(Math.max(...heights, 0), unit === "bytes" ? bytes : plain, unitLabel(unit), unit === "bytes" ? 2 : 10),
    columns: [...new Set(causes)].map((cause) => ({
      name: termText(cause),
      colour: cause ? colourOfCause(cause, surface) : CATEGORY_COLOUR.other,
      boxes: heights.flatMap((high, x) => (causes[x] === cause ? [{ x, width: 0.8, low: 0, high }] : [])),
    })),
    places: values.map((_, at) => at),
    popup: (at) => ({
      title: [text("run", at), text("labels", at)].filter(Boolean).join(" · "),
      lines: [
        { name: figure, value: unit === "bytes" ? cellText(values[at], unit) : exact(values[at], unit) },
        { name: "first cause", value: termText(causes[at] ?? "") },
        { name: "first advice", value: text("advice", at) },
      ],
    }),
  };
}
