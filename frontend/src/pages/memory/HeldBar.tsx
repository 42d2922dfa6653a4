/** One bar of what a program held when its memory ran out, by what it is for. */
import { useMemo } from "preact/hooks";
import type { Cell } from "../../api";
import { palette } from "../../design/theme";
import { bytes } from "../../format";
import { StackedBars } from "../shared/Bars";
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
      label="What the program held when memory ran out"
      parts={parts}
      write={bytes}
      unit="bytes"
      rows={[{ key: "held", label: "Memory", note: "counted when it ran out", parts: Object.fromEntries(sums) }]}
    />
  );
}
