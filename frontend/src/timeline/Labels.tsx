/** The names of the tracks, on the left: each folds, is pinned to the top, or is hidden. */
import { narrow } from "../table/narrow";
import { Icon } from "../ui/icons";
import { type Item, isProjected, isScoped } from "./layout";
import type { Model } from "./model";
import type { TrackInfo } from "./wire";

export function Labels({ model }: { model: Model }) {
  const { items } = model.layout.value;
  return (
    <div class="tl-labels">
      {items.map((item) => (
        <Label key={item.id} item={item} model={model} />
      ))}
    </div>
  );
}

export function Label({ item, model }: { item: Item; model: Model }) {
  const name = item.track?.name ?? item.group?.name ?? "";
  const detail = item.track?.detail || (item.group ? groupDetail(item) : "");
  const canCollapse = item.group ? !item.pinned : (item.track?.rows ?? 0) > 1;
  const title = [
    name,
    detail,
    item.track && item.track.line >= 0
      ? `${item.track.events.toLocaleString("en-US")} events in ${item.track.rows} rows`
      : "",
    item.track?.kind === "steps" ? (model.steps.value?.clocks ?? "") : "",
    item.track ? aboutProjected(item.track) : "",
    emptyOnes(item),
  ]
    .filter(Boolean)
    .join("\n");
  return (
    <div
      class={`tl-label flex gap-s ${item.group ? "tl-group" : ""}`}
      style={{ top: item.top, height: item.height, "--depth": item.depth } as Record<string, string | number>}
      title={title}
    >
      <button
        type="button"
        class="tl-fold rigid muted"
        disabled={!canCollapse}
        aria-expanded={canCollapse ? !item.collapsed : undefined}
        aria-label={`${item.collapsed ? "Open" : "Collapse"} ${name}`}
        onClick={() => model.toggle("collapsed", item.id)}
      >
        {canCollapse && <Icon name={item.collapsed ? "right" : "down"} size={13} />}
      </button>
      <span class="cut fills">
        {narrow.value ? lastPart(name) : name}
        {detail && <span class="tl-detail"> {detail}</span>}
      </span>
      {item.track?.main && <span class="tl-badge rigid strong">main</span>}
      <span class="tl-acts">
        <button
          type="button"
          aria-pressed={model.choices.value.pinned.includes(item.id)}
          aria-label={`Pin ${name}`}
          title="Pin to the top"
          onClick={() => model.togglePin(item.id)}
        >
          <svg width="13" height="13" viewBox="0 0 20 20" class="icon" aria-hidden="true">
            <path d="M7 3h6l-1 6 3 3H5l3-3zM10 12v5" />
          </svg>
        </button>
        {!item.pinned && (
          <button
            type="button"
            aria-label={`Hide ${name}`}
            title="Hide"
            onClick={() => model.toggle("hidden", item.id)}
          >
            <Icon name="close" size={12} />
          </button>
        )}
      </span>
    </div>
  );
}

/** `Memory in use: GPU_0` as `GPU_0`, and with a number alone as `Memory 0`: what tells rows apart. */
function lastPart(name: string): string {
  const part = /: (.+)$/.exec(name)?.[1] ?? name;
  return part.length > 2 ? part : `${name.split(" ")[0]} ${part}`;
}

function aboutProjected(track: TrackInfo): string {
  if (isScoped(track)) return "Named scopes of the compiled program, by the op that each kernel belongs to";
  return isProjected(track) ? "From the first to the last piece of work launched in each range" : "";
}

function groupDetail(item: Item): string {
  const group = item.group;
  if (!group || group.kind === "counters") return "";
  if (group.kind === "pool") return group.detail;
  return group.kind === "host" ? (group.lanes === 1 ? "1 thread" : `${group.lanes} threads`) : "";
}

function emptyOnes(item: Item): string {
  const empty = item.group?.empty ?? [];
  return empty.length ? `without events: ${empty.join(", ")}` : "";
}
