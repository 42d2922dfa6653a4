import { render } from "preact";
import "./design/page.css";
import { App } from "./frame/App";
import { start } from "./session";

void start();
render(<App />, document.getElementById("app") as HTMLElement);
