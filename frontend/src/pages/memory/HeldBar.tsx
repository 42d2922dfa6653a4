/** When memory ran out: one bar of what the program held, by what it is for, or of what was asked for and free. */
import { useMemo } from "preact/hooks";
import type { Cell } from "../../api";
import { CATEGORY_COLOUR, mix } from "../../design/colours";
import { palette } from "../../design/theme";
import { bytes } from "../../format";
import { StackedBars } from "../shared/Bars";
import type { Asked } from "../shared/reports";
import { partsOf, sumsOfHeld } from "./purposes";

interface HeldBarProps {
  kinds: readonly Cell[];
  sizes: readonly Cell[];
}

export function HeldBar({ kinds, sizes }: HeldBarProps) {
  const look = palette.value;
  const sums = useMemo(() => sumsOfHeld(kinds.map(String), sizes.map(Number)), [kinds, sizes]);
  const parts = useMemo(() => partsOf(sums, look.surface), [sums, look]);
  return (
    <StackedBars
      label="What fills the memory"
      parts={parts}
      write={bytes}
      unit="bytes"
      rows={[{ key: "held", label: "Memory", note: "what it was filled by", parts: Object.fromEntries(sums) }]}
    />
  );
}

/** What was asked for at once, above what was in use and free then. */
export function RequestBar({ asked }: { asked: Asked }) {
  const look = palette.value;
  const parts = [
    { key: "asked", label: "Asked for at once", colour: look.trouble, doc: "one request, which failed" },
    { key: "used", label: "In use", colour: CATEGORY_COLOUR.device_compute, doc: "by the program, at that moment" },
    { key: "free", label: "Free", colour: mix(CATEGORY_COLOUR.other, look.surface, 0.35), doc: "at that moment" },
  ];
  const amounts = { asked: asked.requested_bytes, used: asked.used_bytes, free: asked.free_bytes };
  const own = (...keys: (keyof typeof amounts)[]) => Object.fromEntries(keys.map((key) => [key, Number(amounts[key])]));
  return (
    <StackedBars
      label="What was asked for, and what there was"
      parts={parts}
      write={bytes}
      unit="bytes"
      rows={[
        { key: "asked", label: "Request", note: String(asked.place ?? ""), parts: own("asked") },
        { key: "memory", label: "Memory", note: "in use and free then", parts: own("used", "free") },
      ]}
    />
  );
}
