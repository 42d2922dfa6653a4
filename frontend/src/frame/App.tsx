/** The frame around the page of the current tool. */
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { toggleTheme } from "../design/theme";
import { PageOf } from "../pages/PageOf";
import { CommandPalette } from "../palette/CommandPalette";
import { mayCapture } from "../people";
import { QUESTIONS, type View } from "../questions";
import { formatHash, go, route, toTool } from "../router";
import { config, refreshSessions, sessionInfo, start, startError, titleOf } from "../session";
import { currentView, questions, toolEntry } from "../tools";
import { Failed, Loading } from "../ui/basics";
import { HintLayer } from "../ui/hint";
import { type Binding, listenToKeys, useKeys } from "../ui/keys";
import { Toast } from "../ui/toast";
import { Bars } from "./Bars";
import { CaptureDialog } from "./CaptureDialog";
import { captureOpen, editedSession, helpOpen, paletteOpen } from "./dialogs";
import { Help } from "./Help";
import { Rail } from "./Rail";
import { TopBar } from "./TopBar";
import { WordsDialog } from "./WordsDialog";

export function App() {
  useLayoutEffect(listenToKeys, []);
  useEffect(() => {
    const look = () => document.visibilityState === "visible" && void refreshSessions();
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
  useKeys(pageKeys(), [questions.value]);
  useKeys(SEARCH, []); // once: a filter or a search of the page itself comes later, and comes first
  const tool = route.value.tool;
  const title = currentView.value?.heading ?? currentView.value?.label ?? toolEntry(tool)?.heading ?? tool;
  const name = sessionInfo.value && titleOf(sessionInfo.value);
  const main = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    if (main.current) main.current.scrollTop = 0;
  }, [tool, route.value.params.by, route.value.params.session]);
  useEffect(() => {
    document.title = [title, name, "Stepscope"].filter(Boolean).join(" · ");
  }, [title, name]);

  return (
    <div class="frame">
      {/* biome-ignore lint/a11y/useValidAnchor: without the script it still leads to the page's main part */}
      <a class="skip" href="#main" onClick={focusMain}>
        Skip to content
      </a>
      <Rail />
      <TopBar />
      <main ref={main} id="main" tabIndex={-1} class={`page page-${tool}`} data-route={formatHash(route.value)}>
        {startError.value ? (
          <Failed error={startError.value} retry={() => void start()} />
        ) : config.value ? (
          <PageOf tool={tool} />
        ) : (
          <Loading what="Starting" />
        )}
        <HintLayer />
      </main>
      {helpOpen.value && <Help onClose={() => (helpOpen.value = false)} />}
      {captureOpen.value && <CaptureDialog onClose={() => (captureOpen.value = false)} />}
      {paletteOpen.value && <CommandPalette onClose={() => (paletteOpen.value = false)} />}
      {editedSession.value && (
        <WordsDialog
          key={editedSession.value}
          session={editedSession.value}
          onClose={() => (editedSession.value = null)}
        />
      )}
      <Bars />
      <Toast />
    </div>
  );
}

/** The link's target is an element, not a route: the address must stay as it is. */
function focusMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

const SEARCH: readonly Binding[] = [
  {
    keys: "/",
    does: "Go to anything, where the page has no filter",
    group: "Page",
    run: () => (paletteOpen.value = true),
  },
];

function pageKeys(): Binding[] {
  const open = (view: View) => () => go(toTool(route.value, view.tool, view.by ? { by: view.by } : {}));
  const binding = (key: string, does: string, view: View, group = "Go to"): Binding => ({
    ...{ keys: `g ${key}`, does, group },
    run: open(view),
  });
  return [
    ...questions.value.flatMap((question, index) => {
      const first = question.views[0] as View;
      return [
        ...(question.key ? [binding(question.key, question.label, first)] : []),
        ...(index < 9 ? [binding(String(index + 1), question.label, first, "Go to, by position")] : []),
      ];
    }),
    ...QUESTIONS.flatMap(({ views }) =>
      views.flatMap((view) => (view.key ? [binding(view.key, view.heading ?? view.label, view)] : [])),
    ),
    { keys: "Ctrl+k", does: "Go to anything", group: "Page", run: () => (paletteOpen.value = true) },
    { keys: "t", does: "Switch between light and dark", group: "Page", run: toggleTheme },
    { keys: "?", does: "Show this help", group: "Page", run: () => (helpOpen.value = true) },
    {
      keys: "c",
      does: "Capture a profile",
      group: "Page",
      run: () => (captureOpen.value = (config.value?.capture ?? false) && mayCapture()),
    },
  ];
}
