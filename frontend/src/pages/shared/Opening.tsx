/** The page before there is data: no session yet, or one that is being read. */
import type { SessionState, Sessions } from "../../api";
import { bytes } from "../../format";
import { Code, Empty, sentence } from "../../ui/basics";

const HOW_TO_RECORD =
  "Record one with `stepscope run train.py`, with `stepscope.Profile(logdir)` around some training steps, " +
  "or with the Capture button while a job runs a profiler server.";

export function NoSessions({ sessions }: { sessions: Sessions }) {
  return (
    <Empty title="There is no profile here yet">
      <p>Looked in {sessions.searched.join(", ") || "no folder"}.</p>
      <p>
        <Code text={HOW_TO_RECORD} />
      </p>
      {sessions.skipped.length > 0 && (
        <ul class="plain-list skipped">
          {sessions.skipped.map((each) => (
            <li key={each.path}>
              <strong>{each.path}</strong>: {each.reason}
            </li>
          ))}
        </ul>
      )}
    </Empty>
  );
}

export function Opening({ state }: { state: SessionState }) {
  const progress = state.progress;
  const total = progress?.total_bytes ?? 0;
  const done = progress?.done_bytes ?? 0;
  const share = total > 0 ? Math.min(100, (100 * done) / total) : null;
  return (
    <div class="opening" role="status">
      <p class="title-size strong breaks">Opening {state.run}</p>
      <progress max={100} {...(share === null || share === 0 ? {} : { value: share })} aria-label="Read so far" />
      <p class="muted">
        {[
          progress?.stage ? sentence(progress.stage) : "",
          total > 0 ? `${bytes(done)} of ${bytes(total)}` : "",
          progress?.events ? `${progress.events.toLocaleString("en-US")} events read` : "",
          progress?.seconds_left ? `about ${Math.ceil(progress.seconds_left)} s left` : "",
        ]
          .filter(Boolean)
          .join(" · ")}
      </p>
      {state.hosts.length > 1 && (
        <ul class="opening-hosts">
          {state.hosts.map((each) => (
            <li key={each.name} class={each.state}>
              <span>{each.name}</span>
              <span class="muted">{each.error?.error ?? each.state}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
