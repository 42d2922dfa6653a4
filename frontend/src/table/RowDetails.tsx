/** All that a table knows of one row, with the meaning of each value, and where to go from there. */
import { cellText, exact, unitLabel, visible } from "../format";
import { termsOf } from "../terms";
import { Code } from "../ui/basics";
import { Drawer } from "../ui/dialog";
import { Icon } from "../ui/icons";
import { copyText } from "./export";
import { nameColumn, type TableData } from "./model";

export interface RowLink {
  readonly label: string;
  readonly href: string;
}

interface RowDetailsProps {
  title: string;
  data: TableData;
  row: number;
  links: readonly RowLink[];
  onClose: () => void;
}

export function RowDetails({ title, data, row, links, onClose }: RowDetailsProps) {
  const named = data.fields[nameColumn(data.fields)];
  const name = named ? String(data.columns[named.name]?.[row] ?? "") : "";
  return (
    <Drawer title={title} onClose={onClose}>
      {name && <p class="details-name strong breaks below-l">{visible(name)}</p>}
      {name && (
        <div class="details-links flex wrap gap-m below-l">
          {links.map((link) => (
            <a key={link.href} class="button" href={link.href} onClick={onClose}>
              {link.label} <Icon name="arrow" size={16} />
            </a>
          ))}
          <button type="button" class="button quiet" onClick={() => void copyText(name)}>
            <Icon name="copy" size={16} /> Copy the name
          </button>
        </div>
      )}
      <dl class="details">
        {data.fields
          .filter((field) => field !== named)
          .map((field) => {
            const value = data.columns[field.name]?.[row] ?? null;
            const unit = unitLabel(field.unit);
            return (
              <div key={field.name}>
                <dt>{field.label}</dt>
                <dd data-hint-value={exact(value, field.unit)}>
                  {typeof value === "string"
                    ? (termsOf(field)?.(value) ?? visible(value))
                    : cellText(value, field.unit)}{" "}
                  {field.unit !== "percent" && typeof value === "number" && unit}
                </dd>
                <dd class="details-doc muted minor">
                  <Code text={field.doc} />
                </dd>
              </div>
            );
          })}
      </dl>
    </Drawer>
  );
}
