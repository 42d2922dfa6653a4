/** Colours of slices: the hue of their category; names that belong to none get a hue of their own, always the same. */
import { CATEGORY_COLOUR, type Category, inkOn, KIND_CATEGORY, mix, type Palette } from "../design/colours";
import type { Model } from "./model";
import type { Span } from "./viewport";

/** Steps are the frame of the picture, not work. */
const STEP_KINDS = new Set(["step_mark", "device_step"]);
const SHADES = [0, 0.1, 0.2, 0.3] as const;
/** How strongly a merged slice is coloured, by how busy it is. */
const DENSITIES = 4;

export interface Paint {
  readonly fill: string;
  readonly ink: string;
}

export function categoryOfKind(kind: string): Category | null {
  return KIND_CATEGORY[kind] ?? null;
}

export function hash(text: string): number {
  let value = 2166136261;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 16777619);
  value ^= value >>> 13;
  return Math.imul(value, 0x5bd1e995) >>> 0;
}

/** What a picture is painted from. */
export interface Scene {
  readonly model: Model;
  readonly painter: Painter;
  readonly palette: Palette;
  readonly isDark: boolean;
  readonly span: Span;
  readonly width: number;
}

export class Painter {
  private readonly known = new Map<number, Paint>();

  constructor(
    private readonly kinds: ReadonlyMap<number, string>,
    private readonly nameOf: (type: number) => string | null,
    private readonly surface: string,
    private readonly isDark: boolean,
  ) {}

  /** The colour of a slice; `busy` is the share of a merged slice that its events take, 1 for an event. */
  of(type: number, kind: number, busy: number): Paint {
    const density = Math.max(1, Math.ceil(busy * DENSITIES - 1e-6));
    const id = (type * 64 + kind) * 8 + density;
    const found = this.known.get(id);
    if (found) return found;
    const name = this.nameOf(type);
    const fill = mix(
      this.base(this.kinds.get(kind) ?? "", name),
      this.surface,
      ((DENSITIES - density) / DENSITIES) * 0.72,
    );
    const paint = { fill, ink: inkOn(fill) };
    if (name !== null) this.known.set(id, paint);
    return paint;
  }

  private base(kind: string, name: string | null): string {
    if (STEP_KINDS.has(kind)) return this.isDark ? "#5b6b86" : "#8fa0bd";
    const category = KIND_CATEGORY[kind];
    const number = hash(name ?? "");
    if (category) return mix(CATEGORY_COLOUR[category], this.surface, SHADES[number % SHADES.length] as number);
    if (name === null) return this.isDark ? "#39424f" : "#d5dae2";
    return ownHue(number, kind === "python_call" ? 0.26 : 0.36, this.isDark);
  }
}

/** A muted colour by number; no reds, which mean trouble. */
function ownHue(number: number, saturation: number, isDark: boolean): string {
  const hue = 28 + ((number >>> 3) % 304);
  const lightness = (isDark ? 0.44 : 0.72) + ((number % 3) - 1) * 0.04;
  return hsl(hue, saturation, lightness);
}

function hsl(hue: number, saturation: number, lightness: number): string {
  const amount = saturation * Math.min(lightness, 1 - lightness);
  const channel = (n: number) => {
    const k = (n + hue / 30) % 12;
    const value = lightness - amount * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return Math.round(value * 255)
      .toString(16)
      .padStart(2, "0");
  };
  return `#${channel(0)}${channel(8)}${channel(4)}`;
}
