/** Opens another session on the page that is shown. */
import { go, route, withParams } from "../router";

export function openSessionNamed(id: string): void {
  const { tool, params } = route.value;
  go(withParams({ tool, params: params.by ? { by: params.by } : {} }, { session: id }));
}
