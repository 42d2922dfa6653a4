import { describe, expect, it } from "vitest";
import { paragraphs, pieces, rulesOf } from "../src/pages/advice/adviceDocs";

const TEXT = `# Advice

## Classes

### slow_thing

It is slow, and
\`f()\` says so.

Second.

### other

## Rules

| rule | class | speaks from | of |
| --- | --- | --- | --- |
| \`a.b\` | slow_thing, other | 8 % | time in \`f\` |
| \`c\` | other | 5 % | the rest |
`;

describe("the documentation of advice", () => {
  it("is cut by headings into paragraphs", () => {
    expect(paragraphs("slow_thing", TEXT)).toEqual(["It is slow, and `f()` says so.", "Second."]);
    expect(paragraphs("Rules", TEXT)).toEqual([]);
    expect(paragraphs("nothing of the kind", TEXT)).toEqual([]);
  });

  it("tells which rules give a class", () => {
    expect(rulesOf("slow_thing", TEXT)).toEqual([
      { rule: "a.b", classes: ["slow_thing", "other"], from: "8 %", of: "time in `f`" },
    ]);
    expect(rulesOf("other", TEXT).map((row) => row.rule)).toEqual(["a.b", "c"]);
  });

  it("has code, emphasis and links", () => {
    expect(pieces("*Why.* See [there](x.md): `a * b` is 2 * 3")).toEqual([
      { text: "Why.", as: "strong" },
      { text: " See there: ", as: "text" },
      { text: "a * b", as: "code" },
      { text: " is 2 * 3", as: "text" },
    ]);
  });

  it.each(["input_python", "host_sync", "straggler", "low_precision", "none"])("has a section on %s", (kind) => {
    expect(paragraphs(kind).join(" ").length).toBeGreaterThan(40);
  });

  it.each(["Confidence", "How a gain is predicted"])("has the section %s that every class shows", (heading) => {
    expect(paragraphs(heading).length).toBeGreaterThan(0);
  });
});
