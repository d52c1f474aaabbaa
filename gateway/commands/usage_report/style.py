"""How the page of a usage report looks, by day and by night."""

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark;
  --back:#f6f7f9; --card:#ffffff; --ink:#1c2430; --soft:#5b6676; --line:#e3e7ed;
  --fill:#2f6fb3; --part:#c2410c; --warn:#9a3412; --warn-back:#fff3e8; }
@media (prefers-color-scheme: dark) { :root {
  --back:#12161c; --card:#1a2029; --ink:#e6eaf0; --soft:#9aa6b6; --line:#2b3441;
  --fill:#6ea8e0; --part:#f59e5b; --warn:#fdba74; --warn-back:#2b2119; } }
* { box-sizing: border-box; }
body { margin:0; background:var(--back); color:var(--ink);
  font:15px/1.5 system-ui,'Segoe UI','DejaVu Sans',sans-serif; }
main { max-width:1080px; margin:0 auto; padding:32px 20px 64px; }
h1 { font-size:26px; margin:0 0 4px; } h2 { font-size:17px; margin:0 0 12px; }
.lead { color:var(--soft); margin:0 0 24px; }
.tiles { display:grid; gap:12px; grid-template-columns:repeat(auto-fit,minmax(150px,1fr));
  margin:0 0 20px; padding:0; list-style:none; }
.tiles li, section { background:var(--card); border:1px solid var(--line); border-radius:10px; }
.tiles li { padding:14px 16px; }
.tiles b { display:block; font-size:23px; font-variant-numeric:tabular-nums; }
.tiles span { color:var(--soft); font-size:13px; }
section { padding:18px 20px; margin:0 0 20px; }
.note { color:var(--soft); font-size:13px; margin:8px 0 0; }
.key { display:inline-block; width:11px; height:11px; border-radius:2px; margin:0 5px 0 12px;
  vertical-align:-1px; }
.key.a { background:var(--fill); margin-left:0; } .key.b { background:var(--part); }
svg { display:block; width:100%; height:auto; overflow:visible; }
.grid { stroke:var(--line); } .fill { fill:var(--fill); } .part { fill:var(--part); }
.hit { fill:transparent; }
.bar:hover .fill { opacity:.75; }
text { font-size:14px; fill:var(--soft); } text.name, text.value { fill:var(--ink); }
text.value { font-variant-numeric:tabular-nums; }
.scroll { overflow-x:auto; }
table { border-collapse:collapse; width:100%; font-size:14px; }
th { text-align:left; color:var(--soft); font-weight:600; font-size:13px; }
th, td { padding:7px 10px; border-bottom:1px solid var(--line); vertical-align:top; }
td.n, th.n { text-align:right; font-variant-numeric:tabular-nums; white-space:nowrap; }
tr:last-child td { border-bottom:0; }
.rule { background:var(--warn-back); color:var(--warn); border-radius:5px; padding:1px 7px; font-size:13px;
  white-space:nowrap; }
details { margin-top:10px; } summary { cursor:pointer; color:var(--soft); font-size:13px; }
.two { display:grid; gap:20px; grid-template-columns:1fr 1fr; } .two section { margin:0 0 20px; }
@media (max-width:760px) { .two { grid-template-columns:1fr; gap:0; } }
@media print { body { background:#fff; } section { break-inside:avoid; } }
"""
