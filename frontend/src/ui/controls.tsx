/** What a reader changes something with: buttons with a picture, a choice of several, a box for a search. */
import type { ButtonHTMLAttributes, ComponentChildren, Ref } from "preact";
import type { HintAttributes } from "./hint";
import { Icon } from "./icons";

interface IconButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "label" | "size" | "icon"> {
  icon: string;
  /** What it does, for who cannot see the picture. */
  label: string;
  size?: number;
  /** As high as the buttons with words beside it. */
  isLarge?: boolean;
}

export function IconButton({ icon, label, size = 14, isLarge = false, class: name = "", ...rest }: IconButtonProps) {
  return (
    <button type="button" class={`icon-button ${isLarge ? "" : "small"} ${name}`} aria-label={label} {...rest}>
      <Icon name={icon} size={size} />
    </button>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  /** Each with its text, if that is another. */
  options: readonly (string | readonly [value: string, text: string])[];
  onChange: (value: string) => void;
}

/** One of many. */
export function Choice({ label, value, options, onChange }: ChoiceProps) {
  return (
    <label class="select">
      <span class="muted">{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map((each) => {
          const [key, text] = typeof each === "string" ? [each, each] : each;
          return (
            <option key={key} value={key}>
              {text}
            </option>
          );
        })}
      </select>
    </label>
  );
}

interface SearchBoxProps {
  label: string;
  /** What is in the empty box; the label if not given. */
  placeholder?: string;
  value: string;
  box?: Ref<HTMLInputElement>;
  isWrong?: boolean;
  explained?: HintAttributes;
  onChange: (text: string) => void;
  onKeyDown?: (event: KeyboardEvent & { readonly currentTarget: HTMLInputElement }) => void;
  /** Behind the box. */
  children?: ComponentChildren;
}

export function SearchBox(props: SearchBoxProps) {
  const { label, placeholder = label, value, box, isWrong = false, explained = {}, children } = props;
  return (
    <div class={`filter ${isWrong ? "wrong" : ""}`}>
      <Icon name="search" size={16} />
      <input
        type="search"
        aria-label={label}
        aria-invalid={isWrong}
        placeholder={placeholder}
        value={value}
        {...(box ? { ref: box } : {})}
        onInput={(event) => props.onChange(event.currentTarget.value)}
        onKeyDown={(event) => props.onKeyDown?.(event)}
        {...explained}
      />
      {children}
    </div>
  );
}

export interface LegendEntry {
  readonly key: string;
  readonly label: string;
  readonly colour: string;
}

/** What colours mean, where that needs no more words; `of` is whose time they divide. */
export function Legend({ entries, of }: { entries: readonly LegendEntry[]; of?: string | undefined }) {
  return (
    <ul class="legend inline">
      {of && <li class="muted">{of}</li>}
      {entries.map(({ key, label, colour }) => (
        <li key={key}>
          <span class="swatch" style={{ background: colour }} />
          {label}
        </li>
      ))}
    </ul>
  );
}
