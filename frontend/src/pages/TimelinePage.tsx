/** The timeline as a page. */
import { host, session } from "../session";
import Timeline from "../timeline";

export default function TimelinePage() {
  const state = session.value;
  return state && <Timeline session={state.id} host={host.value} />;
}
