/** The keys, and where to read more. */
import { EDITORS, editor, isEditor, setEditor } from "../editor";
import { config } from "../session";
import { Dialog } from "../ui/dialog";
import { type Binding, bindings } from "../ui/keys";

const TABLE_KEYS: readonly Pick<Binding, "keys" | "does">[] = [
  { keys: "↑ ↓", does: "Move between rows; also Page Up, Page Down, Home and End" },
  { keys: "Enter", does: "Open the row" },
  { keys: "Esc", does: "Close what is open" },
];

const CHART_KEYS: readonly Pick<Binding, "keys" | "does">[] = [
  { keys: "← →", does: "Move between steps in a focused chart" },
  { keys: "Enter", does: "Show the picked step in the timeline" },
];

export function Help({ onClose }: { onClose: () => void }) {
  const groups = new Map<string, Pick<Binding, "keys" | "does">[]>();
  for (const binding of bindings.value) {
    const listed = groups.get(binding.group) ?? [];
    // Of two ways to one place the first is enough.
    if (!listed.some(({ does }) => does === binding.does)) groups.set(binding.group, [...listed, binding]);
  }
  groups.set("Tables", [...(groups.get("Tables") ?? []), ...TABLE_KEYS]);
  groups.set("Charts", [...CHART_KEYS]);
  return (
    <Dialog title="Help and keys" onClose={onClose} class="help">
      <div class="help-groups">
        {[...groups].map(([name, list]) => (
          <section key={name}>
            <h3>{name}</h3>
            <dl>
              {list.map((binding) => (
                <div key={`${binding.keys} ${binding.does}`}>
                  <dt>
                    {binding.keys.split(" ").map((key) => (
                      <kbd key={key}>{key}</kbd>
                    ))}
                  </dt>
                  <dd>{binding.does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <label class="editor-choice">
        Lines of source open in
        <input
          type="text"
          list="editors"
          value={editor.value}
          spellcheck={false}
          onChange={({ currentTarget }) => {
            if (isEditor(currentTarget.value)) setEditor(currentTarget.value);
            else currentTarget.value = editor.value;
          }}
        />
        <datalist id="editors">
          {Object.entries(EDITORS).map(([name, template]) => (
            <option key={name} value={template} label={name} />
          ))}
        </datalist>
      </label>
      <p class="muted">
        Rest the pointer on a number or a column's head to read what it means and how it was computed. The address of
        the page holds all that you chose: copy it to show the same to someone else. Stepscope {config.value?.version},
        reading {config.value?.logdir}. <a href="licenses.txt">Licences of third parties</a>
      </p>
    </Dialog>
  );
}
