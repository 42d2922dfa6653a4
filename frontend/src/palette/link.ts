/** The link to what is shown. */
import { copyText } from "../table/export";
import { addressToShare } from "../tensorboard";

/** The address of the page; in TensorBoard that of TensorBoard with the view in it. */
export function copyLink(): void {
  void copyText(addressToShare(), "Link copied");
}
