import { render } from "preact";
import { lazy, Suspense } from "preact/compat";

const Timeline = lazy(() => import("./timeline"));

render(
  <Suspense fallback={<p>Loading</p>}>
    <Timeline session="" host={null} />
  </Suspense>,
  document.getElementById("app")!,
);
