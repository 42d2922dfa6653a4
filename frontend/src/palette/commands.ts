/** What the command palette offers: pages, actions, hosts, sessions, and names out of the profile. */
import { type Report, type ToolAnswer, useResource } from "../api";
import { toggleTheme } from "../design/theme";
import { placesText } from "../format";
import { captureOpen, helpOpen } from "../frame/dialogs";
import { openSessionNamed } from "../frame/openSession";
import { findInTimeline } from "../links";
import { shortKernel, shortPath } from "../pages/shared/names";
import { hasLogin, logOut } from "../people";
import type { View } from "../questions";
import { go, parseHash, route, setParams, toTool } from "../router";
import { answerAddress, config, listedSessions, otherId, session, sessionId, titleOf } from "../session";
import { lackOf, questions } from "../tools";
import { copyLink } from "./link";
import type { Command } from "./search";

export function useCommands(): readonly Command[] {
  return [...pageCommands(), ...actionCommands(), ...useNames(), ...hostCommands(), ...sessionCommands()];
}

function pageCommands(): Command[] {
  const open = (view: View) => () => go(toTool(route.value, view.tool, view.by ? { by: view.by } : {}));
  return questions.value.flatMap((question) =>
    question.views
      .map((view, at) => ({
        id: `page ${question.name} ${view.path}`,
        kind: "Page",
        text: at === 0 && question.switchLabel !== "Group by" ? question.label : `${question.label}: ${view.label}`,
        ...(view.key || at === 0 ? { keys: `g ${at === 0 ? question.key : view.key}` } : {}),
        run: open(view),
        view,
      }))
      .filter(({ view }) => !lackOf(view)),
  );
}

function actionCommands(): Command[] {
  const action = (text: string, run: () => void, keys?: string): Command => ({
    ...{ id: `action ${text}`, kind: "Action", text, run },
    ...(keys ? { keys } : {}),
  });
  return [
    ...(config.value?.capture ? [action("Capture a profile", () => (captureOpen.value = true), "c")] : []),
    action("Copy the link to this view", copyLink),
    action("Switch between light and dark", toggleTheme, "t"),
    ...(otherId.value ? [action("Stop comparing", () => setParams({ with: null, withSteps: null }, "push"))] : []),
    ...(route.value.params.steps ? [action("Show all steps", () => setParams({ steps: null }, "push"))] : []),
    ...(hasLogin() ? [action("Log out", () => void logOut())] : []),
    action("Help and keys", () => (helpOpen.value = true), "?"),
  ];
}

function hostCommands(): Command[] {
  const hosts = session.value?.hosts ?? [];
  if (hosts.length < 2) return [];
  return [null, ...hosts.map((each) => each.name)].map((host) => ({
    id: `host ${host ?? ""}`,
    kind: "Host",
    text: host ?? `All ${placesText(hosts.map(({ name }) => name))}`,
    run: () => setParams({ host }, "push"),
  }));
}

const MOST_SESSIONS = 2000;

function sessionCommands(): Command[] {
  return listedSessions.value
    .filter((each) => each.id !== sessionId.value)
    .slice(0, MOST_SESSIONS)
    .map((each) => ({ ...each, text: titleOf(each) === each.run ? each.run : `${titleOf(each)} · ${each.run}` }))
    .flatMap((each) => [
      { id: `session ${each.id}`, kind: "Session", text: each.text, run: () => openSessionNamed(each.id) },
      {
        id: `compare ${each.id}`,
        kind: "Compare with",
        text: each.text,
        run: () => setParams({ with: each.id, withSteps: null }, "push"),
      },
    ]);
}

interface Named extends Report {
  readonly rows?: readonly Readonly<Record<string, unknown>>[];
  readonly call_sites?: readonly Readonly<Record<string, unknown>>[];
}

const MOST_NAMES = 3000;

/** Ops, kernels, ranges and lines; each leads to its longest occurrence in the timeline. */
function useNames(): Command[] {
  const [ops, kernels, ranges, lines] = [
    useRowsOf("op-stats"),
    useRowsOf("kernel-stats"),
    useRowsOf("annotations"),
    useRowsOf("op-shapes", "call_sites"),
  ];
  return [
    ...distinct(ops.map((row) => row.name)).map((name) => nameCommand("Op", name, name)),
    ...distinct(kernels.map((row) => row.kernel)).map((name) => nameCommand("Kernel", name, shortKernel(name))),
    ...distinct(ranges.map((row) => row.name)).map((name) => nameCommand("Range", name.split("*", 1)[0] ?? "", name)),
    ...distinct(lines.map((row) => row.call_site)).map((line) => ({
      id: `line ${line}`,
      kind: "Line",
      text: shortPath(line),
      run: () => go(toTool(route.value, "op-shapes", { by: "line", "lines.filter": `call_site="${line}"` })),
    })),
  ];
}

function useRowsOf(tool: string, key: "rows" | "call_sites" = "rows"): readonly Readonly<Record<string, unknown>>[] {
  const isThere = session.value?.tools.find((each) => each.name === tool)?.has_data === true;
  const found = useResource<ToolAnswer<never, Named>>(isThere ? answerAddress(tool) : null);
  return found.state === "ready" ? (found.data.report[key] ?? []).slice(0, MOST_NAMES) : [];
}

function distinct(values: readonly unknown[]): string[] {
  return [...new Set(values.filter((value): value is string => typeof value === "string" && value !== ""))];
}

/** What was typed, wherever the timeline has it: functions, samples and threads have no table of names. */
export function timelineCommand(text: string): Command[] {
  const isThere = text.trim() && session.value?.tools.some((each) => each.has_data);
  return isThere ? [nameCommand("Timeline", text.trim(), `Find “${text.trim()}”`)] : [];
}

function nameCommand(kind: string, name: string, text: string): Command {
  return {
    id: `${kind} ${name}`,
    kind,
    text,
    note: "longest in the timeline",
    run: () => go(parseHash(findInTimeline(name))),
  };
}
