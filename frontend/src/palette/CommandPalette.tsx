/** The command palette: type a few letters of anything, Enter goes there. */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { LongName } from "../ui/basics";
import { Icon } from "../ui/icons";
import { timelineCommand, useCommands } from "./commands";
import { type Command, rankedCommands } from "./search";

const MOST_SHOWN = 60;

export function CommandPalette({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const commands = useCommands();
  const ranked = useMemo(() => rankedCommands(commands, text, MOST_SHOWN), [commands, text]);
  const found = [...ranked, ...timelineCommand(text)];
  const chosen = Math.min(at, found.length - 1);
  useLayoutEffect(() => {
    dialog.current?.showModal();
    return () => dialog.current?.close();
  }, []);
  useLayoutEffect(() => document.getElementById(`command-${chosen}`)?.scrollIntoView({ block: "nearest" }), [chosen]);
  const run = (command: Command | undefined) => {
    if (!command) return;
    onClose();
    command.run();
  };
  const pressed = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (by) setAt(Math.max(0, Math.min(found.length - 1, chosen + by)));
    else if (event.key === "Enter") run(found[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      ref={dialog}
      class="dialog palette"
      aria-label="Go to anything"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => event.target === dialog.current && onClose()}
    >
      <div class="palette-search row gap-m muted">
        <Icon name="search" size={18} />
        <input
          type="text"
          role="combobox"
          aria-label="Go to anything"
          aria-expanded="true"
          aria-controls="commands"
          aria-activedescendant={found.length ? `command-${chosen}` : undefined}
          placeholder="A page, a session, an op, a kernel, a range, a line, an action"
          autofocus
          spellcheck={false}
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={pressed}
        />
      </div>
      <div id="commands" class="palette-list" role="listbox" aria-label="Matches">
        {found.map((command, index) => (
          <div
            key={command.id}
            id={`command-${index}`}
            role="option"
            aria-selected={index === chosen}
            class="command"
            onMouseMove={() => index !== chosen && setAt(index)}
            onClick={() => run(command)}
            onKeyDown={pressed}
          >
            <span class="muted minor">{command.kind}</span>
            <LongName text={command.text} />
            <span class="command-note muted minor">
              {command.note}
              {command.keys?.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </span>
          </div>
        ))}
      </div>
    </dialog>
  );
}
