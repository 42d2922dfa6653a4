/** Changes what people say of a session: its title, labels and note; and deletes it. */
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../api";
import { type Change, changeWords, parseLabels, refreshWords, type Words, wordsOf } from "../people";
import { sessions } from "../session";
import { Failed } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { say } from "../ui/toast";
import { setDeleted } from "./quickChanges";

const LONGEST_TITLE = 200;
const LONGEST_NOTE = 20_000;

interface Form {
  readonly title: string;
  readonly labels: string;
  readonly note: string;
}

function formOf(words: Words): Form {
  return { title: words.title, labels: words.labels.join(", "), note: words.note };
}

/** What the form changes of the words that it was filled from: other people's changes of the rest are kept. */
function changeOf(form: Form, base: Words): Change {
  const before = formOf(base);
  return {
    ...(form.title === before.title ? {} : { title: form.title }),
    ...(form.labels === before.labels ? {} : { labels: parseLabels(form.labels) }),
    ...(form.note === before.note ? {} : { note: form.note }),
  };
}

export function WordsDialog({ session, onClose }: { session: string; onClose: () => void }) {
  const [base, setBase] = useState<Words>(() => wordsOf(session));
  const [form, setForm] = useState<Form>(() => formOf(base));
  const [theirs, setTheirs] = useState<Words | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const run = sessions.value?.sessions.find((each) => each.id === session)?.run ?? session;

  const save = async (event: Event) => {
    event.preventDefault();
    setError(null);
    try {
      await changeWords(session, (theirs ?? base).version, changeOf(form, base));
      say("Saved");
      onClose();
    } catch (failure) {
      const refused = asApiError(failure);
      await refreshWords();
      const now = wordsOf(session);
      if (refused.status === 409 && now.version !== (theirs ?? base).version) setTheirs(now);
      else setError(refused);
    }
  };
  const takeTheirs = (words: Words) => {
    setBase(words);
    setForm(formOf(words));
    setTheirs(null);
  };

  return (
    <Dialog title="About this session" onClose={onClose} class="words">
      <form onSubmit={(event) => void save(event)}>
        <p class="muted below-l breaks">{run}</p>
        <Fields form={form} onChange={setForm} />
        {theirs && (
          <Conflict
            theirs={theirs}
            onTake={() => takeTheirs(theirs)}
            onJoin={() => setForm({ ...form, note: [theirs.note, form.note].filter(Boolean).join("\n\n") })}
          />
        )}
        {error && <Failed error={error} />}
        <footer class="dialog-foot flex gap-m">
          <button type="button" class="button danger" onClick={() => void setDeleted(session, true).then(onClose)}>
            Delete
          </button>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button accent">
            {theirs ? "Save mine" : "Save"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

function Fields({ form, onChange }: { form: Form; onChange: (form: Form) => void }) {
  const set = (key: keyof Form) => (event: { currentTarget: { value: string } }) =>
    onChange({ ...form, [key]: event.currentTarget.value });
  return (
    <div class="fields">
      <label class="field wide">
        <span>Title</span>
        <input value={form.title} maxLength={LONGEST_TITLE} onInput={set("title")} autofocus />
        <small>Shown in place of the run's name</small>
      </label>
      <label class="field wide">
        <span>Labels</span>
        <input value={form.labels} placeholder="baseline, slow input" onInput={set("labels")} />
        <small>With commas between; the search finds them</small>
      </label>
      <label class="field wide">
        <span>Note</span>
        <textarea rows={5} value={form.note} maxLength={LONGEST_NOTE} onInput={set("note")} />
      </label>
    </div>
  );
}

/** What somebody else has written meanwhile, beside the own text, which stays in its fields. */
function Conflict({ theirs, onTake, onJoin }: { theirs: Words; onTake: () => void; onJoin: () => void }) {
  const who = theirs.changed_by || "Somebody else";
  return (
    <div class="conflict" role="alert">
      <p>
        <strong>{who} has changed this session meanwhile.</strong> Your text is still in the fields. This is the other
        one:
      </p>
      <dl>
        <dt>Title</dt>
        <dd>{theirs.title || "none"}</dd>
        <dt>Labels</dt>
        <dd>{theirs.labels.join(", ") || "none"}</dd>
        <dt>Note</dt>
        <dd class="note-text">{theirs.note || "none"}</dd>
      </dl>
      <button type="button" class="button" onClick={onJoin}>
        Join both notes
      </button>{" "}
      <button type="button" class="button" onClick={onTake}>
        Use the other one
      </button>
    </div>
  );
}
