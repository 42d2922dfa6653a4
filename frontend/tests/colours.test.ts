import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { colourOfCause } from "../src/design/causes";
import {
  CATEGORIES,
  CATEGORY_COLOUR,
  CAUSE_COLOUR,
  type CategoryRule,
  categoryOf,
  contrast,
  inkOn,
  LEAST_CONTRAST,
  luminance,
  mix,
  PALETTES,
  rgb,
  setCategoryRules,
} from "../src/design/colours";

type Triple = [number, number, number];

const linear = (hex: string) =>
  rgb(hex).map((value) =>
    value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4,
  ) as Triple;
const times = (rows: readonly Triple[], v: Triple) =>
  rows.map((row) => row[0] * v[0] + row[1] * v[1] + row[2] * v[2]) as Triple;

/** Björn Ottosson's OKLab: equal distances look about equally different. */
function oklab(v: Triple): Triple {
  const cones = times(
    [
      [0.4122214708, 0.5363325363, 0.0514459929],
      [0.2119034982, 0.6806995451, 0.1073969566],
      [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    v.map((x) => Math.max(0, x)) as Triple,
  );
  return times(
    [
      [0.2104542553, 0.793617785, -0.0040720468],
      [1.9779984951, -2.428592205, 0.4505937099],
      [0.0259040371, 0.7827717662, -0.808675766],
    ],
    cones.map(Math.cbrt) as Triple,
  );
}

/** Machado, Oliveira, Fernandes 2009, severity 1. */
const EYES: Record<string, readonly Triple[]> = {
  "usual eyes": [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  "red-blind eyes": [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  "green-blind eyes": [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  "blue-blind eyes": [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

const LEAST: Record<string, number> = {
  "usual eyes": 0.09,
  "red-blind eyes": 0.09,
  "green-blind eyes": 0.09,
  "blue-blind eyes": 0.06,
};

/** The colours of categories that no cause has. */
const UNUSED = CATEGORIES.map((category) => CATEGORY_COLOUR[category]).filter(
  (colour) => !Object.values(CAUSE_COLOUR).some((each) => each.colour === colour),
);

describe("the colours of the categories", () => {
  it.each(Object.keys(EYES))("stay apart for %s", (eyes) => {
    const colours = [...new Set(Object.values(CAUSE_COLOUR).map(({ colour }) => colour)), ...UNUSED];
    const seen = colours.map((colour) => oklab(times(EYES[eyes] as readonly Triple[], linear(colour))));
    for (let a = 0; a < seen.length; a++) {
      for (let b = a + 1; b < seen.length; b++) {
        const [x, y] = [seen[a] as Triple, seen[b] as Triple];
        expect(Math.hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]), `${colours[a]} and ${colours[b]}`).toBeGreaterThan(
          LEAST[eyes] as number,
        );
      }
    }
  });

  it("differ in grey between neighbours of a stack", () => {
    const greys = CATEGORIES.map((category) => Math.cbrt(luminance(CATEGORY_COLOUR[category])));
    for (let i = 1; i < greys.length; i++)
      expect(Math.abs((greys[i] as number) - (greys[i - 1] as number)), CATEGORIES[i]).toBeGreaterThan(0.09);
  });

  it.each(["light", "dark"] as const)("stand out from the %s page, and can be written on", (theme) => {
    for (const { colour } of Object.values(CAUSE_COLOUR)) {
      expect(contrast(colour, PALETTES[theme].surface), colour).toBeGreaterThan(1.9);
      expect(contrast(colour, inkOn(colour)), colour).toBeGreaterThan(4.5);
    }
  });
});

describe("causes on a dark page", () => {
  const { surface } = PALETTES.dark;
  const seen = Object.keys(CAUSE_COLOUR).map((cause) => colourOfCause(cause, surface));

  it.each(Object.keys(CAUSE_COLOUR))("%s is told from its ground, and can be written on", (cause) => {
    const colour = colourOfCause(cause, surface);
    expect(contrast(colour, surface)).toBeGreaterThanOrEqual(LEAST_CONTRAST);
    expect(contrast(colour, inkOn(colour))).toBeGreaterThan(4.5);
  });

  it("stay apart", () => {
    for (const [at, one] of seen.entries())
      for (const other of seen.slice(at + 1)) {
        const [x, y] = [oklab(linear(one)), oklab(linear(other))];
        expect(Math.hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]), `${one} and ${other}`).toBeGreaterThan(0.05);
      }
  });
});

describe("the colours of the page", () => {
  it.each(["light", "dark"] as const)("can be read in the %s theme", (theme) => {
    const { page, surface, raised, text, muted, accent, trouble, good } = PALETTES[theme];
    for (const ground of [page, surface, raised])
      for (const ink of [text, muted, accent, trouble, good])
        expect(contrast(ink, ground), `${ink} on ${ground}`).toBeGreaterThan(4.5);
  });

  it("are the same in the style sheet", () => {
    const css = readFileSync(new URL("../src/design/tokens.css", import.meta.url), "utf8");
    for (const theme of ["light", "dark"] as const) {
      const block = css.slice(css.indexOf(`[data-theme="${theme}"] {`)).split("}")[0] as string;
      for (const [name, value] of Object.entries(PALETTES[theme])) expect(block).toContain(`--${name}: ${value};`);
    }
  });
});

describe("ops take their category's hue", () => {
  // The rules themselves are the server's; tests/vocabulary/test_categories.py has names for each.
  const RULES: readonly CategoryRule[] = [
    { category: "input", pattern: "^take|feed", where: "" },
    { category: "kernel_launch", pattern: "start", where: "host" },
    { category: "output", pattern: "start|give", where: "" },
  ];

  it.each([
    ["device_compute", "host", "device_compute"],
    ["Feeder", "device", "input"],
    ["startKernel", "host", "kernel_launch"],
    ["startKernel", "device", "output"],
    ["give back", "host", "output"],
    ["mistake", "device", "device_compute"],
    ["mistake", "host", "host_compute"],
  ] as const)("%s on a %s is %s", (kind, where, category) => {
    setCategoryRules(RULES);
    expect(categoryOf(kind, where)).toBe(category);
  });
});

describe("text that is made fainter", () => {
  const css = readFileSync(new URL("../src/table/table.css", import.meta.url), "utf8");
  const opacityOf = (rule: string) =>
    Number(/opacity: ([\d.]+)/.exec(css.slice(css.indexOf(`${rule} {`)).split("}")[0] as string)?.[1]);

  it.each(["light", "dark"] as const)("can still be read in the %s theme", (theme) => {
    const { surface, muted } = PALETTES[theme];
    const opacity = opacityOf(".head-unit");
    expect(opacity).toBeGreaterThan(0);
    expect(contrast(mix(surface, muted, opacity), surface)).toBeGreaterThan(4.5);
  });

  it.each(["light", "dark"] as const)("stands on the accent, on its wash and on bars in the %s theme", (theme) => {
    const tokens = readFileSync(new URL("../src/design/tokens.css", import.meta.url), "utf8");
    const block = tokens.slice(tokens.indexOf(`[data-theme="${theme}"] {`)).split("}")[0] as string;
    const { surface, text, accent, muted } = PALETTES[theme];
    const blended = (name: string) => {
      const [, r, g, b, share] = new RegExp(`--${name}: rgb\\((\\d+) (\\d+) (\\d+) / (\\d+)%\\)`).exec(
        block,
      ) as RegExpExecArray;
      const hex = `#${[r, g, b].map((part) => Number(part).toString(16).padStart(2, "0")).join("")}`;
      return mix(surface, hex, Number(share) / 100);
    };
    const onAccent = /--on-accent: (#\w+)/.exec(block)?.[1] as string;
    expect(contrast(onAccent, accent)).toBeGreaterThan(4.5);
    expect(contrast(accent, blended("wash"))).toBeGreaterThan(4.5);
    for (const ground of ["wash", "hover", "bar"]) expect(contrast(text, blended(ground)), ground).toBeGreaterThan(4.5);
    expect(contrast(muted, blended("hover"))).toBeGreaterThan(4.5);
  });

  it.each(["light", "dark"] as const)("is written on every shade of a module in the %s theme", (theme) => {
    for (let own = 0; own <= 1; own += 0.05) {
      const colour = mix(
        mix(CATEGORY_COLOUR.device_compute, PALETTES[theme].surface, 0.72),
        CATEGORY_COLOUR.device_compute,
        own,
      );
      expect(contrast(inkOn(colour), colour), String(own)).toBeGreaterThan(4.4);
    }
  });
});
