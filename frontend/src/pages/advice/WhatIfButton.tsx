/** Opens the dialog that predicts the step after a change; nothing where the steps cannot be replayed. */
import { lazy, Suspense } from "preact/compat";
import { useState } from "preact/hooks";
import { fact } from "../../session";

const WhatIf = lazy(() => import("./WhatIf"));

export function WhatIfButton() {
  const [isOpen, setIsOpen] = useState(false);
  if (!fact("is_predictable")) return null;
  return (
    <>
      <button type="button" class="button" onClick={() => setIsOpen(true)}>
        What if…
      </button>
      {isOpen && (
        <Suspense fallback={null}>
          <WhatIf onClose={() => setIsOpen(false)} />
        </Suspense>
      )}
    </>
  );
}
