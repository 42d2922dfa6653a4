/** Questions in SQL about the session: a query, its answer as a table, and what can be asked. */
import { useState } from "preact/hooks";
import { type ApiError, asApiError, send, type TableSection, useResource } from "../api";
import { route, setParams } from "../router";
import { sessionId } from "../session";
import { Table } from "../table/Table";
import { Failed } from "../ui/basics";
import type { Model } from "./model";

interface Answer {
  readonly section: TableSection;
  readonly more: boolean;
  readonly warnings: readonly string[];
  readonly elapsed_ms: number;
}

interface Schema {
  readonly tables: readonly {
    readonly name: string;
    readonly doc: string;
    readonly columns: readonly {
      readonly name: string;
      readonly type: string;
      readonly unit: string;
      readonly doc: string;
    }[];
  }[];
  readonly functions: readonly { readonly call: string; readonly doc: string }[];
}

type State =
  | { readonly state: "idle" | "asking" }
  | { readonly state: "failed"; readonly error: ApiError }
  | { readonly state: "answered"; readonly answer: Answer };

const EXAMPLE =
  "SELECT name, count(*) AS calls, ms(sum(self_ps)) AS ms\nFROM events GROUP BY name ORDER BY ms DESC LIMIT 20";
const MOST_ROWS = 2000;

export function SqlTab(_: { model: Model }) {
  const [query, setQuery] = useState(route.value.params.sql ?? EXAMPLE);
  const [state, setState] = useState<State>({ state: "idle" });
  const url = `api/sessions/${encodeURIComponent(sessionId.value ?? "")}/sql`;
  const ask = async () => {
    setParams({ sql: query === EXAMPLE ? null : query });
    setState({ state: "asking" });
    try {
      setState({ state: "answered", answer: await send<Answer>("POST", url, { query, rows: MOST_ROWS }) });
    } catch (error) {
      setState({ state: "failed", error: asApiError(error) });
    }
  };
  return (
    <div class="wb-tab wb-sql">
      <div class="wb-sql-ask">
        <textarea
          rows={4}
          aria-label="Query in SQL"
          spellcheck={false}
          value={query}
          onInput={(event) => setQuery(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
            event.preventDefault();
            void ask();
          }}
        />
        {state.state === "asking" ? (
          <button type="button" class="button" onClick={() => void send("DELETE", url).catch(() => undefined)}>
            Stop
          </button>
        ) : (
          <button type="button" class="button accent" title="Ctrl-Enter" onClick={() => void ask()}>
            Run
          </button>
        )}
      </div>
      {state.state === "failed" && <Failed error={state.error} />}
      {state.state === "answered" && <Answered answer={state.answer} />}
      <Tables url={`${url}/schema`} />
    </div>
  );
}

function Answered({ answer: { section, more, warnings, elapsed_ms } }: { answer: Answer }) {
  const rows = section.row_count.toLocaleString("en-US");
  return (
    <>
      <p class="wb-controls muted" role="status">
        {`${rows} rows${more ? ", and more" : ""} in ${elapsed_ms} ms`}
        {warnings.map((text) => ` · ${text}`)}
      </p>
      <Table
        id="sql-rows"
        title="Answer"
        data={{ fields: section.fields, columns: section.columns ?? {}, rowCount: section.row_count }}
        height="short"
      />
    </>
  );
}

/** The tables, their columns and the functions. */
function Tables({ url }: { url: string }) {
  const found = useResource<Schema>(url);
  if (found.state !== "ready") return null;
  return (
    <details class="wb-schema">
      <summary>Tables and functions</summary>
      <dl>
        {found.data.tables.map((table) => (
          <div key={table.name}>
            <dt>
              <code>{table.name}</code> <span class="muted">{table.doc}</span>
            </dt>
            <dd>{table.columns.map((column) => column.name).join(", ")}</dd>
          </div>
        ))}
        {found.data.functions.map((each) => (
          <div key={each.call}>
            <dt>
              <code>{each.call}</code>
            </dt>
            <dd>{each.doc}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
