/** The page of the tool in the address, or why it cannot be shown. */
import type { ComponentType } from "preact";
import { lazy, Suspense } from "preact/compat";
import { ApiError } from "../api";
import { linkTo } from "../router";
import { isReady, session, sessionError, sessionId, sessions } from "../session";
import { toolEntry, tools } from "../tools";
import { Code, Empty, Failed, Loading, sentence } from "../ui/basics";
import { PAGES } from "./map";
import { GenericPage } from "./shared/GenericPage";
import { NoSessions, Opening } from "./shared/Opening";
import { PageHead } from "./shared/PageHead";
import SummaryPage from "./summary/SummaryPage";

/** Stands in for a page whose code could not be fetched, because the server has ended or has another version. */
function Unreachable() {
  return (
    <Failed
      error={new ApiError("the code of this page could not be fetched", "start the server again, then reload", [], 0)}
    />
  );
}

/** The start page comes with the frame, the others when they are first wanted. */
const COMPONENTS: Readonly<Record<string, ComponentType>> = {
  ...Object.fromEntries(
    Object.entries(PAGES).map(([tool, page]) => [
      tool,
      lazy(() => page().catch(() => ({ default: Unreachable }))) as ComponentType,
    ]),
  ),
  overview: SummaryPage,
};

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
      <Failed
        error={sessionError.value}
        link={(id) => linkTo(tool, { session: id, host: null, steps: null })}
        name={(id) => sessions.value?.sessions.find((each) => each.id === id)?.run ?? id}
      />
    );
  if (!sessionId.value) return sessions.value ? <NoSessions sessions={sessions.value} /> : <Loading />;
  const state = session.value;
  if (!state) return <Loading what="Opening the session" />;
  if (state.state === "failed")
    return (
      <Failed
        error={
          new ApiError(
            state.error?.error ?? "this session cannot be read",
            state.error?.hint ?? "",
            state.error?.choices ?? [],
            409,
          )
        }
      />
    );
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
  if (entry.missing) return <Explained tool={tool} missing={entry.missing} />;
  const Page = COMPONENTS[tool];
  return (
    <Suspense fallback={<Loading what={tool === "timeline" ? "Loading the timeline" : "Loading"} />}>
      {Page ? <Page key={tool} /> : <GenericPage key={tool} tool={tool} />}
    </Suspense>
  );
}

/** The page of a tool without data in this profile: what is missing, and how to record it. */
function Explained({ tool, missing }: { tool: string; missing: string }) {
  return (
    <>
      <PageHead tool={tool} />
      <Empty title="This profile has no data for this page">
        <p>
          <Code text={sentence(missing)} />
        </p>
        <p>
          <a class="button" href={linkTo("overview")}>
            Back to the summary
          </a>
        </p>
      </Empty>
    </>
  );
}
