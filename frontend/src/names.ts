/** Names that programs write, as people read them. */
import { percent } from "./format";

/**
 * `/usr/lib/python3/site-packages/torch/nn/modules/module.py(12): f` as `modules/module.py:12 f`; at the top level of
 * a file its line stands last, where a name that is cut keeps it.
 */
export function shortPath(text: string): string {
  const short = text.replace(/^.*\/(?=[^/]+\/[^/]+$)/, "");
  return short.replace(/\((\d+)\): <module>$/, ":$1").replace(/\.py\((\d+)\): /, ".py:$1 ");
}

/** `[[32,3,224,224],[64],[]]` as `32×3×224×224, 64`: shapes as people write them, scalars left out. */
export function shapesText(text: string): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return text;
  }
  if (!Array.isArray(parsed)) return text;
  return parsed.map(one).filter(Boolean).join(", ") || "scalars";
}

function one(shape: unknown): string {
  if (!Array.isArray(shape)) return "";
  if (shape.some(Array.isArray)) return `(${shape.map(one).filter(Boolean).join(", ")})`;
  return shape.join("×");
}

/**
 * `void cudnn::detail::dgrad_engine<float, 512>(int, float const*)` as `dgrad_engine<float, 512>`, and an instruction
 * of XLA, `%copy-done.4 = f32[5,1024]{1,0:T(8,128)} copy-done(...)`, as `copy-done.4`; a range of PyTorch,
 * `enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__`, as `enumerate(DataLoader)`; Python has paths.
 */
export function shortKernel(text: string): string {
  if (/\.py\(\d+\): /.test(text)) return shortPath(text);
  const instruction = /^%([\w.-]+) = /.exec(text)?.[1];
  if (instruction) return instruction;
  const range = /^[\w.]+\(\w*\)(?=#)/.exec(text)?.[0];
  if (range) return range;
  const bare = text.replace(/^(?:void|static|__global__)\s+/, "");
  const head = bare.slice(0, endOfName(bare));
  return head.replace(/(?:[A-Za-z_]\w*|\(anonymous namespace\)|\{[^}]*\})::/g, "") || text;
}

/** Where the arguments begin: the first parenthesis outside all angle brackets that follows a name. */
function endOfName(text: string): number {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    if (sign === "<") depth += 1;
    else if (sign === ">" && text[at - 1] !== "-") depth -= 1;
    else if (sign === "(" && depth === 0 && /[\w>]/.test(text[at - 1] ?? "")) return at;
  }
  return text.length;
}

/** `## forward ##` of TorchRec as `forward`, and a class by its last name: `<class 'nn.embedding.Bag'>` as `Bag`. */
export function shortRange(text: string): string {
  return /^<class '(?:.*\.)?([^.']+)'>$/.exec(text)?.[1] ?? text.replace(/^## (.+) ##$/, "$1");
}

/** `Stream #7(Compute,MemcpyH2D,Memset)` as `Stream #7`: what it did is in its row. */
export function shortStream(text: string): string {
  return text.replace(/\(.*\)$/, "");
}

/** `CPU machine %` as `CPU machine`: its unit has a column of its own. */
export function counterName(text: string): string {
  return text.replace(/ (?:%|GB|MB\/s|W)$/, "");
}

const ROOM = 54;
const KEPT_HEAD = 14;

/**
 * Names cut to a width so that they can still be told apart: what many of them share at their start is left out, except
 * for a few letters; what differs stays.
 */
export function tellApart(names: readonly string[], room = ROOM): ReadonlyMap<string, string> {
  const cut = new Map(names.map((name) => [name, middleCut(name, room)]));
  for (const alike of groupsOf(cut)) {
    const shared = sharedStart(alike);
    for (const name of alike)
      cut.set(name, `${name.slice(0, KEPT_HEAD)}…${middleCut(name.slice(shared), room - KEPT_HEAD - 1)}`);
  }
  return cut;
}

/** A text whose middle is left out where it is longer than there is room for. */
export function middleCut(text: string, room = ROOM): string {
  if (text.length <= room) return text;
  const tail = Math.floor(room / 2);
  return `${text.slice(0, room - tail - 1)}…${text.slice(-tail)}`;
}

/** Different names that look the same after the cut. */
function groupsOf(cut: ReadonlyMap<string, string>): string[][] {
  const groups = new Map<string, string[]>();
  for (const [name, text] of cut) groups.set(text, [...(groups.get(text) ?? []), name]);
  return [...groups.values()].filter((group) => group.length > 1);
}

/** How many characters all names start with; at least what is kept in any case. */
function sharedStart(names: readonly string[]): number {
  const [first = "", ...others] = names;
  let length = 0;
  while (length < first.length && others.every((name) => name[length] === first[length])) length += 1;
  return Math.max(KEPT_HEAD, length);
}

/** `conv takes 23.5 % of the device time`: the largest share in one sentence. */
export function sharesSentence(
  shares: readonly { readonly name: string; readonly percent: number | null }[],
  of: string,
): string {
  const first = shares.find((share) => share.percent !== null);
  return first ? `\`${middleCut(first.name)}\` takes ${percent(first.percent ?? 0)} of ${of}` : "";
}
