/**
 * The page of `stepscope report`: the Summary in one file, without a server.
 *
 * The file has the data and, for readers without scripts, the verdict, the advice and the pictures as plain HTML.  This
 * takes the pictures out of that and puts the Summary in its place.
 */
import { render } from "preact";
import "./design/page.css";
import type { Config, SessionState, TableSection, ToolAnswer } from "./api";
import { setCategoryRules } from "./design/colours";
import { frameworkName } from "./frame/SessionPicker";
import { shortKernel } from "./names";
import { Picture, type Pictures } from "./pages/shared/pictures";
import type { OverviewReport } from "./pages/shared/reports";
import { TableCard, ToolOfPage } from "./pages/shared/sections";
import { Summary } from "./pages/summary/SummaryPage";
import { makeLinksText } from "./plainLinks";
import { session } from "./session";
import { Card, Warnings } from "./ui/basics";
import { HintLayer } from "./ui/hint";

interface Sent {
  readonly run: string;
  readonly facts: string;
  readonly made: readonly string[];
  readonly hosts: readonly { readonly name: string; readonly file: string }[];
  readonly category_rules: Config["category_rules"];
  readonly overview: ToolAnswer<"overview", OverviewReport>;
  readonly tables: readonly { readonly tool: string; readonly heading: string; readonly section: TableSection }[];
}

function Report({ sent, pictures }: { sent: Sent; pictures: Pictures }) {
  const others = [...pictures].filter(([, { advice }]) => !advice);
  return (
    <main id="main" class="page sheet">
      <header class="sheet-head">
        <strong>{sent.run}</strong> <span class="muted">{sent.facts.replace(/^[a-z]+/, frameworkName)}</span>
      </header>
      <ToolOfPage.Provider value="overview">
        <Summary {...sent.overview} pictures={pictures}>
          {sent.tables.map(({ tool, heading, section }) => (
            <TableCard
              key={section.id}
              section={section}
              tool={tool}
              heading={heading}
              texts={TEXTS}
              plain
              height="all"
              links={none}
            />
          ))}
          {others.map(([title, picture]) => (
            <Card key={title} title={title} class="sheet-picture">
              <Picture of={picture} />
            </Card>
          ))}
        </Summary>
      </ToolOfPage.Provider>
      <Warnings items={sent.overview.report.warnings} />
      <footer class="muted">
        {sent.made.map((line) => (
          <p key={line}>{line}</p>
        ))}
      </footer>
      <HintLayer />
    </main>
  );
}

const TEXTS = { kernel: shortKernel };
const none = () => [];

function picturesOf(box: HTMLElement): Pictures {
  const found = [...box.querySelectorAll<HTMLElement>("figure[data-picture]")];
  return new Map(
    found.map((figure) => [
      figure.dataset.picture ?? "",
      {
        svg: figure.querySelector("svg")?.outerHTML ?? "",
        caption: figure.querySelector("figcaption")?.textContent ?? "",
        advice: figure.dataset.of === "advice",
      },
    ]),
  );
}

const box = document.getElementById("app") as HTMLElement;
const sent = JSON.parse(document.getElementById("report")?.textContent ?? "") as Sent;
const pictures = picturesOf(box);
makeLinksText();
setCategoryRules(sent.category_rules);
session.value = { id: "", state: "ready", hosts: sent.hosts, tools: [] } as unknown as SessionState;
box.replaceChildren();
render(<Report sent={sent} pictures={pictures} />, box);
