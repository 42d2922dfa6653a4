/** The bars at the bottom: the undo of a deletion, and uploads; and the whole window as a place to drop profiles on. */

import { useEffect, useState } from "preact/hooks";
import { bytes } from "../format";
import { mayUpload } from "../people";
import { sessions, titleOf } from "../session";
import { sentence } from "../ui/basics";
import { IconButton } from "../ui/controls";
import { Icon } from "../ui/icons";
import { openSessionNamed } from "./openSession";
import { lastDeleted, setDeleted } from "./quickChanges";
import { dismissUpload, type Upload, uploadFiles, uploads } from "./uploads";

export function Bars() {
  return (
    <section class="message-bars" aria-label="Messages">
      <UndoBar />
      {uploads.value.map((upload) => (
        <UploadBar key={upload.number} upload={upload} />
      ))}
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
      <Dismiss onClick={() => (lastDeleted.value = null)} />
    </div>
  );
}

function UploadBar({ upload }: { upload: Upload }) {
  const { name, state, session, error } = upload;
  const open = () => {
    if (session) openSessionNamed(session);
    dismissUpload(upload.number);
  };
  return (
    <div class={`message-bar row gap-m ${state}`} role={error ? "alert" : "status"}>
      <span class="fills shrinks breaks">
        {error
          ? `${name}: ${[error.message, error.hint].filter(Boolean).map(sentence).join(". ")}`
          : uploadText(upload)}
      </span>
      {state === "running" && (
        <progress aria-label={`Upload of ${name}`} value={upload.done} max={Math.max(1, upload.bytes)} />
      )}
      {session && (
        <button type="button" class="button" onClick={open}>
          Open
        </button>
      )}
      {(state === "done" || state === "failed") && <Dismiss onClick={() => dismissUpload(upload.number)} />}
    </div>
  );
}

function uploadText({ name, state, session, bytes: size }: Upload): string {
  if (state === "waiting") return `${name} waits to be uploaded`;
  if (state === "running") return `Uploading ${name}, ${bytes(size)}`;
  return session ? `${name} was uploaded` : `${name} was uploaded; it is listed soon`;
}

function Dismiss({ onClick }: { onClick: () => void }) {
  return <IconButton icon="close" label="Dismiss" onClick={onClick} />;
}

/** Shows that files can be dropped, while some are dragged over the window. */
export function DropZone() {
  const [over, setOver] = useState(false);
  const allowed = mayUpload();
  useEffect(() => {
    if (!allowed) return undefined;
    const drag = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => event.relatedTarget === null && setOver(false);
    const drop = (event: DragEvent) => {
      if (!event.dataTransfer?.files.length) return;
      event.preventDefault();
      setOver(false);
      uploadFiles(event.dataTransfer.files);
    };
    document.addEventListener("dragover", drag);
    document.addEventListener("dragleave", leave);
    document.addEventListener("drop", drop);
    return () => {
      document.removeEventListener("dragover", drag);
      document.removeEventListener("dragleave", leave);
      document.removeEventListener("drop", drop);
    };
  }, [allowed]);
  return over ? <div class="drop-zone">Drop profiles to upload them</div> : null;
}

/** The same by a button. */
export function UploadButton() {
  if (!mayUpload()) return null;
  const choose = (event: { currentTarget: HTMLInputElement }) => {
    uploadFiles([...(event.currentTarget.files ?? [])]);
    event.currentTarget.value = "";
  };
  return (
    <label class="button upload-button">
      <Icon name="upload" size={16} /> Upload profiles
      <input type="file" multiple onChange={choose} />
    </label>
  );
}
