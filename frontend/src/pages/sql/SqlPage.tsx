/** A console for questions in SQL: the query, the tables beside it, and the answer as table, chart and track. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError, send, type TableSection, useResource } from "../../api";
import { Chart } from "../../charts/Chart";
import { CATEGORY_COLOUR } from "../../design/colours";
import { intervalInTimeline } from "../../links";
import { linkTo, route, setParams } from "../../router";
import { otherId, sessionId } from "../../session";
import { remember, remembered } from "../../storage";
import type { TableData } from "../../table/model";
import { Table } from "../../table/Table";
import { Card, Failed, Loading, Warnings } from "../../ui/basics";
import { hint } from "../../ui/hint";
import { PageHead } from "../shared/PageHead";
import { findLinks, IN_TIMELINE } from "../shared/sections";
import { EXAMPLES } from "./examples";
import { barChart, barsOf, type Stretch, stretches } from "./result";
import { SchemaList } from "./SchemaList";
import { complete, type Schema, type Suggestion, suggest } from "./schema";
import { Track } from "./Track";

interface Answer {
  readonly section: TableSection;
  readonly more: boolean;
  readonly warnings: readonly string[];
  readonly elapsed_ms: number;
}

const FIRST = EXAMPLES[0]?.query ?? "";
const MOST_PAST = 50;

export default function SqlPage() {
  const id = sessionId.value;
  return id && <Console key={id} root={`api/sessions/${encodeURIComponent(id)}/sql`} />;
}

function Console({ root }: { root: string }) {
  const [text, setText] = useState(route.value.params.query ?? FIRST);
  const [state, setState] = useState<Answer | ApiError | "asking" | null>(null);
  const [past, setPast] = useState<readonly string[]>(pastQueries);
  const schema = useResource<Schema>(`${root}/schema`);
  const area = useRef<HTMLTextAreaElement>(null);
  const turn = useRef(0);
  const isOwn = useRef(false); // a query that the reader ran, not the first question
  const [asked, setAsked] = useState("");
  const me = useRef(Math.random().toString(36).slice(2));

  const run = (query: string) => {
    if (!query.trim()) return;
    isOwn.current = true;
    setParams({ query });
    const kept = [query, ...past.filter((each) => each !== query)].slice(0, MOST_PAST);
    setPast(kept);
    remember("sql", kept);
    ask(query);
  };
  const ask = (query: string) => {
    turn.current += 1;
    const mine = turn.current;
    setState("asking");
    setAsked(query);
    const attach = otherId.value ? { before: otherId.value } : {};
    send<Answer>("POST", root, { query, attach, id: me.current }).then(
      (answer) => mine === turn.current && setState(answer),
      (error: unknown) => mine === turn.current && setState(asApiError(error)),
    );
  };
  const below = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isOwn.current) below.current?.scrollIntoView({ block: "nearest" });
  }, [state]);
  // A link to a query shows its answer; without one that of the first question is there.
  useEffect(() => (route.value.params.query ? run(text) : ask(text)), []);

  const insert = (word: string) => {
    const at = area.current;
    const [from, to] = at ? [at.selectionStart, at.selectionEnd] : [text.length, text.length];
    setText(text.slice(0, from) + word + text.slice(to));
    at?.focus();
  };
  return (
    <>
      <PageHead tool="sql" />
      <div class="sql-page list gap-l">
        <div class="list gap-l shrinks">
          <Card class="sql-card" label="Query">
            <Editor
              text={text}
              schema={schema.state === "ready" ? schema.data : null}
              area={area}
              onChange={setText}
              onRun={() => run(text)}
            />
            <div class="sql-tools row wrap gap-l above-l">
              <button type="button" class="button accent" onClick={() => run(text)} disabled={state === "asking"}>
                Run
              </button>
              {state === "asking" && (
                <button type="button" class="button" onClick={() => void send("DELETE", `${root}?id=${me.current}`)}>
                  Stop
                </button>
              )}
              <History past={past} onPick={setText} />
              <span class="muted">
                Ctrl + Enter runs the query
                {otherId.value && "; the session that is compared is before: before.events, before.kernels"}
              </span>
            </div>
            <Examples
              onPick={(query) => {
                setText(query);
                run(query);
              }}
            />
          </Card>
          {state === "asking" && <Loading what="Asking" />}
          <div ref={below} class="list gap-l">
            {state instanceof Error && <Failed error={state} />}
            {state && state !== "asking" && !(state instanceof Error) && <Found answer={state} query={asked} />}
          </div>
        </div>
        <Card class="sql-schema" title="Tables">
          {schema.state === "loading" && <Loading />}
          {schema.state === "failed" && <Failed error={schema.error} retry={schema.retry} />}
          {schema.state === "ready" && <SchemaList schema={schema.data} onPick={insert} />}
        </Card>
      </div>
    </>
  );
}

/** What else to ask: each is a query that can be changed. */
function Examples({ onPick }: { onPick: (query: string) => void }) {
  return (
    <ul class="link-list flex wrap above-l" aria-label="Questions to start with">
      {EXAMPLES.map(({ question, query }) => (
        <li key={question}>
          <button type="button" onClick={() => onPick(query)} {...hint(question, query)}>
            {question}
          </button>
        </li>
      ))}
    </ul>
  );
}

function pastQueries(): readonly string[] {
  const kept = remembered("sql");
  return Array.isArray(kept) ? kept.map(String) : [];
}

function History({ past, onPick }: { past: readonly string[]; onPick: (query: string) => void }) {
  if (!past.length) return null;
  return (
    <span class="select">
      <select
        aria-label="Earlier queries"
        value=""
        onChange={(event) => event.currentTarget.value && onPick(event.currentTarget.value)}
      >
        <option value="">Earlier queries</option>
        {past.map((query) => (
          <option key={query} value={query}>
            {query.replace(/\s+/g, " ").slice(0, 90)}
          </option>
        ))}
      </select>
    </span>
  );
}

interface EditorProps {
  text: string;
  schema: Schema | null;
  area: { readonly current: HTMLTextAreaElement | null };
  onChange: (text: string) => void;
  onRun: () => void;
}

/** The text of the query, with suggestions below it: Tab takes the chosen one. */
function Editor({ text, schema, area, onChange, onRun }: EditorProps) {
  const [cursor, setCursor] = useState(0);
  const [chosen, setChosen] = useState(0);
  const [isOpen, setOpen] = useState(false);
  const found = useMemo(() => (schema && isOpen ? suggest(schema, text, cursor) : []), [schema, text, cursor, isOpen]);
  const take = (suggestion: Suggestion) => {
    const done = complete(text, cursor, suggestion);
    onChange(done.text);
    setOpen(false);
    requestAnimationFrame(() => area.current?.setSelectionRange(done.cursor, done.cursor));
    area.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const picked = found[chosen];
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) onRun();
    else if (event.key === "Tab" && picked) take(picked);
    else if (event.key === "ArrowDown" && found.length) setChosen((chosen + 1) % found.length);
    else if (event.key === "ArrowUp" && found.length) setChosen((chosen + found.length - 1) % found.length);
    else if (event.key === "Escape" && isOpen) setOpen(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="sql-editor">
      <textarea
        ref={area}
        rows={Math.min(16, Math.max(5, text.split("\n").length + 1))}
        spellcheck={false}
        aria-label="Query"
        value={text}
        onInput={(event) => {
          onChange(event.currentTarget.value);
          setCursor(event.currentTarget.selectionStart);
          setChosen(0);
          setOpen(true);
        }}
        onClick={() => setOpen(false)}
        onKeyDown={onKeyDown}
      />
      {found.length > 0 && (
        <ul class="sql-suggestions floats" aria-label="Suggestions">
          {found.map((each, at) => (
            <li key={each.text} class={at === chosen ? "chosen" : ""}>
              <button
                type="button"
                tabIndex={-1}
                onMouseDown={(event) => event.preventDefault()}
                onClick={() => take(each)}
              >
                <code>{each.text}</code> <span class="muted">{each.doc || each.kind}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

const COLOURS = [
  CATEGORY_COLOUR.device_compute,
  CATEGORY_COLOUR.host_compute,
  CATEGORY_COLOUR.input,
  CATEGORY_COLOUR.device_collectives,
];

/** The answer: its table, and below it what else it can be drawn as. */
function Found({ answer, query }: { answer: Answer; query: string }) {
  const data = useMemo<TableData>(
    () => ({
      fields: answer.section.fields,
      columns: answer.section.columns ?? {},
      rowCount: answer.section.row_count,
    }),
    [answer],
  );
  const bars = useMemo(() => barsOf(data), [data]);
  const track = useMemo(() => stretches(data), [data]);
  const plot = useMemo(() => bars && barChart(bars, COLOURS), [bars]);
  const took = `${answer.elapsed_ms < 10 ? answer.elapsed_ms.toFixed(1) : Math.round(answer.elapsed_ms)} ms`;
  const byRow = useMemo(() => new Map((track ?? []).map((each) => [each.row, each])), [track]);
  return (
    <>
      <Warnings items={answer.warnings} />
      <Card title="Answer" note={took} class="table-card">
        <Table
          id="answer"
          title="the answer"
          data={data}
          empty={answer.section.empty ?? "the query has no rows"}
          links={(row) => {
            const found = findLinks(row, data);
            return found[0]?.label === IN_TIMELINE ? found : [...inTimeline(byRow.get(row)), ...found];
          }}
          main
        />
      </Card>
      {track && track.length > 0 && (
        <Card
          title="Track"
          note="click a stretch to see it in the timeline"
          actions={<AsTrack track={track} query={query} />}
        >
          <Track stretches={track} />
        </Card>
      )}
      {plot && bars && (
        <Card title="Chart">
          <Chart label="The numbers of the answer" plot={plot} height={240} marks={bars.labels.length} />
        </Card>
      )}
    </>
  );
}

function inTimeline(stretch: Stretch | undefined) {
  if (!stretch) return [];
  const { begin, end, host } = stretch;
  return [{ label: "Show this time in the timeline", href: intervalInTimeline(begin / 1e9, end / 1e9, host) }];
}

/** A link to the timeline with the query, whose answer is a track there. */
function AsTrack({ track, query }: { track: readonly Stretch[]; query: string }) {
  const host = track[0]?.host;
  return (
    <a
      class="button"
      href={linkTo("timeline", { track: query, ...(host ? { host } : {}) })}
      {...hint("Show in the timeline", "the rows become a track above the others; the link holds the query")}
    >
      Show in the timeline
    </a>
  );
}
