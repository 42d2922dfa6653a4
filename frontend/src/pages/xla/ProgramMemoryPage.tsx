/** The memory of an XLA program as its compiler laid it out: live bytes over its order, and what fills the peak. */

import { useCallback, useMemo } from "preact/hooks";
import type { ToolAnswer } from "../../api";
import { Chart } from "../../charts/Chart";
import { type MemoryPoint, PROGRAM_MEMORY_COLOUR, programMemory } from "../../charts/programMemory";
import { bytes, percent } from "../../format";
import { linkTo, route, setParams } from "../../router";
import { docOf, fieldOf, type RowOf, type Sections, tableOf } from "../../sections";
import type { TableData } from "../../table/model";
import type { Rows } from "../../table/rows";
import { Card, Figure } from "../../ui/basics";
import { Choice, Legend, type LegendEntry } from "../../ui/controls";
import { hint } from "../../ui/hint";
import { ParamChoice } from "../../ui/ParamChoice";
import { ownRows, useOwnRows } from "../shared/ownRows";
import { TableCard } from "../shared/sections";

type Program = RowOf<"memory-viewer", "programs">;

const GROUPS = { op: "By op", shape: "By shape", source: "By line" };
type Grouping = keyof typeof GROUPS;

export default function ProgramMemory({ report, sections }: ToolAnswer<"memory-viewer">) {
  const programs = report.programs ?? [];
  const params = route.value.params;
  const chosen = programs.find((each) => each.program === params.program) ?? programs[0];
  const name = chosen?.program ?? "";
  const by: Grouping = params.by === "shape" || params.by === "source" ? params.by : "op";
  const own = { program: name };
  const points = useOwnRows("memory-viewer", tableOf(sections, "timeline"), own);
  const buffers = useOwnRows("memory-viewer", tableOf(sections, "rows"), own);
  const ofProgram = useCallback((data: TableData) => ownRows(data, { program: name }), [name]);
  const ofGroup = useCallback((data: TableData) => ownRows(data, { program: name, by }), [name, by]);
  if (!chosen) return null;
  return (
    <>
      <Card title="Memory of a program" actions={<ProgramPicker programs={programs} chosen={name} />}>
        <Peak program={chosen} sections={sections} buffers={buffers} />
      </Card>
      <OverOrder program={chosen} rows={points} />
      <TableCard
        section={tableOf(sections, "rows")}
        id="buffers"
        heading="What is alive at the peak"
        complete={ofProgram}
        columns={USUAL}
        links={graphLink(name)}
        main
      />
      <TableCard
        section={tableOf(sections, "groups")}
        id="groups"
        heading="What the peak is made of"
        complete={ofGroup}
        actions={<ParamChoice label="Memory by" name="by" value={by} options={GROUPS} />}
      />
      <TableCard
        section={tableOf(sections, "programs")}
        links={(row, data) => [
          {
            label: "Show its memory",
            href: linkTo("memory-viewer", { program: String(data.columns.program?.[row] ?? "") }),
          },
        ]}
      />
    </>
  );
}

const USUAL = ["rank", "buffer", "bytes", "percent", "kind", "shape", "padding_bytes", "would_free", "source"];

function ProgramPicker({ programs, chosen }: { programs: readonly Program[]; chosen: string }) {
  return (
    <Choice
      label="Program"
      value={chosen}
      options={programs.map((each) => [String(each.program), `${each.program}: ${bytes(Number(each.peak_bytes))}`])}
      onChange={(program) => setParams({ program }, "push")}
    />
  );
}

const NAMED = 3;
const FIGURES = [
  ...(["peak_bytes", "parameter_bytes", "output_bytes", "constant_bytes", "temporary_bytes"] as const),
  ...(["set_aside_bytes", "fragmentation_percent", "padding_bytes", "aliased_bytes", "donation_bytes"] as const),
];

/** How much the program needs at its fullest moment, of what, and what would free some of it. */
function Peak({
  program,
  sections,
  buffers,
}: {
  program: Program;
  sections: Sections<"memory-viewer">;
  buffers: Rows;
}) {
  const table = tableOf(sections, "programs");
  const largest = buffers.state === "ready" ? Math.min(NAMED, buffers.data.rowCount) : 0;
  const cell = (name: string, row: number) =>
    buffers.state === "ready" ? (buffers.data.columns[name]?.[row] ?? null) : null;
  const share = (value: number | null) => percent((100 * Number(value)) / Math.max(Number(program.peak_bytes), 1));
  return (
    <>
      <p
        class="verdict-line"
        tabIndex={0}
        {...hint("At the peak", docOf(table, "peak_bytes"), `${program.peak_bytes} bytes`)}
      >
        At its peak, {bytes(Number(program.peak_bytes))} {"is in use, "}
        {share(program.temporary_bytes)} of it temporaries
        {program.peak_at && <span class="muted">{`, at ${program.peak_at}`}</span>}
      </p>
      <ul class="prose spaced">
        {Array.from({ length: largest }, (_, row) => (
          <li
            key={row}
            tabIndex={0}
            {...hint(
              String(cell("buffer", row)),
              docOf(tableOf(sections, "rows"), "bytes"),
              `${cell("bytes", row)} bytes`,
            )}
          >
            <strong>{bytes(Number(cell("bytes", row)))}</strong> {String(cell("buffer", row))}{" "}
            <span class="muted">{[cell("kind", row), cell("shape", row)].filter(Boolean).join(", ")}</span>
          </li>
        ))}
        {Number(program.donation_bytes) > 0 && (
          <li>
            Donating arguments (<code>donate_argnums</code>) would save up to {bytes(Number(program.donation_bytes))}
          </li>
        )}
      </ul>
      <div class="figures">
        {FIGURES.filter((name) => Number(program[name]) > 0).map((name) => (
          <Figure key={name} field={fieldOf(table, name)} value={program[name]} />
        ))}
      </div>
    </>
  );
}

function OverOrder({ program, rows }: { program: Program; rows: Rows }) {
  const points = useMemo(() => toPoints(rows), [rows]);
  const lasting = Number(program.peak_bytes) - Number(program.temporary_bytes);
  const plot = useMemo(() => programMemory(points, lasting), [points, lasting]);
  if (points.length < 2)
    return (
      <Card title="In use over the program's order">
        <p class="muted">The compiler recorded no order of allocations, only what is set aside.</p>
      </Card>
    );
  return (
    <Card title="In use over the program's order" note={`${points.length.toLocaleString("en-US")} points`}>
      <Chart
        label={`Memory in use of ${program.program}, at most ${bytes(Number(program.peak_bytes))}`}
        plot={plot}
        height={300}
        marks={points.length}
      />
      <Legend entries={COLOURS} />
    </Card>
  );
}

const COLOURS: readonly LegendEntry[] = [
  { key: "lasting", label: "Whole run: arguments, results, constants", colour: PROGRAM_MEMORY_COLOUR.lasting },
  { key: "temporary", label: "Temporaries", colour: PROGRAM_MEMORY_COLOUR.temporary },
];

/** Leads a buffer to the instruction that makes it. */
function graphLink(program: string) {
  return (row: number, data: TableData) => {
    const buffer = data.columns.buffer?.[row];
    if (typeof buffer !== "string" || data.columns.opcode?.[row] === null) return [];
    const node = buffer.replace(/\{[\d,]*\}$/, "");
    return [{ label: "Show in the graph", href: linkTo("graph-viewer", { program, node, view: "around" }) }];
  };
}

function toPoints(rows: Rows): MemoryPoint[] {
  if (rows.state !== "ready") return [];
  const { position, bytes: size } = rows.data.columns;
  return (position ?? []).map((at, row) => ({ position: Number(at), bytes: Number(size?.[row] ?? 0) }));
}
