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

  /** The name of a type; null while it is on its way. */
  get(type: number): string | null {
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

/** What is written on a slice that has no room for its whole name: what tells it from its neighbours. */
export function brief(name: string): string {
  return name.replace(/^(void|static|inline)\s+/, "").replace(/\(anonymous namespace\)::/g, "");
}

/** A name cut to a number of characters; of a path the end stays, of anything else the begin. */
export function cut(name: string, most: number): string {
  if (name.length <= most) return name;
  if (most < 3) return "";
  const slash = name.lastIndexOf("/");
  const isPath = slash > 0 && !name.includes("(") && name.length - slash <= most;
  return isPath ? `…${name.slice(Math.max(slash, name.length - most + 1))}` : `${name.slice(0, most - 1)}…`;
}
