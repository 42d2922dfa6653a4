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
