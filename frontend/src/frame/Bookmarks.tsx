/** The reader's bookmarks: go to one, rename it, delete it. */

import { useState } from "preact/hooks";
import { addBookmark, bookmarks, deleteBookmark, renameBookmark } from "../palette/bookmarks";
import { IconButton } from "../ui/controls";
import { hint } from "../ui/hint";
import { Icon } from "../ui/icons";
import { Menu } from "../ui/menu";

export function Bookmarks() {
  return (
    <Menu label="Bookmarks" buttonClass="icon-button" button={<Icon name="bookmark" />}>
      {(close) => (
        <div class="bookmarks">
          <button type="button" class="button" onClick={addBookmark}>
            Bookmark this view
          </button>
          {bookmarks.value.length === 0 && <p class="muted choice-none">No bookmarks yet</p>}
          <ul>
            {bookmarks.value.map((each) => (
              <BookmarkRow key={each.hash} name={each.name} hash={each.hash} close={close} />
            ))}
          </ul>
        </div>
      )}
    </Menu>
  );
}

function BookmarkRow({ name, hash, close }: { name: string; hash: string; close: () => void }) {
  const [isRenaming, setIsRenaming] = useState(false);
  return (
    <li class="bookmark">
      {isRenaming ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            setIsRenaming(false);
            renameBookmark(hash, String(new FormData(event.currentTarget).get("name") ?? ""));
          }}
        >
          <input name="name" aria-label="Name of the bookmark" defaultValue={name} ref={(box) => box?.select()} />
        </form>
      ) : (
        <a class="choice" href={hash} onClick={close}>
          {name}
        </a>
      )}
      <IconButton
        icon="edit"
        label={`Rename ${name}`}
        onClick={() => setIsRenaming(!isRenaming)}
        {...hint("Rename", "")}
      />
      <IconButton icon="close" label={`Delete ${name}`} onClick={() => deleteBookmark(hash)} {...hint("Delete", "")} />
    </li>
  );
}
