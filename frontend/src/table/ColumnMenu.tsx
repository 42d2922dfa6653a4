/** Which columns a table shows. */
import type { Field } from "../api";
import { unitLabel } from "../format";
import { Icon } from "../ui/icons";
import { Menu } from "../ui/menu";
import type { TableData } from "./model";

interface ColumnMenuProps {
  data: TableData;
  shown: readonly Field[];
  /** How many of the usual columns there is no room for. */
  left: number;
  onChange: (names: readonly string[] | null) => void;
}

export function ColumnMenu({ data, shown, left, onChange }: ColumnMenuProps) {
  const names = new Set(shown.map((field) => field.name));
  const toggle = (name: string) => {
    const left = shown.map((field) => field.name).filter((other) => other !== name);
    if (names.has(name)) onChange(left.length ? left : null);
    else onChange([...left, name]);
  };
  return (
    <Menu
      label="Choose columns"
      isTelling
      button={
        <>
          <Icon name="columns" size={16} /> {left ? `Columns (${left} more)` : "Columns"}
        </>
      }
    >
      {() => (
        <div class="column-menu">
          {data.fields.map((field) => (
            <label key={field.name} data-hint={field.doc} data-hint-title={field.name}>
              <input type="checkbox" checked={names.has(field.name)} onChange={() => toggle(field.name)} />
              <span>{field.label}</span>
              <span class="muted">{unitLabel(field.unit)}</span>
            </label>
          ))}
          <button type="button" class="button quiet" onClick={() => onChange(null)}>
            Show the default columns
          </button>
        </div>
      )}
    </Menu>
  );
}
