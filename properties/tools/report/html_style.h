// SPDX-License-Identifier: Apache-2.0
// Looks and filter of the page of html.h.
#pragma once

namespace assay::report {

inline constexpr const char *kStyle = R"css(
:root { color-scheme: light dark; --bg: #fff; --panel: #f6f7f9; --line: #d9dde3; --text: #1b1f24; --soft: #5b6470;
  --good: #14682c; --bad: #b3261e; --warn: #8a5a00; --good-bg: #dcf3e2; --bad-bg: #fbe3e1; --warn-bg: #fbeecd;
  --link: #0a58ca; }
@media (prefers-color-scheme: dark) {
  :root { --bg: #14171b; --panel: #1c2026; --line: #343a43; --text: #e6e9ed; --soft: #9aa4b1; --good: #5fd07e;
    --bad: #ff8a80; --warn: #e9b949; --good-bg: #17351f; --bad-bg: #44201d; --warn-bg: #3a2e10; --link: #7db4ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 75rem; background: var(--bg); color: var(--text);
  font: 16px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; overflow-wrap: anywhere; }
code, pre { font: .86em/1.45 ui-monospace, "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  unicode-bidi: plaintext; }
pre { margin: .5rem 0 0; padding: .6rem .75rem; overflow-x: auto; background: var(--bg);
  border: 1px solid var(--line); border-radius: .4rem; overflow-wrap: normal; }
pre.command { white-space: pre-wrap; overflow-wrap: anywhere; }
a { color: var(--link); }
h2 { margin: 2rem 0 .6rem; font-size: 1.2rem; }
.verdict { padding: 1rem 1.2rem; border-radius: .6rem; border: 1px solid; }
.verdict h1 { margin: 0; font-size: 1.7rem; letter-spacing: .02em; }
.verdict p { margin: .2rem 0 0; color: var(--text); }
.pass { background: var(--good-bg); border-color: var(--good); } .pass h1 { color: var(--good); }
.fail { background: var(--bad-bg); border-color: var(--bad); } .fail h1 { color: var(--bad); }
.incomplete { background: var(--warn-bg); border-color: var(--warn); } .incomplete h1 { color: var(--warn); }
.filter { display: flex; flex-wrap: wrap; gap: .5rem; margin: 1rem 0 0; align-items: center; }
.filter input, .filter select { font: inherit; padding: .35rem .5rem; color: inherit; background: var(--bg);
  border: 1px solid var(--line); border-radius: .4rem; min-width: 0; max-width: 100%; }
.filter input { flex: 1 1 16rem; } ::placeholder { color: var(--soft); opacity: 1; } .soft, .filter output { color: var(--soft); }
.card { margin: 0 0 .8rem; padding: .8rem 1rem; background: var(--panel); border: 1px solid var(--line);
  border-left: .3rem solid var(--bad); border-radius: .5rem; }
.card h3 { margin: 0; font-size: 1rem; } .card p { margin: .35rem 0 0; } .gap { border-left-color: var(--warn); }
.chips { display: flex; flex-wrap: wrap; gap: .3rem; margin-top: .45rem; align-items: baseline; }
.chip { padding: 0 .45rem; border: 1px solid var(--line); border-radius: 1rem; font-size: .82rem; background: var(--bg); }
details { margin-top: .5rem; } summary { cursor: pointer; color: var(--soft); }
.block > summary { color: var(--text); } .block > .scroll { margin-top: .4rem; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: .5rem; background: var(--panel);
  max-width: 100%; width: fit-content; }
table { border-collapse: collapse; font-size: .88rem; overflow-wrap: normal; }
th, td { padding: .3rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
tr:last-child > * { border-bottom: 0; } th:first-child, td:first-child { text-align: left; }
thead th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
.bar { display: inline-block; width: 4rem; height: .5rem; margin-left: .4rem; border-radius: .25rem;
  background: var(--line); overflow: hidden; }
.bar i { display: block; height: 100%; background: var(--good); } .bar i.over { background: var(--bad); }
.over { color: var(--bad); font-weight: 600; }
.cover th, .cover td { padding: 0; } .cover tbody th, .cover td.sum { padding: .1rem .6rem; font-weight: 400; }
.cover tbody th, .cover thead th:first-child { position: sticky; left: 0; background: var(--panel); }
.cover thead span { display: inline-block; writing-mode: vertical-rl; transform: rotate(180deg); padding: .4rem 0;
  font-weight: 400; font-size: .8rem; }
.cover thead th { text-align: center; } .cover thead th:first-child, .cover thead th:nth-child(2) { padding: .4rem .6rem; }
.cover thead th:first-child { text-align: left; }
.cell { width: 1.25rem; min-width: 1.25rem; height: 1.25rem; text-align: center; font-size: .75rem; line-height: 1;
  border-left: 1px solid var(--line); }
.c1 { background: var(--good-bg); color: var(--good); } .c2 { color: var(--soft); background:
  repeating-linear-gradient(45deg, transparent 0 3px, var(--line) 3px 4px); }
.c3 { background: var(--bad); color: var(--bg); font-weight: 700; }
.key { display: inline-flex; gap: .3rem; align-items: center; margin-right: 1rem; vertical-align: middle; }
.key .cell { display: inline-block; border: 1px solid var(--line); line-height: 1.2rem; }
.errors { display: flex; flex-wrap: wrap; gap: 1rem; margin: .6rem 0 0; }
.errors figure { flex: 0 1 22rem; min-width: 14rem; margin: 0; padding: .6rem .75rem .4rem; background: var(--panel);
  border: 1px solid var(--line); border-radius: .5rem; }
.errors svg { display: block; width: 100%; overflow: visible; } .errors figcaption { font-size: .82rem; color: var(--soft); }
.errors rect.in { fill: var(--good); } .errors rect.over { fill: var(--bad); }
.errors polyline { fill: none; stroke: var(--text); stroke-width: 1.2; }
.errors path { stroke: var(--line); } .errors line { stroke: var(--soft); stroke-dasharray: 3 3; }
.errors text { font-size: 11px; fill: var(--soft); }
[hidden], output:empty { display: none !important; }
)css";

/// Items carry `data-kernel` and are searched in the text they show.
inline constexpr const char *kScript = R"js(
const kernel = document.getElementById('kernel'), words = document.getElementById('words');
const items = [...document.querySelectorAll('[data-kernel]')], shown = document.getElementById('shown');
function filter() {
  const text = words.value.trim().toLowerCase();
  let left = 0, cards = 0;
  for (const item of items) {
    const card = item.classList.contains('card');
    const here = (!kernel.value || item.dataset.kernel === kernel.value) &&
      (!card || !text || item.textContent.toLowerCase().includes(text));
    item.hidden = !here;
    if (card) { ++cards; left += here ? 1 : 0; }
  }
  shown.textContent = cards && (kernel.value || text) ? left + ' of ' + cards + ' shown' : '';
}
kernel.addEventListener('input', filter);
words.addEventListener('input', filter);
// A link may lead to what is filtered away.
document.addEventListener('click', event => {
  const link = event.target.closest('a[href^="#"]');
  const target = link && document.getElementById(link.hash.slice(1));
  if (!target || !target.hidden) return;
  kernel.value = words.value = '';
  filter();
});
document.querySelector('.filter').hidden = false;
)js";

} // namespace assay::report
