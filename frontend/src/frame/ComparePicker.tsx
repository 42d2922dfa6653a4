/** Chooses what the open session is compared with: another session or other steps. */

import { useState } from "preact/hooks";
import { setParams } from "../router";
import { nameOf, other, otherId, otherSteps, sessionId, sessions, shortRun } from "../session";
import { LongName } from "../ui/basics";
import { IconButton } from "../ui/controls";
import { hint } from "../ui/hint";
import { Icon } from "../ui/icons";
import { Menu } from "../ui/menu";
import { SessionList } from "./SessionPicker";
import { parseSteps } from "./StepBrush";

export function otherName(): string {
  const id = otherId.value;
  const info = sessions.value?.sessions.find((each) => each.id === id);
  const named = info ? nameOf(info) : shortRun(other.value?.state?.run ?? id ?? "");
  const run = id === sessionId.value ? "this session" : named;
  return otherSteps.value ? `${run}, steps ${otherSteps.value}` : run;
}

export function stopComparing(): void {
  setParams({ with: null, withSteps: null }, "push");
}

export function ComparePicker() {
  if (!sessionId.value) return null;
  const chosen = otherId.value;
  return (
    <div class="compare-picker row shrinks">
      <Menu
        label={chosen ? `vs ${otherName()}: compared` : "Compare with"}
        align="left"
        buttonClass="picker"
        button={
          <>
            <Icon name="compare" size={16} />
            {chosen ? (
              <span class="picker-main cut strong">
                <LongName text={`vs ${otherName()}`} />
              </span>
            ) : (
              <span class="wide-only">Compare</span>
            )}
            <Icon name="down" size={14} />
          </>
        }
      >
        {(close) => <Choices close={close} />}
      </Menu>
      {chosen && (
        <IconButton icon="close" label="Stop comparing" onClick={stopComparing} {...hint("Stop comparing", "")} />
      )}
    </div>
  );
}

function Choices({ close }: { close: () => void }) {
  const [steps, setSteps] = useState(otherSteps.value ?? "");
  const wrong = steps !== "" && parseSteps(steps) === null;
  const choose = (id: string) => {
    if (wrong) return;
    setParams({ with: id, withSteps: steps || null }, "push");
    close();
  };
  return (
    <div class="compare-choices">
      <label class="compare-steps row gap-m">
        <span>Steps to compare with</span>
        <input
          type="text"
          inputMode="numeric"
          size={9}
          placeholder="all, or 3-9"
          value={steps}
          aria-invalid={wrong}
          onInput={(event) => setSteps(event.currentTarget.value.trim())}
        />
        {wrong && <span class="form-error">a step, or first-last</span>}
      </label>
      <SessionList chosen={otherId.value} onPick={choose} />
    </div>
  );
}
