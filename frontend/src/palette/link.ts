/** The link to what is shown. */
import { copyText } from "../table/export";

/** The address of the page; in a frame, such as TensorBoard's, that of the frame, which opens on its own. */
export function copyLink(): void {
  void copyText(window.location.href, "Link copied");
}
