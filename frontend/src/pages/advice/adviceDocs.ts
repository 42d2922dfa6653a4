/** The documentation of advice as the page shows it: sections of the project's own text, cut into what is drawn. */
import text from "../../../../docs/advice.md?raw";

export interface RuleRow {
  readonly rule: string;
  readonly classes: readonly string[];
  readonly from: string;
  readonly of: string;
}

/** The paragraphs below a heading, up to the next one; none if there is no such heading. */
export function paragraphs(heading: string, source: string = text): string[] {
  const lines = source.split("\n");
  const begin = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, "").trim() === heading);
  if (begin < 0) return [];
  const length = lines.slice(begin + 1).findIndex((line) => /^#+ /.test(line));
  const inside = lines.slice(begin + 1, length < 0 ? undefined : begin + 1 + length).join("\n");
  return inside
    .split(/\n\s*\n/)
    .map((part) => part.trim())
    .filter((part) => part && !part.startsWith("|"))
    .map((part) => part.replace(/\s*\n\s*/g, " "));
}

/** The rules that may say so, from the table of all rules. */
export function rulesOf(kind: string, source: string = text): RuleRow[] {
  const cells = source
    .split("\n")
    .filter((line) => /^\| `/.test(line))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  return cells
    .filter((row) => row.length === 4)
    .map(([rule, classes, from, of]) => ({
      rule: (rule as string).replaceAll("`", ""),
      classes: (classes as string).split(", "),
      from: from as string,
      of: of as string,
    }))
    .filter((row) => row.classes.includes(kind));
}

export interface Piece {
  readonly text: string;
  readonly as: "text" | "code" | "strong";
}

/** Code, emphasis and links of a paragraph; a link is its text, since what it leads to is not here. */
export function pieces(paragraph: string): Piece[] {
  const plain = paragraph.replace(/\[([^\]]+)\]\([^)]+\)/g, "$1");
  return plain
    .split(/(`[^`]+`|\*[^*\s][^*]*\*)/)
    .filter(Boolean)
    .map((part) => {
      const marked = part.length > 2 && part[0] === part.at(-1);
      if (marked && part[0] === "`") return { text: part.slice(1, -1), as: "code" };
      return marked && part[0] === "*" ? { text: part.slice(1, -1), as: "strong" } : { text: part, as: "text" };
    });
}
