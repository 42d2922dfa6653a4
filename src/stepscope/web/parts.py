"""The built page's parts as one text, for what has no server: a report in one file, a frame in a notebook."""

from __future__ import annotations

import base64
import gzip
import json
import re
from functools import cache
from pathlib import Path

from stepscope.web.static import FOLDER

# Unpacks the parts, gives each the name by which the others import it, and starts the first.
START = """
const packed = Uint8Array.from(atob(document.getElementById("parts").textContent), (each) => each.charCodeAt(0));
const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
new Response(unpacked).json().then(({ parts, style, entry }) => {
  const url = (text) => URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const imports = Object.fromEntries(Object.entries(parts).map(([name, text]) => [name, url(text)]));
  const add = (kind, type, text) =>
    document.head.append(Object.assign(document.createElement(kind), { ...type, textContent: text }));
  add("style", {}, style);
  add("script", { type: "importmap" }, JSON.stringify({ imports }));
  return import(entry);
});
"""


def part_scripts(entry: str) -> str:
    """The parts that an entry of the page needs (`report`, `widget`) and what starts them, as two elements of HTML.

    Empty if the page was not built.
    """
    parts = pack_parts(entry)
    if not parts:
        return ""
    return f'<script type="text/plain" id="parts">{parts}</script>\n<script>{START}</script>\n'


@cache
def pack_parts(entry: str) -> str:
    """The parts as gzip in base 64; empty if the page was not built.

    A part imports another by its path; where none has a path, by its name.
    """
    folder = FOLDER / "assets"
    first = next(iter(sorted(folder.glob(f"{entry}-*.js"))), None)
    if first is None:
        return ""
    known = {path.name: path for path in folder.glob("*.js")}
    parts: dict[str, str] = {}
    wanted = [first.name]
    while wanted:
        name = wanted.pop()
        text = known[name].read_text("utf-8")
        found = set(re.findall(r"(?:from|import)\s*[\"'`]\./([\w.-]+\.js)", text))
        for each in found:
            text = text.replace(f"./{each}", each)
        parts[name] = text
        wanted += found - parts.keys() - {*wanted}
    shown = (FOLDER / "index.html").read_text("utf-8")
    styles = [(FOLDER / name).read_text("utf-8") for name in re.findall(r'href="\./(assets/[\w.-]+\.css)"', shown)]
    style = "".join(styles)
    if entry == "report":  # which is to look like the page; there is no address to fetch a typeface from
        style = re.sub(r"url\((?:\./)?([\w.-]+\.woff2)\)", lambda at: f"url({_data_address(folder / at[1])})", style)
    else:
        style = re.sub(r"@font-face\s*\{[^}]*\}", "", style)
    licenses = (FOLDER / "licenses.txt").read_text("utf-8")
    whole = json.dumps({"entry": first.name, "parts": parts, "style": style, "licenses": licenses})
    return base64.b64encode(gzip.compress(whole.encode(), 9, mtime=0)).decode()


def _data_address(font: Path) -> str:
    return f"data:font/woff2;base64,{base64.b64encode(font.read_bytes()).decode()}"
