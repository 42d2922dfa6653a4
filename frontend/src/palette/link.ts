/** The link to what is shown. */
import { asApiError } from "../api";
import { when } from "../format";
import { makeLink } from "../people";
import { formatHash, START } from "../router";
import { sessionId } from "../session";
import { copyText } from "../table/export";
import { addressToShare } from "../tensorboard";
import { say } from "../ui/toast";

const DAY_S = 86_400;

/** The address of the page; in TensorBoard that of TensorBoard with the view in it. */
export function copyLink(): void {
  void copyText(addressToShare(), "Link copied");
}

/** Copies a link that ends: to what is shown if that is of this session, else to the session's summary. */
export async function shareSession(session: string): Promise<void> {
  const isShown = session === sessionId.peek();
  try {
    const { link, expires } = await makeLink(
      session,
      isShown ? window.location.hash : formatHash({ tool: START, params: { session } }),
    );
    await copyText(new URL(link, window.location.href).href, howLong(expires));
  } catch (error) {
    say(asApiError(error).message);
  }
}

export function howLong(expires: number, now = Date.now() / 1e3): string {
  const days = Math.round((expires - now) / DAY_S);
  const span = days === 1 ? "1 day" : `${days} days`;
  return `Link copied. It works for ${span}, until ${when(expires)}, for everyone with a login.`;
}
