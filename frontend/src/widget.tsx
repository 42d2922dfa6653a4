/**
 * The timeline in a notebook: the page's own, in a frame whose answers come from the notebook's kernel.
 *
 * The first picture is in the notebook itself, so a saved one shows it without a kernel; what needs one says so.
 */
import { signal } from "@preact/signals";
import { render } from "preact";
import "preact/compat"; // a number in a style is in pixels
import "./design/page.css";
import { answerFrom } from "./api";
import { type CategoryRule, setCategoryRules } from "./design/colours";
import { chooseTheme, type Theme } from "./design/theme";
import { makeLinksText } from "./plainLinks";
import { setParams } from "./router";
import { Timeline } from "./timeline";
import { cutKept, readKept } from "./timeline/kept";
import type { Span } from "./timeline/viewport";
import { Source } from "./timeline/wire";
import { HintLayer } from "./ui/hint";
import { listenToKeys } from "./ui/keys";

/** What the notebook hands to its frame. */
interface Notebook {
  readonly rules: readonly CategoryRule[];
  readonly params: Readonly<Record<string, string>>;
  /** Answers that came along, by their addresses below `timeline/`. */
  readonly kept: Readonly<Record<string, DataView<ArrayBuffer>>>;
  /** Asks the kernel; never answers where there is none. */
  readonly ask: (url: string) => Promise<{ readonly status: number; readonly body: DataView<ArrayBuffer> }>;
  readonly followTheme: (put: (theme: Theme) => void) => void;
}

const notebook = (window.frameElement as HTMLIFrameElement & { notebook: Notebook }).notebook;
const isAlive = signal(false);

const windows = Object.entries(notebook.kept).flatMap(([url, { buffer, byteOffset, byteLength }]) => {
  const query = /^window\?(.*)$/.exec(url)?.[1];
  if (query === undefined) return [];
  return [[new URLSearchParams(query).get("tracks") ?? "", buffer.slice(byteOffset, byteOffset + byteLength)] as const];
});
const kept = readKept(windows);

class NotebookSource extends Source {
  override readonly isServed = false;

  override async windows(first: Span, width: number, tracks: readonly string[], tiles = 1) {
    if (isAlive.peek()) return super.windows(first, width, tracks, tiles);
    const { begin, end } = first;
    const moved = (tile: number) => tile * (end - begin);
    return Array.from({ length: tiles }, (_, at) => cutKept(kept, begin + moved(at), end + moved(at), width, tracks));
  }
}

const NO_KERNEL = { error: "this needs the notebook's kernel", hint: "run the cell again", choices: [] };

async function answer(address: string): Promise<Response> {
  const url = address.replace(/^.*\/timeline\//, "");
  const own = notebook.kept[url];
  if (own) return new Response(own);
  if (!isAlive.peek()) return new Response(JSON.stringify(NO_KERNEL), { status: 503 });
  const { status, body } = await notebook.ask(url);
  return new Response(body, { status });
}

function Widget() {
  const of = isAlive.value ? "kernel" : "kept";
  return (
    <>
      <Timeline key={of} session={of} host={null} sourceOf={(own) => new NotebookSource(of, null, own)} />
      <HintLayer />
    </>
  );
}

makeLinksText();
answerFrom(answer);
setCategoryRules(notebook.rules);
setParams(notebook.params);
notebook.followTheme(chooseTheme);
listenToKeys();
render(<Widget />, document.getElementById("app") as HTMLElement);
void notebook.ask("steps").then(() => {
  isAlive.value = true;
});
