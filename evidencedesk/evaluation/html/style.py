"""What stands in the page's head, and its style sheet: light, dark, on paper and on a phone."""

from __future__ import annotations

HEAD = (
    '<meta charset="utf-8">'
    # Nothing is fetched and nothing runs, even if a text slipped through unescaped.
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark">'
)
CSS = """
:root { --page: #f5f6f8; --surface: #ffffff; --ink: #1a1f26; --muted: #545d69; --line: #d3d8df; --good: #17693a;
  --bad: #a8261d; --warn: #7a4a00; --accent: #1d5aa6;
  --risk: #e08a66; --cost: #74a5dd; --bar: #4a7fc1; --track: #e6e9ee; }
@media screen and (prefers-color-scheme: dark) {
  :root { --page: #11141a; --surface: #1a1f27; --ink: #e8ebef; --muted: #a7b0bb; --line: #3a424d; --good: #74d29b;
    --bad: #ff968c; --warn: #f0b762; --accent: #92bcf7;
    --risk: #9c4528; --cost: #2d639f; --bar: #5788c4; --track: #2c333d; }
}
* { box-sizing: border-box; }
html { color-scheme: light dark; -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink); overflow-wrap: anywhere;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans Bengali", "Nirmala UI",
    "Kohinoor Bangla", "Bangla Sangam MN", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 32px 24px 64px; }
h1, h2, h3, h4 { line-height: 1.25; margin: 0; text-wrap: balance; }
h1 { font-size: 1rem; color: var(--muted); font-weight: 600; }
h2 { font-size: 1.5rem; margin: 56px 0 12px; padding-top: 16px; border-top: 1px solid var(--line); }
h3 { font-size: 1.1rem; margin: 24px 0 8px; }
h4 { font-size: 1rem; }
p { margin: 8px 0; max-width: 75ch; }
a { color: var(--accent); }
code { font-family: ui-monospace, "Cascadia Code", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .9em; }
.lead { font-size: clamp(1.6rem, 5vw, 2.4rem); line-height: 1.2; font-weight: 700; margin: 4px 0 16px;
  text-wrap: balance; }
.muted { color: var(--muted); }
.good { color: var(--good); }
.bad { color: var(--bad); }
.verdict { font-size: 1.15rem; font-weight: 700; }
.caveat { border-left: 4px solid var(--warn); padding: 4px 0 4px 12px; }
.caveat strong { color: var(--warn); }
.tiles { list-style: none; margin: 16px 0; padding: 0; display: grid; gap: 12px;
  grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); }
.tiles li { display: flex; flex-direction: column; gap: 2px; font-size: .875em; }
.tiles li, .card { background: var(--surface); border: 1px solid var(--line); border-radius: 8px; padding: 14px; }
.tiles .name { font-weight: 600; min-height: 2.5em; line-height: 1.25; }
.tiles .bar { margin: auto 0 6px; } .tiles .muted { padding-bottom: 6px; }
.tiles .big { font-size: 1.6rem; font-weight: 700; line-height: 1.2; font-variant-numeric: tabular-nums; }
.bar { display: block; position: relative; height: 12px; margin: 6px 0; background: var(--track); border-radius: 2px;
  overflow: hidden; }
.bar i { position: absolute; inset: 0 auto 0 0; width: var(--value); background: var(--bar); }
.bar b { position: absolute; top: 5px; height: 2px; left: var(--low); width: var(--width); background: var(--ink); }
dl { margin: 16px 0; display: grid; gap: 8px 24px;
  grid-template-columns: repeat(auto-fit, minmax(min(300px, 100%), 1fr)); }
dt { color: var(--muted); font-size: .875em; }
dd { margin: 0; }
nav { display: flex; flex-wrap: wrap; gap: 4px 20px; margin-top: 20px; }
nav a { padding: 4px 0; }
.grid { display: grid; gap: 16px; margin: 16px 0; }
.plain { list-style: none; padding: 0; margin: 8px 0; }
.three { grid-template-columns: repeat(auto-fit, minmax(min(320px, 100%), 1fr)); }
.two { grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); }
figure { margin: 0; display: flex; flex-direction: column; }
.card + .card { margin-top: 16px; } .grid > .card { margin-top: 0; }
figcaption strong { display: block; }
figcaption span { color: var(--muted); font-size: .875em; }
svg { display: block; width: 100%; max-width: 520px; height: auto; margin: auto auto 0; padding-top: 12px;
  font-family: inherit; }
svg * { stroke-linejoin: round; stroke-linecap: butt; }
table { border-collapse: collapse; width: 100%; font-size: .875em; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: 6px; }
th, td { text-align: left; vertical-align: top; padding: 5px 12px 5px 0; font-weight: 400; }
thead th { color: var(--muted); }
.scroll { overflow-x: auto; margin: 8px 0; }
.scroll th, .scroll td { border-top: 1px solid var(--line); white-space: nowrap; overflow-wrap: normal; }
.scroll thead th { border-top: 0; }
.recall table { table-layout: fixed; }
.recall caption { font-size: 1.15em; }
.recall th, .recall td { padding: 1px 8px 1px 0; vertical-align: middle; }
.recall thead th:nth-child(1) { width: 5.2em; } .recall thead th:nth-child(3) { width: 5.4em; }
.recall thead th:nth-child(4) { width: 6em; }
.recall tbody th[scope=rowgroup] { padding-top: 10px; font-weight: 600; }
.recall tbody th[scope=row] { color: var(--muted); }
.number { white-space: nowrap; }
details { margin: 8px 0; }
summary { cursor: pointer; padding: 4px 0; }
summary:focus-visible, a:focus-visible, .scroll:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.case { background: var(--surface); border: 1px solid var(--line); border-radius: 8px; padding: 8px 14px; }
.question { font-weight: 600; }
.badge { display: inline-block; border: 1px solid currentColor; border-radius: 4px; padding: 0 6px; font-size: .8rem;
  font-weight: 600; white-space: nowrap; line-height: 1.4; }
.hits { padding-left: 1.4em; margin: 8px 0; }
.hits li { margin: 6px 0; }
.hits .muted { font-size: .875em; }
.diff { list-style: none; margin: 8px 0 0; padding: 0; }
.diff li { padding: 2px 0 2px 1.4em; position: relative; }
.diff li::before { position: absolute; left: 0; font-weight: 700; }
.diff li:has(del)::before { content: "−" / "removed: "; color: var(--bad); }
.diff li:has(ins)::before { content: "+" / "added: "; color: var(--good); }
del { color: var(--bad); } ins { color: var(--good); text-decoration: none; }
footer { margin-top: 48px; color: var(--muted); font-size: .875em; }
@media screen and (max-width: 480px) {
  main { padding: 20px 16px 40px; }
  figure.card { padding: 12px 8px; } figcaption, figure details { padding: 0 4px; }
  .tiles { grid-template-columns: 1fr 1fr; }
  .tiles li:first-child { grid-column: 1 / -1; } .tiles .name { min-height: 0; }
}
@media print {
  @page { margin: 14mm; }
  html { color-scheme: light; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  :root { --page: #ffffff; }
  body { font-size: 10pt; }
  .lead { font-size: 20pt; }
  main { max-width: none; padding: 0 1px; }
  nav { display: none; }
  h2 { margin-top: 24px; padding-top: 12px; }
  h2, h3, h4, figcaption, summary { break-after: avoid; }
  .card, .case, .tiles li, dl > div, tr { break-inside: avoid; }
  .tiles { grid-template-columns: repeat(5, 1fr); gap: 8px; } .tiles li { padding: 8px; font-size: 8.5pt; }
  dl { grid-template-columns: repeat(3, 1fr); margin: 8px 0; }
  .two { grid-template-columns: repeat(2, 1fr); }
  .three { grid-template-columns: repeat(3, 1fr); gap: 8px; } .recall { padding: 8px; }
  .recall table { font-size: 7.5pt; } .recall th, .recall td { padding-right: 4px; }
  .scroll { overflow: visible; } .scroll td, .scroll th { white-space: normal; }
}
"""
