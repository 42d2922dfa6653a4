/** A menu of files to have: each entry is a link that the browser saves. */
import { Icon } from "./icons";
import { Menu } from "./menu";

export interface FileLink {
  readonly label: string;
  readonly href: string;
  /** What the file is called; empty for the server's own name. */
  readonly name?: string;
}

export function FileMenu({ label, text, files }: { label: string; text: string; files: readonly FileLink[] }) {
  const button = (
    <>
      <Icon name="csv" size={16} /> {text}
    </>
  );
  return (
    <Menu label={label} button={button}>
      {(close) => (
        <ul class="choices">
          {files.map((file) => (
            <li key={file.href}>
              <a class="choice" download={file.name ?? ""} href={file.href} onClick={close}>
                <span class="strong breaks">{file.label}</span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </Menu>
  );
}
