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
      label="What fills the memory"
      parts={parts}
      write={bytes}
      unit="bytes"
      rows={[{ key: "held", label: "Memory", note: "what it was filled by", parts: Object.fromEntries(sums) }]}
    />
  );
}
