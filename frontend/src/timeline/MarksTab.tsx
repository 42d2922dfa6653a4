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
      {marks.map((mark, at) => (
        <MarkRow key={`${mark.begin} ${mark.end}`} model={model} mark={mark} at={at} />
      ))}
    </ul>
  );
}

function MarkRow({ model, mark, at }: { model: Model; mark: Mark; at: number }) {
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
