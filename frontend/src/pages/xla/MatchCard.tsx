/** How the work of devices was matched to the instructions of programs. */
import type { Figures } from "../../api";
import { Card, FigureRow } from "../../ui/basics";

export function MatchCard({ section }: { section: Figures }) {
  return (
    <Card title="How device work is matched to instructions">
      <FigureRow section={section} />
    </Card>
  );
}
