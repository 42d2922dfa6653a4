"""The style of a sheet: light and dark as the reader's system, and black on white on paper."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2128; --faint: #59636e; --page: #fff; --card: #f4f6f8; --edge: #d5dae0;
  --warn: #fff4d6; --good: #1a7f37 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --faint: #9aa4af; --page: #12161b; --card: #1c2229;
  --edge: #343c45; --warn: #3a2f12; --good: #57c46f } }
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--ink); font: 14px/1.5 system-ui, sans-serif }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 3rem }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere }
h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; padding-bottom: .25rem; border-bottom: 1px solid var(--edge) }
h3 { font-size: 1rem; margin: 0 0 .3rem }
h3 em { font-style: normal; font-weight: 600; color: var(--good); margin-left: .6em }
p { margin: .3rem 0; overflow-wrap: anywhere }
.faint, figcaption, footer, .cards span { color: var(--faint) }
.verdict { font-size: 1.15rem; font-weight: 600; margin: .8rem 0 }
.warning { background: var(--warn); border-radius: 6px; padding: .5rem .8rem }
.cards { display: flex; flex-wrap: wrap; gap: .6rem; margin: .8rem 0 }
.cards div { background: var(--card); border-radius: 6px; padding: .45rem .8rem }
.cards b, .cards span { display: block; font-variant-numeric: tabular-nums }
.cards span { font-size: .8rem }
article { background: var(--card); border-radius: 6px; padding: .8rem 1rem; margin: .8rem 0 }
figure { margin: .6rem 0; overflow-x: auto }
figcaption { font-size: .8rem; overflow-wrap: anywhere }
svg { display: block }
ul { margin: .3rem 0; padding-left: 1.3rem }
li { overflow-wrap: anywhere }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100% }
th, td { padding: 2px 12px 2px 0; vertical-align: top; text-align: left }
th { color: var(--faint); font-weight: 600 }
tr + tr { border-top: 1px solid var(--edge) }
td { overflow-wrap: anywhere }
footer { margin-top: 2.5rem; font-size: .8rem }
@page { margin: 14mm }
@media print {
  :root { --ink: #000; --faint: #444; --page: #fff; --card: #fff; --edge: #bbb; --warn: #fff; --good: #000 }
  :root { font-size: 12px }
  body { font-size: 10.5px; print-color-adjust: exact; -webkit-print-color-adjust: exact }
  main { max-width: none; padding: 0 }
  article, .cards div, .warning { border: 1px solid var(--edge) }
  section, article, figure, tr, li { break-inside: avoid }
  section:has(article), section:has(table) { break-inside: auto }
  h1, h2, h3 { break-after: avoid }
}
"""
