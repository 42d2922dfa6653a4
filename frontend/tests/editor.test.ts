import { describe, expect, it, vi } from "vitest";
import { EDITORS, editorLink, isEditor } from "../src/editor";

describe("the address that opens a line", () => {
  const code = EDITORS["VS Code"] as string;
  it.each([
    ["/home/a b/train.py", "vscode://file/home/a%20b/train.py:12"],
    ["/home/a#1/train?.py", "vscode://file/home/a%231/train%3F.py:12"],
    ["C:\\code\\train.py", "vscode://file/C:/code/train.py:12"],
  ])("%s", (path, expected) => {
    expect(editorLink(code, path, 12)).toBe(expected);
  });

  it("follows the form of other editors", () => {
    expect(editorLink(EDITORS.PyCharm as string, "/t.py", 3)).toBe("pycharm://open?file=/t.py&line=3");
  });
});

describe("what counts as an editor", () => {
  it.each([...Object.values(EDITORS), "emacs://open?url=file://{path}&line={line}"])("%s", (template) => {
    expect(isEditor(template)).toBe(true);
  });

  it.each([
    "",
    "vscode://file",
    "javascript:alert('{path}')",
    "JavaScript:alert('{path}')",
    "https://x/{path}",
    "{path}",
  ])("not %s", (template) => {
    expect(isEditor(template)).toBe(false);
  });
});

it("is kept for the next visit", async () => {
  const store = new Map([["stepscope.editor", JSON.stringify(EDITORS.Cursor)]]);
  vi.stubGlobal("window", { localStorage: { getItem: (key: string) => store.get(key) ?? null } });
  vi.resetModules();
  const { editor } = await import("../src/editor");

  expect(editor.value).toBe(EDITORS.Cursor);
  vi.unstubAllGlobals();
});
