/** The bar at the bottom: the undo of a deletion. */

import { sessions, titleOf } from "../session";
import { IconButton } from "../ui/controls";
import { lastDeleted, setDeleted } from "./quickChanges";

export function Bars() {
  return (
    <section class="message-bars" aria-label="Messages">
      <UndoBar />
    </section>
  );
}

function UndoBar() {
  const id = lastDeleted.value;
  const info = sessions.value?.sessions.find((each) => each.id === id);
  if (!id || !info) return null;
  return (
    <div class="message-bar row gap-m" role="status">
      <span class="fills shrinks breaks">{titleOf(info)} was deleted. Its files stay.</span>
      <button type="button" class="button" onClick={() => void setDeleted(id, false)}>
        Undo
      </button>
      <IconButton icon="close" label="Dismiss" onClick={() => (lastDeleted.value = null)} />
    </div>
  );
}
