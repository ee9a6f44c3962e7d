"""How the page looks: system fonts, one colour, room to read; narrow screens and paper too."""

STYLE = """
:root { --ink:#222; --quiet:#5b666c; --line:#dfe5e8; --truth:#b4bfc5; --made:#1f6f8b; --less:#d55e00 }
* { box-sizing:border-box }
body.quality { font:16px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif; color:var(--ink); max-width:60rem; margin:0 auto; padding:1.2rem 1.2rem 4rem; background:#fff }
h1 { font-weight:600; font-size:1.75rem; line-height:1.2; margin:2rem 0 .2rem }
h2 { font-weight:500; font-size:.95rem; color:var(--quiet); margin:3.2rem 0 .1rem }
h3 { font-weight:600; font-size:1rem; margin:1.6rem 0 .2rem }
.finding { font-size:1.25rem; font-weight:600; line-height:1.3; margin:0 0 1rem }
.quiet,.axis { color:var(--quiet) } .axis { font-size:.82rem; margin:.3rem 0 1rem }
.caution { border-left:4px solid var(--less); padding:.5rem 1rem; background:#fdf3ec } .caution p { margin:.2rem 0 0; font-size:.88rem }
.findings { padding-left:1.1rem; margin:.8rem 0 } .findings li { margin:.25rem 0 }
dl { margin:1rem 0 } dt { font-weight:600 } dd { margin:0 0 .6rem }
.row { display:grid; grid-template-columns:11rem minmax(0,1fr) 7.5rem; gap:0 .8rem; align-items:center; padding:.16rem 0; break-inside:avoid }
.row .name { overflow-wrap:anywhere; line-height:1.2; font-size:.92rem } .row .value { text-align:right; font-variant-numeric:tabular-nums; font-size:.92rem; white-space:nowrap }
.track { position:relative; display:block; height:14px; background:#f3f6f7 }
.bar { position:absolute; inset:0 auto 0 0; background:var(--made) } .tick { position:absolute; top:-3px; bottom:-3px; width:2px; background:var(--ink) }
.forest .row { grid-template-columns:14rem minmax(0,1fr) 4rem }
.key { font-size:.85rem; color:var(--quiet); margin:.4rem 0 } .box { display:inline-block; width:.85em; height:.85em; margin:0 .35em 0 .9em; vertical-align:-.08em }
.key .box:first-child { margin-left:0 } .box.truth { background:var(--truth) } .box.fill { background:var(--made) }
.many { display:grid; grid-template-columns:repeat(auto-fill,minmax(min(17rem,100%),1fr)); gap:1.6rem 2rem; margin-top:1rem }
.three { display:grid; grid-template-columns:repeat(auto-fit,minmax(min(17rem,100%),1fr)); gap:1rem }
figure { margin:0; break-inside:avoid } figcaption { font-size:.88rem; line-height:1.3; margin-bottom:.4rem }
svg { display:block; overflow:visible } svg text.label { font:11px system-ui,sans-serif; fill:var(--ink) } svg text.quiet { fill:var(--quiet) } svg text.far { fill:var(--made) }
rect.truth,circle.truth { fill:var(--truth) } rect.fill,circle.fill { fill:var(--made) } rect.less { fill:var(--less) }
line.made { stroke:var(--made); stroke-width:1.8; stroke-linecap:square } line.axis { stroke:var(--truth); stroke-width:1 }
line.thick { stroke-width:3.2; stroke-linecap:butt } line.thick.truth { stroke:var(--truth) }
details { margin:1rem 0 } summary { cursor:pointer; color:var(--made) } code { font-size:.9em; overflow-wrap:anywhere }
.wide { overflow-x:auto } table { border-collapse:collapse; font-size:.86rem; font-variant-numeric:tabular-nums; margin:.5rem 0 }
th { text-align:left; font-weight:600; border-bottom:1px solid #9aa5ab; padding:.25rem 1rem .25rem 0; vertical-align:bottom }
td { border-bottom:1px solid var(--line); padding:.25rem 1rem .25rem 0; vertical-align:top }
.notes { font-size:.9rem; color:var(--quiet) }
@media (max-width:36rem) {
  .row,.forest .row { grid-template-columns:minmax(0,1fr) auto; row-gap:.1rem; padding:.35rem 0 }
  .row .name { grid-row:1 } .row .value { grid-row:1; grid-column:2; text-align:right } .row .track,.row svg { grid-row:2; grid-column:1/3 }
  h1 { font-size:1.4rem } .finding { font-size:1.1rem }
}
@media print {
  body.quality { max-width:none; padding:0; font-size:11pt } * { print-color-adjust:exact; -webkit-print-color-adjust:exact }
  @page { margin:16mm } h2,h3,.finding { break-after:avoid; break-inside:avoid } h2 { margin-top:1.8rem } tr { break-inside:avoid }
  details { display:none } .wide { overflow:visible } .three { grid-template-columns:repeat(3,1fr) }
}
"""
