/** The console for SQL, fetched when it is first wanted. */
import { lazy, Suspense } from "preact/compat";
import { Loading } from "../ui/basics";

const SqlInPlace = lazy(() => import("../pages/sql/SqlPage").then((page) => ({ default: page.SqlInPlace })));

export function SqlTab() {
  return (
    <Suspense fallback={<Loading what="Loading the console" />}>
      <SqlInPlace />
    </Suspense>
  );
}
