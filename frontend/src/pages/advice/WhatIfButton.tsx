/** Opens the dialog that predicts the step after a change; nothing where there are no steps to replay. */
import { lazy, Suspense } from "preact/compat";
import { useState } from "preact/hooks";
import { fact } from "../../session";

const WhatIf = lazy(() => import("./WhatIf"));

export function WhatIfButton() {
  const [isOpen, setIsOpen] = useState(false);
  if (fact("steps_source") === "none") return null;
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
