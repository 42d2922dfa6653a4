/** The list of tools on the left. */
import { signal } from "@preact/signals";
import { linkTo, route } from "../router";
import { remember, remembered } from "../storage";
import { type ToolEntry, tools } from "../tools";
import { hint } from "../ui/hint";
import { Icon } from "../ui/icons";

const stored = remembered("rail");
export const railOpen = signal(typeof stored === "boolean" ? stored : window.innerWidth >= 1600);

export function toggleRail(): void {
  railOpen.value = !railOpen.value;
  remember("rail", railOpen.value);
}

/** What a page was made for stays in its place; other tools are listed where the capture has something for them. */
function isListed(tool: ToolEntry): boolean {
  return tool.hasPage || !tool.missing || route.value.tool === tool.name;
}

export function Rail() {
  const open = railOpen.value;
  return (
    <nav class={`rail ${open ? "open" : ""}`} aria-label="Tools">
      <button
        type="button"
        class="rail-toggle"
        aria-expanded={open}
        aria-label={open ? "Collapse the list of tools" : "Expand the list of tools"}
        onClick={toggleRail}
      >
        <Icon name="menu" />
        {open && <span class="brand">Stepscope</span>}
      </button>
      <ul>
        {tools.value.filter(isListed).map((tool) => (
          <li key={tool.name}>
            <a
              href={linkTo(tool.name)}
              class={tool.missing ? "dimmed" : ""}
              {...(route.value.tool === tool.name ? { "aria-current": "page" as const } : {})}
              {...hint(tool.title, tool.missing ?? tool.summary, tool.key ? `g then ${tool.key}` : "")}
            >
              <Icon name={tool.name} />
              <span>{open ? tool.heading : tool.label}</span>
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}
