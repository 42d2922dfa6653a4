/** Session, host and steps, and the controls of the whole page. */

import { theme, toggleTheme } from "../design/theme";
import { placesText } from "../format";
import { copyLink } from "../palette/link";
import { mayCapture } from "../people";
import { route, setParams } from "../router";
import { config, host, session, shownHost } from "../session";
import { IconButton } from "../ui/controls";
import { hint } from "../ui/hint";
import { Icon } from "../ui/icons";
import { Menu } from "../ui/menu";
import { ComparePicker } from "./ComparePicker";
import { captureOpen, helpOpen, paletteOpen } from "./dialogs";
import { SessionPicker } from "./SessionPicker";
import { StepBrush } from "./StepBrush";

export function TopBar() {
  return (
    <header class="topbar">
      <SessionPicker />
      <HostPicker />
      <StepBrush />
      <ComparePicker />
      <div class="topbar-end row to-end rigid">
        <button
          type="button"
          class="palette-button"
          aria-label="Go to anything"
          onClick={() => (paletteOpen.value = true)}
          {...hint("Go to anything", "pages, sessions, ops, kernels, lines, actions", "Ctrl+K")}
        >
          <Icon name="search" size={16} /> <span class="wide-only">Search</span> <kbd class="wide-only">Ctrl K</kbd>
        </button>
        {config.value?.capture && mayCapture() && (
          <button type="button" class="button accent" aria-label="Capture" onClick={() => (captureOpen.value = true)}>
            <Icon name="capture" size={16} /> <span class="wide-only">Capture</span>
          </button>
        )}
        <IconButton
          icon="link"
          size={20}
          isLarge
          label="Copy the link to this view"
          onClick={copyLink}
          {...hint("Copy the link to this view", "the address holds all that you chose, including the selection")}
        />
        <IconButton
          icon={theme.value === "dark" ? "sun" : "moon"}
          size={20}
          isLarge
          label={theme.value === "dark" ? "Use light colours" : "Use dark colours"}
          onClick={toggleTheme}
          {...hint("Switch between light and dark", "", "t")}
        />
        <IconButton
          icon="help"
          size={20}
          isLarge
          label="Help and keys"
          onClick={() => (helpOpen.value = true)}
          {...hint("Help and keys", "", "?")}
        />
      </div>
    </header>
  );
}

function HostPicker() {
  const hosts = session.value?.hosts ?? [];
  if (hosts.length < 2) return null;
  // The timeline is of one host, or of a step of all.
  const isTimeline = route.value.tool === "timeline";
  const isOne = isTimeline && route.value.params.stack !== "ranks";
  const chosen = host.value ?? (isOne ? shownHost() : null);
  const all = isTimeline ? `All ${hosts.length}, one step` : `All ${placesText(hosts.map(({ name }) => name))}`;
  return (
    <Menu
      label="Choose a host"
      isTelling
      align="left"
      buttonClass="picker"
      button={
        <>
          <Icon name="host" size={16} />
          <span class="picker-main cut strong">{chosen ?? all}</span>
          <Icon name="down" size={14} />
        </>
      }
    >
      {(close) => (
        <ul class="choices">
          {[null, ...hosts].map((each) => (
            <li key={each?.name ?? ""}>
              <button
                type="button"
                class="choice"
                aria-pressed={(each?.name ?? null) === chosen}
                onClick={() => {
                  const stack = each ? null : "ranks";
                  const afresh = { stack, selected: null, stretch: null, begin: null, end: null, region: null };
                  setParams({ host: each?.name ?? null, ...(isTimeline ? afresh : {}) }, "push");
                  close();
                }}
              >
                <span class="strong breaks">{each?.name ?? all}</span>
                <span class="muted minor breaks">
                  {each ? (each.error?.error ?? (each.partial ? "partial" : "")) : "analysed together"}
                </span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </Menu>
  );
}
