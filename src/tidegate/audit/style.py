"""How the page looks: system fonts, one colour, light and dark, narrow screens and paper."""

STYLE = """
:root { color-scheme:light dark; --ink:#1f2a30; --quiet:#5b676e; --line:#dde4e8; --track:#eef2f4; --page:#fff; --blue:#1f6f8b; --red:#b3261e }
@media (prefers-color-scheme:dark) {
  :root { --ink:#e4e9ec; --quiet:#a2afb6; --line:#33404a; --track:#26323a; --page:#141b20; --blue:#6db8d1; --red:#ff8a80 } }
* { box-sizing:border-box }
body { font:16px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif; color:var(--ink); background:var(--page); max-width:56rem; margin:0 auto; padding:1.4rem 1.2rem 4rem }
h1 { font-weight:500; font-size:1rem; color:var(--quiet); margin:1.2rem 0 .2rem } .verdict { font-size:1.7rem; font-weight:600; line-height:1.25; margin:0 0 .6rem }
.verdict.broken { color:var(--red) } .quiet { color:var(--quiet); font-size:.9rem } p { margin:.4rem 0 }
h2 { font-size:1.2rem; font-weight:600; margin:2.8rem 0 .1rem } h2 + p { color:var(--quiet); margin-top:0 }
article { border-top:1px solid var(--line); padding:.9rem 0 1rem; break-inside:avoid }
.head { display:grid; grid-template-columns:minmax(0,1fr) auto; gap:0 1rem; align-items:baseline } h3 { font-size:1rem; font-weight:600; margin:0 }
.chip { font-size:.85rem; color:var(--quiet); white-space:nowrap } .held .chip { color:var(--blue) } .broken .chip { color:var(--red); font-weight:600 }
.promise,.knows { color:var(--quiet); font-size:.9rem; margin:.05rem 0 } .says { margin:.4rem 0 .1rem }
.scale { margin:.5rem 0 .3rem } .track { position:relative; display:block; height:10px; background:var(--track); border-radius:2px; margin-right:12% }
.bar { position:absolute; inset:0 auto 0 0; max-width:112%; background:var(--blue); border-radius:2px } .broken .bar { background:var(--red) } .observed .bar { background:var(--quiet) }
.limit { position:absolute; right:-1px; top:-4px; bottom:-4px; width:2px; background:var(--ink) } .scale .quiet { font-size:.82rem; font-variant-numeric:tabular-nums; margin:.25rem 0 0 }
a { color:var(--blue) } .overview { border-collapse:collapse; margin:1rem 0; font-size:.95rem } .overview th { text-align:left; font-weight:500; padding:.15rem 1.4rem .15rem 0; vertical-align:top } .overview td { color:var(--quiet) }
ul { padding-left:1.1rem } li { margin:.3rem 0 } code { font-size:.92em; overflow-wrap:anywhere }
@media (max-width:30rem) { body { padding:.8rem .9rem 3rem } .verdict { font-size:1.35rem } h2 { margin-top:2rem } }
@media print {
  :root { --ink:#000; --quiet:#444; --line:#bbb; --track:#eee; --page:#fff; --blue:#1f6f8b; --red:#b3261e }
  body { max-width:none; padding:0; font-size:10.5pt } * { print-color-adjust:exact; -webkit-print-color-adjust:exact } }
"""
