/** The list of questions on the left; at the bottom of a narrow screen. */
import { signal } from "@preact/signals";
import { linkTo, route } from "../router";
import { sessions } from "../session";
import { remember, remembered } from "../storage";
import { currentQuestion, questions, toolEntry } from "../tools";
import { hint } from "../ui/hint";
import { Icon } from "../ui/icons";

const stored = remembered("rail");
export const railOpen = signal(typeof stored === "boolean" ? stored : window.innerWidth >= 1600);

export function toggleRail(): void {
  railOpen.value = !railOpen.value;
  remember("rail", railOpen.value);
}

export function Rail() {
  const open = railOpen.value;
  const current = currentQuestion.value;
  return (
    <nav class={`rail ${open ? "open" : ""}`} aria-label="Questions">
      <button
        type="button"
        class="rail-toggle row gap-l muted"
        aria-expanded={open}
        aria-label={open ? "Collapse the list of pages" : "Expand the list of pages"}
        onClick={toggleRail}
      >
        <Icon name="menu" />
        {open && <span class="brand">Stepscope</span>}
      </button>
      <ul>
        {questions.value.map((question) => (
          <li key={question.name}>
            <a
              href={question.href}
              {...(question.name === current?.name ? { "aria-current": "page" as const } : {})}
              {...(question.missing ? { "aria-disabled": true } : {})}
              {...hint(
                question.label,
                question.missing ?? toolEntry(question.views[0]?.tool ?? "")?.summary ?? "",
                question.key ? `g then ${question.key}` : "",
              )}
            >
              <Icon name={question.name} />
              <span>{question.label}</span>
            </a>
          </li>
        ))}
        {(sessions.value?.sessions.length ?? 0) > 1 && (
          <li class="apart">
            <a
              href={linkTo("sessions")}
              {...(route.value.tool === "sessions" ? { "aria-current": "page" as const } : {})}
              {...hint("Sessions", "all sessions side by side")}
            >
              <Icon name="sessions" />
              <span>Sessions</span>
            </a>
          </li>
        )}
      </ul>
    </nav>
  );
}
