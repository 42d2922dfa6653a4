/** The reader's marks of stretches of time, with names; only the reader deletes them. */
import { IconButton } from "../ui/controls";
import type { Mark } from "./address";
import type { Model } from "./model";
import { duration, moment } from "./ticks";
import { around } from "./viewport";

export function MarksTab({ model }: { model: Model }) {
  const marks = model.marks.value;
  if (!marks.length)
    return (
      <p class="muted tl-wait">M marks the selected event or region. Marks are in the address, with their names.</p>
    );
  return (
    <ul class="wb-marks">
      {inOrder(marks).map((at, place, order) => (
        <MarkRow key={at} model={model} at={at} before={place ? (marks[order[place - 1] as number] ?? null) : null} />
      ))}
    </ul>
  );
}

/** The places of marks in the order of time. */
export function inOrder(marks: readonly Mark[]): number[] {
  return marks.map((_, at) => at).sort((a, b) => (marks[a] as Mark).begin - (marks[b] as Mark).begin);
}

function MarkRow({ model, at, before }: { model: Model; at: number; before: Mark | null }) {
  const mark = model.marks.value[at];
  if (!mark) return null;
  return (
    <li>
      <input
        type="text"
        aria-label="Name of the mark"
        placeholder="a name"
        maxLength={60}
        value={mark.name}
        onChange={(event) => model.renameMark(at, event.currentTarget.value.trim())}
      />
      <span class="muted">{`${duration(mark.end - mark.begin)} from ${moment(mark.begin)}`}</span>
      {before && <span>{`${duration(mark.begin - before.begin)} after ${before.name || "the one before"}`}</span>}
      <button type="button" class="button quiet" onClick={() => model.show(around(mark, model.whole))}>
        Show
      </button>
      <IconButton
        icon="close"
        size={13}
        label={`Delete ${mark.name || "the mark"}`}
        onClick={() => model.deleteMark(at)}
      />
    </li>
  );
}
