/** A flame graph: each call or module as wide as its time, what it contains below it. */
import { inkOn } from "../design/colours";
import { percent } from "../format";
import { narrow } from "../table/narrow";
import { cut } from "../timeline/names";
import type { CallNode, FlameBlock } from "../timeline/tree";
import { hint } from "../ui/hint";
import { Icon } from "../ui/icons";

interface FlameProps {
  label: string;
  blocks: readonly FlameBlock[];
  /** The time that shares are of. */
  total: number;
  /** A time of a node in words. */
  write: (time: number) => string;
  colourOf: (node: CallNode) => string;
  onPick: (id: number) => void;
}

const LEVEL = 22;
/** The line above a level that says what its blocks are. */
const CAPTION = 17;
/** As many letters have room in the whole width, and on a phone; fewer than some say nothing. */
const [LETTERS, ON_PHONE, FEWEST] = [200, 46, 4];

export function Flame({ label, blocks, total, write, colourOf, onPick }: FlameProps) {
  const letters = narrow.value ? ON_PHONE : LETTERS;
  const roomIn = (width: number) => Math.floor(width * letters) - 2;
  const kinds = kindsOf(blocks, roomIn);
  const depth = Math.max(0, ...blocks.map((block) => block.level)) + 1;
  const topOf = (at: number) => at * LEVEL + CAPTION * [...kinds.keys()].filter((level) => level <= at).length;
  return (
    <div
      class="flame"
      role="group"
      aria-label={label}
      style={{ height: `${topOf(depth - 1) + LEVEL}px` }}
      data-marks={blocks.length}
    >
      {[...kinds].map(([level, { left, names }]) => (
        <p
          key={level}
          class="flame-caption cut muted"
          style={{ left: `${100 * left}%`, top: `${topOf(level) - CAPTION}px` }}
        >
          {names.map(({ name, count }) => `${count} × ${name}`).join(", ")}
        </p>
      ))}
      {blocks.map(({ node, left, width, level }) => {
        const colour = colourOf(node);
        const text = `total ${write(node.total)}, ${percent((100 * node.total) / total)}; self ${write(node.self)}`;
        const calls = node.events === 1 ? "called once" : `${node.events.toLocaleString("en-US")} calls`;
        return (
          <button
            key={node.id}
            type="button"
            class="flame-block cut"
            style={{
              left: `${100 * left}%`,
              width: `${100 * width}%`,
              top: `${topOf(level)}px`,
              background: colour,
              color: inkOn(colour),
            }}
            aria-label={`${node.name}: ${text}`}
            onClick={() => onPick(node.id)}
            {...hint(node.name, `${calls}. Self is the time in which nothing below it runs.`, text)}
          >
            {shortName(node.name, roomIn(width), kinds.get(level)?.names[0]?.name)}
          </button>
        );
      })}
    </div>
  );
}

interface Kinds {
  readonly left: number;
  readonly names: readonly { readonly name: string; readonly count: number }[];
}

/** For each level the kinds of its modules of which several names have no room, those with most time first. */
export function kindsOf(blocks: readonly FlameBlock[], roomIn: (width: number) => number): ReadonlyMap<number, Kinds> {
  const found = new Map<
    number,
    Map<string, { name: string; count: number; width: number; left: number; cut: number }>
  >();
  for (const { node, left, width, level } of blocks) {
    const name = KIND.exec(node.name)?.[1];
    if (!name) continue;
    const kinds = found.get(level) ?? new Map();
    const kind = kinds.get(name) ?? { name, count: 0, width: 0, left, cut: 0 };
    const isCut = hasRoom(node.name, roomIn(width)) ? 0 : 1;
    found.set(
      level,
      kinds.set(name, { ...kind, count: kind.count + 1, width: kind.width + width, cut: kind.cut + isCut }),
    );
  }
  const several = [...found].map(([level, kinds]) => {
    const names = [...kinds.values()].filter(({ cut }) => cut > 1).sort((a, b) => b.width - a.width);
    return [level, { names, left: Math.min(...names.map(({ left }) => left)) }] as const;
  });
  return new Map(several.filter(([, { names }]) => names.length));
}

/** Whether a name has room, or at least its last word. */
function hasRoom(name: string, most: number): boolean {
  return name.length <= most || cut(name, most - 1).startsWith("…");
}

/** The kind of a module and its number. */
const KIND = /^(.+)_(\d+)$/;

/** A name with room for some letters; of the kind that stands above its level only the number. */
function shortName(name: string, most: number, kind = ""): string {
  const [, own, number = ""] = KIND.exec(name) ?? [];
  if (name.length <= most) return name;
  if (own !== kind) return most < FEWEST ? "" : cut(name, most - 1);
  return number.length <= most ? number : "";
}

interface TrailProps {
  /** What leads back to the whole graph. */
  all: string;
  /** What is in focus, and what is around it, the outermost first. */
  path: readonly CallNode[];
  open: (id: number | null) => void;
  children?: preact.ComponentChildren;
}

export function Trail({ all, path, open, children }: TrailProps) {
  return (
    <nav class="row wrap gap-s below-m" aria-label="Place in the graph">
      <button type="button" class="button quiet" onClick={() => open(null)}>
        {all}
      </button>
      {path.map((node) => (
        <span key={node.id} class="inline-row muted">
          <Icon name="right" size={14} />
          <button
            type="button"
            class="button quiet"
            aria-current={node === path.at(-1) ? "location" : undefined}
            onClick={() => open(node.id)}
          >
            {node.name.slice(-48)}
          </button>
        </span>
      ))}
      {children}
    </nav>
  );
}
