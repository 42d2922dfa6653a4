/** Names of event types, fetched a page at a time when a slice with one comes into view. */

const AT_ONCE = 3;

export class Names {
  private readonly pages = new Map<number, readonly string[]>();
  private readonly asked = new Set<number>();
  private running = 0;

  constructor(
    private readonly fetchPage: (page: number) => Promise<{ names: readonly string[] }>,
    private readonly size: number,
    private readonly changed: () => void,
  ) {}

  /** Names of the page's own: types below zero. */
  own: readonly string[] = [];

  /** The name of a type; null while it is on its way. */
  get(type: number): string | null {
    if (type < 0) return this.own[-1 - type] ?? "";
    const page = Math.floor(type / this.size);
    const names = this.pages.get(page);
    if (names) return names[type - page * this.size] ?? "";
    if (!this.asked.has(page) && this.running < AT_ONCE) void this.ask(page);
    return null;
  }

  private async ask(page: number): Promise<void> {
    this.asked.add(page);
    this.running += 1;
    try {
      this.pages.set(page, (await this.fetchPage(page)).names);
    } catch {
      globalThis.setTimeout(() => this.asked.delete(page), 2000);
    } finally {
      this.running -= 1;
      this.changed();
    }
  }
}

const MODULE = "nn.Module: ";

/**
 * What a name comes down to where there is no room for all of it: `conv2d` of `aten::conv2d`, `forward` of
 * `model.py(12): forward`, `MatMul` of `net/dense/MatMul`, and of a C++ kernel its name without types and namespaces.
 */
export function brief(name: string): string {
  const python = /^[^ ]+\.py(?:\(\d+\))?:(?:\d+)? ?(.+)$/.exec(name);
  if (python?.[1]) return python[1];
  if (name.startsWith(MODULE)) return name.slice(MODULE.length);
  const bare = name.replace(/^(?:void|static|inline)\s+/, "").replace(/\(anonymous namespace\)::/g, "");
  const head = /^[\w:~$]+(?=[<(])/.exec(bare)?.[0] ?? bare;
  const place = Math.max(head.lastIndexOf("::") + 1, head.includes("(") ? -1 : head.lastIndexOf("/"));
  return place > 0 && place < head.length - 1 ? head.slice(place + 1) : head;
}

const SHORTEST = 5;

/**
 * A name cut to a number of characters; empty if that leaves too little to mean anything.  Modules such as
 * `Owlv2Attention_6`, and steps, begin alike: their last words and number tell them apart, `…Attention_6`.
 */
export function cut(name: string, most: number): string {
  if (name.length <= most) return name;
  const number = /^[A-Z]\w*?([_#]\d+)$/.exec(name)?.[1] ?? "";
  if (most < (number ? number.length + 2 : SHORTEST)) return "";
  const words = number ? name.split(/(?=[A-Z][a-z])/) : [name];
  while (words.length > 1 && words.join("").length >= most) words.shift();
  const end = words.join("");
  return end.length < most ? `…${end}` : `${end.slice(0, most - 1 - number.length)}…${number}`;
}
