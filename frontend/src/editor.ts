/** Which program opens a line of source: an address in which `{path}` and `{line}` stand for the place. */
import { signal } from "@preact/signals";
import { remember, remembered } from "./storage";

/** Editors that register an address of their own. */
export const EDITORS: Readonly<Record<string, string>> = {
  "VS Code": "vscode://file{path}:{line}",
  Cursor: "cursor://file{path}:{line}",
  PyCharm: "pycharm://open?file={path}&line={line}",
  "Sublime Text": "subl://open?url=file://{path}&line={line}",
};

/** Addresses that a browser runs or loads itself. */
const BROWSERS = new Set(["javascript", "data", "http", "https", "blob", "file", "vbscript"]);

const KEY = "editor";
const kept = remembered(KEY);

export const editor = signal(typeof kept === "string" && isEditor(kept) ? kept : (EDITORS["VS Code"] as string));

export function setEditor(template: string): void {
  editor.value = template;
  remember(KEY, template);
}

/** Whether a text names a program and a place. */
export function isEditor(template: string): boolean {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(template)?.[1]?.toLowerCase();
  return template.includes("{path}") && !!scheme && !BROWSERS.has(scheme);
}

/** The address that opens a line; a path of Windows gets the slash that an address needs. */
export function editorLink(template: string, path: string, line: number): string {
  const slashed = path.replaceAll("\\", "/");
  const rooted = slashed.startsWith("/") ? slashed : `/${slashed}`;
  return template
    .replace("{path}", encodeURI(rooted).replace(/[?#&]/g, encodeURIComponent))
    .replace("{line}", `${line}`);
}
