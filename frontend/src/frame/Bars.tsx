/** The bar at the bottom: the undo of a deletion. */

import { sessions, titleOf } from "../session";
import { IconButton } from "../ui/controls";
import { lastDeleted, setDeleted } from "./quickChanges";

export function Bars() {
  const info = sessions.value?.sessions.find((each) => each.id === lastDeleted.value);
  return (
    <section class="message-bars" aria-label="Messages">
      {info && (
        <div class="message-bar floats row gap-m" role="status">
          <span class="fills shrinks breaks">{titleOf(info)} was deleted. Its files stay.</span>
          <button type="button" class="button" onClick={() => void setDeleted(info.id, false)}>
            Undo
          </button>
          <IconButton icon="close" label="Dismiss" onClick={() => (lastDeleted.value = null)} />
        </div>
      )}
    </section>
  );
}
