/** The page of the tool in the address, or why it cannot be shown. */
import type { ComponentChildren, ComponentType } from "preact";
import { lazy, Suspense } from "preact/compat";
import { ApiError, type ToolAnswer } from "../api";
import { linkTo } from "../router";
import type { ToolName } from "../sections";
import { isReady, session, sessionError, sessionId, sessions } from "../session";
import { toolEntry, tools } from "../tools";
import { Failed, Loading } from "../ui/basics";
import { PAGES, VIEWS } from "./map";
import { NoSessions, Opening } from "./shared/Opening";
import { PageHead } from "./shared/PageHead";
import { Sections } from "./shared/sections";
import { Missing, ToolPage } from "./shared/ToolPage";
import SummaryPage from "./summary/SummaryPage";

/** Stands in for a page whose code could not be fetched, because the server has ended or has another version. */
function Unreachable() {
  return (
    <Failed
      error={new ApiError("the code of this page could not be fetched", "start the server again, then reload", [], 0)}
    />
  );
}

type Drawn = ComponentType<ToolAnswer>;

const loaded = (parts: typeof PAGES) =>
  Object.fromEntries(
    Object.entries(parts).map(([tool, part]) => [
      tool,
      lazy(() => part().catch(() => ({ default: Unreachable }))) as unknown as Drawn,
    ]),
  );

/** The start page comes with the frame, the others when they are first wanted. */
const COMPONENTS: Readonly<Record<string, ComponentType>> = { ...(loaded(PAGES) as object), overview: SummaryPage };
const DRAWN: Readonly<Record<string, Drawn>> = loaded(VIEWS);

const OF_NO_SESSION = ["over-time", "sessions"];

export function PageOf({ tool }: { tool: string }) {
  const Alone = OF_NO_SESSION.includes(tool) ? COMPONENTS[tool] : undefined;
  if (Alone)
    return (
      <Suspense fallback={<Loading />}>
        <Alone />
      </Suspense>
    );
  if (sessionError.value)
    return (
      <NotShown>
        <Failed
          error={sessionError.value}
          link={(id) => linkTo(tool, { session: id, host: null, steps: null })}
          name={(id) => sessions.value?.sessions.find((each) => each.id === id)?.run ?? id}
        />
      </NotShown>
    );
  if (!sessionId.value) return sessions.value ? <NoSessions sessions={sessions.value} /> : <Loading />;
  const state = session.value;
  if (!state) return <Loading what="Opening the session" />;
  if (state.state === "failed") {
    const { error = "this session cannot be read", hint = "", choices = [] } = state.error ?? {};
    return (
      <NotShown>
        <Failed error={new ApiError(error, hint, choices, 409)} />
      </NotShown>
    );
  }
  if (!isReady.value) return <Opening state={state} />;
  const entry = toolEntry(tool);
  if (!entry)
    return (
      <Failed
        error={
          new ApiError(
            `there is no tool named “${tool}”`,
            "choose one on the left",
            tools.value.map((each) => each.name),
            404,
          )
        }
        link={(name) => linkTo(name)}
        name={(name) => toolEntry(name)?.heading ?? name}
      />
    );
  if (entry.missing)
    return (
      <>
        <PageHead tool={tool} />
        <Missing text={entry.missing} />
      </>
    );
  const Page = COMPONENTS[tool];
  if (!Page) return <View key={tool} tool={tool as ToolName} />;
  return (
    <Suspense fallback={<Loading what={tool === "timeline" ? "Loading the timeline" : "Loading"} />}>
      <Page key={tool} />
    </Suspense>
  );
}

function NotShown({ children }: { children: ComponentChildren }) {
  return (
    <>
      <h1 class="below-l">This session cannot be shown</h1>
      {children}
      <p class="above-l">
        <a class="button" href={linkTo("sessions", { session: null })}>
          Choose another session
        </a>
      </p>
    </>
  );
}

/** The answer of a tool below its head, by the view that there is for it, else section by section. */
function View({ tool }: { tool: ToolName }) {
  const Own = DRAWN[tool];
  return (
    <ToolPage tool={tool}>
      {(answer) =>
        Own ? (
          <Suspense fallback={<Loading />}>
            <Own {...answer} />
          </Suspense>
        ) : (
          <Sections sections={answer.sections} tool={tool} />
        )
      }
    </ToolPage>
  );
}
