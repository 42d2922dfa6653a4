/** The user's settings, kept between visits if the browser has storage; never data. */
const PREFIX = "stepscope.";

export function remembered(key: string): unknown {
  try {
    const text = window.localStorage.getItem(PREFIX + key);
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

export function remember(key: string, value: unknown): void {
  try {
    window.localStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // Storage may be full or forbidden; the page works without.
  }
}
