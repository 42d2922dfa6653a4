/** What is said of the place under the mouse, beside it and inside the window. */
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Popup } from "./plot";

const AWAY = 14;

export function PopupBox({ title, lines, foot, x, y }: Popup & { x: number; y: number }) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const made = box.current;
    if (!made) return;
    const [wide, tall] = [made.offsetWidth, made.offsetHeight];
    const left = x + AWAY + wide > window.innerWidth - 8 ? x - AWAY - wide : x + AWAY;
    made.style.left = `${Math.max(8, left)}px`;
    made.style.top = `${Math.max(8, Math.min(y + AWAY, window.innerHeight - tall - 8))}px`;
  }, [x, y, title]);
  return (
    <div class="popup floats tip" ref={box}>
      <div class="popup-title">{title}</div>
      <div class="popup-lines">
        {lines.map((line) => (
          <>
            <span class={`swatch ${line.colour ? "" : "none"}`} style={{ background: line.colour }} />
            <span class={line.faint ? "faint" : ""}>{line.name}</span>
            <span class={`popup-value ${line.faint ? "faint" : ""}`}>{line.value}</span>
            <span class="popup-value faint">{line.note}</span>
          </>
        ))}
      </div>
      {foot && <div class="popup-foot">{foot}</div>}
    </div>
  );
}
