/** Names that programs write, as people read them. */

/** `/usr/lib/python3/site-packages/torch/nn/modules/module.py(12): f` as `modules/module.py(12): f`. */
export function shortPath(text: string): string {
  return text.replace(/^.*\/(?=[^/]+\/[^/]+$)/, "");
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

/** `void cudnn::detail::dgrad_engine<float, 512>(int, float const*)` as `dgrad_engine<float, 512>`. */
export function shortKernel(text: string): string {
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

/** `CPU machine %` as `CPU machine`: its unit has a column of its own. */
export function counterName(text: string): string {
  return text.replace(/ (?:%|GB|MB\/s|W)$/, "");
}
