/** What a class of advice means, how it is found and how reliable it is. */
import { termText } from "../../terms";
import { Drawer } from "../../ui/dialog";
import { paragraphs, pieces, rulesOf } from "./adviceDocs";

export default function AdviceDocs({ kind, onClose }: { kind: string; onClose: () => void }) {
  const meaning = paragraphs(kind);
  const rules = rulesOf(kind);
  return (
    <Drawer title={termText(kind)} onClose={onClose}>
      <div class="docs">
        {meaning.length ? (
          <Text of={meaning} />
        ) : (
          <p class="muted">
            The documentation of this version has no section on this class: a rule of another package gave the advice.
          </p>
        )}
        {rules.length > 0 && (
          <>
            <h3>When it is reported</h3>
            <ul class="docs-rules list gap-m">
              {rules.map((row) => (
                <li key={row.rule}>
                  From {row.from.includes(" of ") ? row.from : `${row.from} of the step`}: <Inline text={row.of} />
                </li>
              ))}
            </ul>
          </>
        )}
        <h3>How sure it is</h3>
        <Text of={paragraphs("Confidence")} />
        <h3>How the gain is predicted</h3>
        <Text of={paragraphs("How a gain is predicted").slice(0, 1)} />
      </div>
    </Drawer>
  );
}

function Text({ of }: { of: readonly string[] }) {
  return (
    <>
      {of.map((paragraph) => (
        <p key={paragraph}>
          <Inline text={paragraph} />
        </p>
      ))}
    </>
  );
}

function Inline({ text }: { text: string }) {
  return (
    <>
      {pieces(text).map((piece, index) => {
        if (piece.as === "text") return piece.text;
        return piece.as === "code" ? <code key={index}>{piece.text}</code> : <strong key={index}>{piece.text}</strong>;
      })}
    </>
  );
}
