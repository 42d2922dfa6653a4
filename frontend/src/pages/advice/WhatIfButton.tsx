/** Opens the dialog that predicts the step after a change. */
import { lazy, Suspense } from "preact/compat";
import { useState } from "preact/hooks";

const WhatIf = lazy(() => import("./WhatIf"));

export function WhatIfButton() {
  const [isOpen, setIsOpen] = useState(false);
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
