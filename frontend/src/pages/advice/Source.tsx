/** Three lines of the program that an advice is about, where its file is on this machine, and a way into the editor. */
import { address, useResource } from "../../api";
import { editor, editorLink } from "../../editor";
import { host, sessionId, steps } from "../../session";
import { hint } from "../../ui/hint";
import { Icon } from "../../ui/icons";
import type { Advice } from "../shared/reports";

interface Lines {
  /** The file, absolute; null where it is not here, or has changed. */
  readonly path: string | null;
  readonly line: number | null;
  readonly lines: readonly string[];
  /** Whether the file was changed after the recording. */
  readonly is_edited: boolean;
  /** The one that the advice is about. */
  readonly at: number | null;
}

export function Source({ advice }: { advice: Advice }) {
  const { file, line } = advice.culprit ?? { file: null, line: null };
  const session = sessionId.value;
  const isNamed = file !== null && line !== null && session !== null;
  const found = useResource<Lines>(
    isNamed
      ? address(`api/sessions/${encodeURIComponent(session)}/advice/${encodeURIComponent(advice.id)}/source`, {
          host: host.value,
          steps: steps.value,
        })
      : null,
  );
  if (!isNamed || found.state !== "ready" || !found.data.path || found.data.line === null) return null;
  const { path, line: first, lines, is_edited: isEdited } = found.data;
  const here = found.data.at ?? line;
  return (
    <figure class="source">
      <figcaption>
        <a
          href={editorLink(editor.value, path, here)}
          {...hint("Open in your editor", "Which one is set under Help", `${path}:${here}`)}
        >
          {path.split(/[\\/]/).at(-1)}:{here} <Icon name="arrow" size={14} />
        </a>
        {isEdited && <span class="muted"> changed since the recording; as it is now</span>}
      </figcaption>
      <pre>
        {lines.map((text, at) => (
          <code key={first + at} class={first + at === here ? "here" : ""}>
            <span class="muted">{String(first + at).padStart(5)}</span> {text}
            {"\n"}
          </code>
        ))}
      </pre>
    </figure>
  );
}
