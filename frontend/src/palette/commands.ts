/** What the command palette offers: pages, actions, hosts, sessions, and names out of the profile. */
import { type Report, type ToolAnswer, useResource } from "../api";
import { toggleTheme } from "../design/theme";
import { duration, percent, placesText } from "../format";
import { captureOpen, helpOpen } from "../frame/dialogs";
import { openSessionNamed } from "../frame/openSession";
import { findInTimeline } from "../links";
import { shortKernel, shortPath } from "../names";
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

type Rows = readonly Readonly<Record<string, unknown>>[];

interface Named extends Report, Readonly<Partial<Record<"rows" | "lines" | "statements" | "functions", Rows>>> {}

const MOST_NAMES = 3000;

/** Functions and lines lead to their time, ops, kernels and ranges to their longest occurrence in the timeline. */
function useNames(): Command[] {
  const [ops, kernels, ranges, lines] = ["op-stats", "kernel-stats", "annotations", "op-shapes"].map(useReportOf);
  const sampled = lines?.statements ?? [];
  const placed = new Set(sampled.map((row) => placeIn(row.call_site)));
  const ofOps = (lines?.lines ?? []).filter((row) => row.call_site && !placed.has(placeIn(row.call_site)));
  return [
    ...(lines?.functions ?? []).map((row) => placeCommand("Function", "functions", row)),
    ...sampled.map((row) => placeCommand("Line", "statements", row)),
    ...ofOps.slice(0, MOST_NAMES).map((row) => placeCommand("Line", "lines", row)),
    ...distinct(ops?.rows, "name").map((name) => nameCommand("Op", name, name)),
    ...distinct(kernels?.rows, "kernel").map((name) => nameCommand("Kernel", name, shortKernel(name))),
    ...distinct(ranges?.rows, "name").map((name) => nameCommand("Range", name.split("*", 1)[0] ?? "", name)),
  ];
}

/** `train.py(3)` of `train.py(3): fit`. */
const placeIn = (site: unknown) => String(site).replace(/: .*/, "");

function useReportOf(tool: string): Named | null {
  const isThere = session.value?.tools.find((each) => each.name === tool)?.has_data === true;
  const found = useResource<ToolAnswer<never, Named>>(isThere ? answerAddress(tool) : null);
  return found.state === "ready" ? found.data.report : null;
}

function distinct(rows: Rows | undefined, key: string): string[] {
  const values = (rows ?? []).slice(0, MOST_NAMES).map((row) => row[key]);
  return [...new Set(values.filter((value): value is string => typeof value === "string" && value !== ""))];
}

/** A function or a line of the program, at its row; a function is found by its name first, a line by its place. */
function placeCommand(kind: string, table: string, row: Rows[number]): Command {
  const site = String(row.call_site);
  const time = typeof row.total_us === "number" ? duration(row.total_us / 1e3) : "";
  return {
    id: `${kind} ${site}`,
    kind,
    text: kind === "Line" ? shortPath(site) : `${site.replace(/.*: /, "")} ${shortPath(`${placeIn(site)}: <module>`)}`,
    note: time && `${time}, ${percent(Number(row.total_percent))}`,
    run: () => go(toTool(route.value, "op-shapes", { by: "line", [`${table}.filter`]: `call_site="${site}"` })),
  };
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
