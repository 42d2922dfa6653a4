/** What all charts share: axes, lines, the pop-up. */
import type { EChartsCoreOption } from "echarts/core";
import type { Palette } from "../design/colours";

export const FONT = '"Inter Variable", system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

export function base(palette: Palette): EChartsCoreOption {
  return {
    animation: false, // a chart that moves says nothing more, and keeps the reader waiting
    textStyle: { fontFamily: FONT, color: palette.text, fontSize: 12 },
    grid: { left: 8, right: 12, top: 22, bottom: 8, containLabel: true },
  };
}

export function axis(palette: Palette, name = ""): Record<string, unknown> {
  return {
    name,
    nameTextStyle: { color: palette.muted, fontSize: 11, align: "left", padding: [0, 0, 0, -4] },
    nameGap: 10,
    axisLine: { show: false, lineStyle: { color: palette.strong } },
    axisTick: { show: false },
    axisLabel: { color: palette.muted, fontSize: 11, hideOverlap: true },
    splitLine: { lineStyle: { color: palette.line } },
  };
}

/** The slider below a chart, with which its horizontal axis is narrowed. */
export function slider(palette: Palette): Record<string, unknown> {
  return {
    type: "slider",
    height: 16,
    bottom: 4,
    borderColor: palette.line,
    fillerColor: `${palette.accent}22`,
    handleStyle: { color: palette.surface, borderColor: palette.accent },
    moveHandleSize: 0,
    showDetail: false,
    showDataShadow: false,
    brushSelect: false,
  };
}

export interface Line {
  readonly colour?: string;
  readonly name: string;
  readonly value: string;
  /** Beside the value, in a column of its own. */
  readonly note?: string;
  readonly faint?: boolean;
}

/**
 * The pop-up of a chart, built as elements: names out of a trace are text, never markup, and no inline style is parsed,
 * which a strict Content-Security-Policy would refuse.
 */
export function popup(title: string, lines: readonly Line[], foot = ""): HTMLElement {
  const box = element("div", "popup");
  box.append(element("div", "popup-title", title));
  const table = element("div", "popup-lines");
  for (const line of lines) {
    const swatch = element("span", "swatch");
    if (line.colour) swatch.style.background = line.colour;
    else swatch.classList.add("none");
    const faint = line.faint ? "faint" : "";
    table.append(
      swatch,
      element("span", faint, line.name),
      element("span", `popup-value ${faint}`, line.value),
      element("span", "popup-value faint", line.note),
    );
  }
  box.append(table);
  if (foot) box.append(element("div", "popup-foot", foot));
  return box;
}

export function tooltip(palette: Palette): Record<string, unknown> {
  return {
    confine: true,
    appendTo: "body",
    className: "chart-tip",
    backgroundColor: palette.raised,
    borderColor: palette.strong,
    borderWidth: 1,
    padding: 0,
    textStyle: { color: palette.text, fontFamily: FONT, fontSize: 12 },
    transitionDuration: 0,
    extraCssText: "",
  };
}

function element(tag: string, name = "", text = ""): HTMLElement {
  const made = document.createElement(tag);
  if (name.trim()) made.className = name.trim();
  if (text) made.textContent = text;
  return made;
}
