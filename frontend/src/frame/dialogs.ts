/** Which of the frame's dialogs are open. */
import { signal } from "@preact/signals";

export const helpOpen = signal(false);
export const captureOpen = signal(false);
export const paletteOpen = signal(false);
/** The session whose title, labels and note are being changed. */
export const editedSession = signal<string | null>(null);
