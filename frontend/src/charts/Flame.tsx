/** A flame graph: each call or module as wide as its time, what it contains below it. */
import { inkOn } from "../design/colours";
import { percent } from "../format";
import { narrow } from "../table/narrow";
import { cut } from "../timeline/names";
import type { CallNode, FlameBlock } from "../timeline/tree";
import { hint } from "../ui/hint";

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
/** As many letters have room in the whole width, and on a phone; fewer than some say nothing. */
const [LETTERS, ON_PHONE, FEWEST] = [200, 46, 4];

export function Flame({ label, blocks, total, write, colourOf, onPick }: FlameProps) {
  const letters = narrow.value ? ON_PHONE : LETTERS;
  const depth = Math.max(0, ...blocks.map((block) => block.level)) + 1;
  return (
    <div
      class="flame"
      role="group"
      aria-label={label}
      style={{ height: `${depth * LEVEL}px` }}
      data-marks={blocks.length}
    >
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
              top: `${level * LEVEL}px`,
              background: colour,
              color: inkOn(colour),
            }}
            aria-label={`${node.name}: ${text}`}
            onClick={() => onPick(node.id)}
            {...hint(node.name, `${calls}. Self is the time in which nothing below it runs.`, text)}
          >
            {width * letters >= FEWEST + 2 && shortName(node.name, Math.floor(width * letters) - 2)}
          </button>
        );
      })}
    </div>
  );
}

/** A name with room for some letters; of a module that is cut its number, as its neighbours are called alike. */
function shortName(name: string, most: number): string {
  const short = cut(name, most);
  return /…_(\d+)$/.exec(short)?.[1] ?? short;
}
