--- style: the style of the page, one text whose hash is in the policy of the page.
--
-- Must never have url() or an import, so that nothing is fetched; nor content-visibility, whose
-- guessed heights make links lead past their places.

return [[
:root{
  --paper:#fbfaf7;--raised:#ffffff;--sunk:#f3f1ec;--ink:#23211e;--dim:#6d6860;--faint:#98928a;
  --line:#e4e0d8;--link:#1d5a96;--user:#2f5fa8;--user-soft:#eef3fa;--tool:#8b8378;
  --out:#a9571b;--out-soft:#fbf1e8;--mark:#2c7a51;--branch:#7650ad;--error:#b3352f;
  --area:#c8d8ec;--bar:#5b84bd;--bar-tool:#c9c2b5;--hit:#ffe58a;
  --word:#8a3a94;--text:#2f6b2f;--num:#8a5a00;--del:#fbe4e2;--ins:#e0f2e3;
  --sans:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Liberation Sans",sans-serif;
  --serif:Charter,"Bitstream Charter","Iowan Old Style","Palatino Linotype",Georgia,
    "Liberation Serif",serif;
  --mono:ui-monospace,"SF Mono",Menlo,Consolas,"Liberation Mono",monospace;
}
@media (prefers-color-scheme:dark){:root:not([data-theme=light]){
  --paper:#16181b;--raised:#1d2024;--sunk:#202327;--ink:#dddad4;--dim:#9a968e;--faint:#75726c;
  --line:#2e3237;--link:#8ab8ea;--user:#86aee6;--user-soft:#1c2430;--tool:#8d887f;
  --out:#dc9a64;--out-soft:#2a211a;--mark:#6fc195;--branch:#b699e2;--error:#ee8a80;
  --area:#263a54;--bar:#6f98d0;--bar-tool:#4c4a46;--hit:#6b5a12;
  --word:#cf9be0;--text:#9ccf8f;--num:#d9b36a;--del:#40211f;--ins:#1d3524;color-scheme:dark}}
:root[data-theme=dark]{
  --paper:#16181b;--raised:#1d2024;--sunk:#202327;--ink:#dddad4;--dim:#9a968e;--faint:#75726c;
  --line:#2e3237;--link:#8ab8ea;--user:#86aee6;--user-soft:#1c2430;--tool:#8d887f;
  --out:#dc9a64;--out-soft:#2a211a;--mark:#6fc195;--branch:#b699e2;--error:#ee8a80;
  --area:#263a54;--bar:#6f98d0;--bar-tool:#4c4a46;--hit:#6b5a12;
  --word:#cf9be0;--text:#9ccf8f;--num:#d9b36a;--del:#40211f;--ins:#1d3524;color-scheme:dark}
:root[data-theme=light]{color-scheme:light}
*{box-sizing:border-box}
html{scroll-padding-top:4.5rem;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.62 var(--sans);
  overflow-wrap:break-word}
a{color:var(--link);text-decoration-thickness:1px;text-underline-offset:.18em}
:focus-visible{outline:2px solid var(--link);outline-offset:2px;border-radius:3px}
.skip{position:absolute;left:-99rem}
.skip:focus{left:1rem;top:1rem;background:var(--raised);padding:.5rem 1rem;z-index:9}
.page{max-width:76rem;margin:0 auto;padding:0 1.5rem 6rem}
h1,h2,h3,h4,h5,h6{line-height:1.25;margin:1.4em 0 .5em;font-weight:650}
h1{font:600 2.35rem/1.15 var(--serif);letter-spacing:-.012em;margin:3.2rem 0 .6rem;
  text-wrap:balance}
h2{font:600 1.35rem/1.25 var(--serif);margin:3rem 0 1rem}
h4{font-size:1.12rem}h5,h6{font-size:1rem}
.lede{color:var(--dim);margin:0 0 1.2rem}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.2rem;margin:0 0 1.6rem;
  font-size:.9rem}
.facts dt{color:var(--dim)}.facts dd{margin:0;min-width:0}
code,pre,kbd,.id{font-family:var(--mono);font-size:.86em;font-variant-ligatures:none}
.id{color:var(--faint);text-decoration:none}
a.id:hover{color:var(--link);text-decoration:underline}
.num{font-variant-numeric:tabular-nums}
bdi{unicode-bidi:isolate}
/* the picture */
figure{margin:1.6rem 0 0}
figcaption,.scale{display:flex;justify-content:space-between;gap:1rem;color:var(--dim);
  font-size:.8rem}
figcaption b{font-weight:600;color:var(--ink)}
.chart{display:block;width:100%;border-bottom:1px solid var(--line);overflow:visible}
.chart.context{height:7rem}.chart.turns{height:4rem;margin-top:.5rem}
.area{fill:var(--area)}.edge{fill:none;stroke:var(--bar);stroke-width:1.5;
  vector-effect:non-scaling-stroke}
.said{fill:var(--bar)}.tools{fill:var(--bar-tool)}.hot{fill:transparent}
.chart a:hover .hot,.chart a:focus-visible .hot{fill:var(--ink);fill-opacity:.1}
.rule{stroke-width:1.25;vector-effect:non-scaling-stroke}
.rule.c{stroke:var(--out);stroke-opacity:.75}.rule.p{stroke:var(--mark);stroke-dasharray:4 3}
.key{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;margin:.6rem 0 0;padding:0;list-style:none;
  font-size:.8rem;color:var(--dim)}
.key svg{width:.7rem;height:.7rem;margin-right:.4rem;vertical-align:-.05rem}
.events{margin:.9rem 0 0;font-size:.84rem}
.events summary{cursor:pointer;color:var(--dim)}
.events ul{columns:2 22rem;list-style:none;margin:.4rem 0 0;padding:0 0 0 1rem}
.events a{text-decoration:none}.events a:hover{text-decoration:underline}
.events .c{color:var(--out)}.events .p{color:var(--mark)}
/* the tools of the page */
.tools-bar{position:sticky;top:0;z-index:5;display:flex;align-items:center;gap:.5rem;
  margin:2rem -1.5rem 0;padding:.6rem 1.5rem;background:var(--paper);
  border-bottom:1px solid var(--line)}
.tools-bar[hidden]{display:none}
.tools-bar input[type=search]{flex:1 1 12rem;min-width:5rem;font:inherit;font-size:.92rem;
  color:inherit;
  padding:.35rem .8rem;border:1px solid var(--line);border-radius:.5rem;background:var(--raised)}
button,.toggle{font:inherit;font-size:.85rem;color:var(--dim);background:none;white-space:nowrap;
  border:1px solid var(--line);border-radius:.5rem;padding:.35rem .7rem;cursor:pointer}
button:hover,.toggle:hover{color:var(--ink);border-color:var(--faint)}
button:disabled{opacity:.4;cursor:default}
.toggle input{margin:0 .4rem 0 0;vertical-align:-.1em}
.count{min-width:4.5rem;text-align:right;color:var(--dim);font-size:.82rem}
/* two columns */
.columns{display:grid;grid-template-columns:15.5rem minmax(0,1fr);gap:3rem;align-items:start}
.outline{position:sticky;top:3.9rem;max-height:calc(100vh - 4.5rem);overflow:auto;
  padding:1.6rem .5rem 2rem 0;font-size:.84rem;line-height:1.4;scrollbar-width:thin}
.outline summary{cursor:pointer;font-weight:600;color:var(--dim);padding:.2rem 0}
.outline ol{list-style:none;margin:.2rem 0 1rem;padding:0}
.outline li a{display:block;padding:.2rem .6rem;color:inherit;text-decoration:none;
  border-left:2px solid var(--line);white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.outline li a:hover{background:var(--sunk)}
.outline li.out a{color:var(--faint)}
.outline li.c a{color:var(--out);border-color:var(--out)}
.outline li.p a{color:var(--mark);border-color:var(--mark)}
.outline li.b a{color:var(--branch);border-color:var(--branch)}
.outline li.l a{color:var(--user);border-color:var(--user)}
.outline a[aria-current]{background:var(--sunk);color:var(--ink);border-left-color:var(--ink)}
/* messages */
main{min-width:0}
main h2{padding-bottom:.4rem;border-bottom:1px solid var(--line)}
.m{display:grid;grid-template-columns:minmax(0,1fr);margin:0;padding:.45rem 0;position:relative}
.m>header{display:flex;flex-wrap:wrap;align-items:baseline;gap:.1rem .7rem;font-size:.78rem;
  color:var(--faint)}
.m h3{margin:0;font:650 .78rem/1.5 var(--sans);letter-spacing:.02em;color:var(--dim)}
.m.turn{margin-top:2.2rem}
.m.user{background:var(--user-soft);border-radius:.7rem;padding:.8rem 1.1rem .9rem;
  margin-bottom:.6rem}
.m.user h3{color:var(--user)}
.m.tool{padding:0}.m.tool>header{display:none}
.m.after{padding-top:.2rem}
.m.after>header{position:absolute;right:0;top:.1rem;opacity:0;background:var(--paper);
  padding-left:.6rem;z-index:1}
.m.after>header h3{display:none}
.m.after:hover>header,.m.after:focus-within>header,.m.after:target>header{opacity:1}
.m .meta{margin-left:auto;display:flex;gap:.8rem}
.chip{color:var(--user);border:1px solid currentColor;border-radius:1rem;padding:0 .55rem;
  font-size:.74rem}
.chip.pin{color:var(--mark)}
.body>*:first-child{margin-top:.25rem}.body>*:last-child{margin-bottom:0}
.body p,.body ul,.body ol,.body blockquote{margin:.6em 0}
.body ul,.body ol{padding-left:1.5rem}.body li{margin:.2em 0}
blockquote{margin-left:0;padding-left:1rem;border-left:3px solid var(--line);color:var(--dim)}
.body :not(pre)>code{background:var(--sunk);border-radius:.25rem;padding:.1em .3em}
.m.user .body :not(pre)>code{background:var(--raised)}
pre{margin:.6em 0;padding:.8rem 1rem;background:var(--sunk);border-radius:.5rem;overflow:auto;
  line-height:1.5;max-height:34rem;tab-size:4}
pre code{font-size:1em}
pre.plain{white-space:pre-wrap;background:none;padding:0;font:inherit;max-height:none}
.hk{color:var(--word)}.hs{color:var(--text)}.hd{color:var(--num)}
.hn{color:var(--dim);font-style:italic}
.diff span{display:inline-block;min-width:100%}
.diff .del{background:var(--del)}.diff .ins{background:var(--ins)}.diff .at{color:var(--dim)}
.account{margin:.6rem 0 .2rem}.account th{font-weight:600;color:var(--dim)}
.lang{margin:.8em 0 -.35em!important;font:.72rem var(--mono);color:var(--faint)}
.wide{overflow:auto;margin:.8em 0}
table{border-collapse:collapse;font-size:.92em}
th,td{border-bottom:1px solid var(--line);padding:.35rem .9rem .35rem 0;text-align:left;
  vertical-align:top}
.right{text-align:right}.center{text-align:center}
hr{border:0;border-top:1px solid var(--line);margin:1.6em 0}
/* folds: calls, results, thinking */
.fold{margin:.15rem 0;border-left:2px solid var(--line);padding-left:.75rem;font-size:.88rem}
.fold>summary{cursor:pointer;color:var(--dim);list-style:none;display:flex;gap:.6rem;
  align-items:baseline;padding:.12rem 0;min-width:0}
.fold>summary::-webkit-details-marker{display:none}
.fold>summary::before{content:"▸";color:var(--faint);font-size:.75rem;flex:none}
.fold[open]>summary::before{content:"▾"}
.fold>summary b{font:600 .86rem var(--mono);color:var(--ink);flex:none}
.fold>summary .brief{font-family:var(--mono);font-size:.8rem;overflow:hidden;
  text-overflow:ellipsis;
  white-space:nowrap;min-width:0;flex:0 1 auto}
.fold>summary .size{margin-left:auto;flex:none;font-size:.76rem;color:var(--faint)}
.fold:hover{border-color:var(--faint)}
.fold.call{border-color:var(--bar)}
.fold.error{border-color:var(--error)}.fold.error b{color:var(--error)}
.args{margin:.2rem 0 .8rem}.args dt{font:.76rem var(--mono);color:var(--dim);margin-top:.4rem}
.args dd{margin:0}.args pre{margin:.15rem 0}
/* what is not said: notes */
.note{font-size:.8rem;color:var(--faint);margin:.25rem 0;padding:.1rem 0}
.note b{font-weight:600}
.note .fold{font-size:.8rem;border:0;padding:0}
.note.turn-end{text-align:right}
.note.c,.note.p,.note.b{font-size:.88rem;color:var(--ink);border-left:3px solid;
  padding:.6rem 1rem;
  margin:1.2rem 0;border-radius:0 .5rem .5rem 0}
.note.c{border-color:var(--out);background:var(--out-soft)}.note.c b{color:var(--out)}
.note.p{border-color:var(--mark);background:var(--sunk)}.note.p b{color:var(--mark)}
.note.b{border-color:var(--branch);background:var(--sunk)}.note.b b{color:var(--branch)}
.note .m{margin-top:.6rem}
/* what the model is not shown any more */
.m.out .body,.m.out>header{opacity:.62}
.m.out.after>header{opacity:0}
.m.out:hover .body,.m.out:hover>header{opacity:1}
.m.out:focus-within .body,.m.out:focus-within>header{opacity:1}
.left{color:var(--out);text-decoration:none;opacity:.9}.left:hover{text-decoration:underline}
.note.gone{color:var(--out);font-size:.78rem;display:flex;gap:.8rem;align-items:center;
  margin:1.4rem 0 .4rem}
.note.gone::after{content:"";flex:1 1 2rem;border-top:1px dashed var(--out);opacity:.5}
.m:target,.note:target{box-shadow:-3px 0 0 var(--link)}
.in-context .out,.in-context .aside{display:none}
.searching .m:not(.hit),.searching .note{display:none}
::highlight(found){background-color:var(--hit);color:inherit}
footer{margin-top:4rem;padding-top:1rem;border-top:1px solid var(--line);color:var(--faint);
  font-size:.8rem}
@media (max-width:62rem){
  .columns{display:block}
  .outline{position:static;max-height:50vh;padding:1rem 0 0;margin-bottom:1rem}
}
@media (max-width:40rem){
  body{font-size:15.5px}.page{padding:0 1rem 4rem}h1{font-size:1.8rem;margin-top:1.8rem}
  .tools-bar{margin:1.4rem -1rem 0;padding:.5rem 1rem;gap:.35rem}
  .tools-bar .wide-only{display:none}.facts{gap:.15rem .9rem;font-size:.84rem}
  .m.user{margin-left:-.4rem;margin-right:-.4rem}
  .chart.context{height:5rem}.chart.turns{height:3rem}.fold{padding-left:.5rem}
  .count{min-width:0}.fold>summary .size{display:none}
}
@media print{
  :root,:root:not([data-theme=light]){--paper:#fff;--raised:#fff;--sunk:#f6f6f6;--ink:#000;
  --dim:#444;
    --faint:#777;--line:#ccc;--user-soft:#f2f5fa;--out-soft:#fbf4ee}
  .tools-bar,.outline,.skip{display:none!important}.columns{display:block}
  .m,.note{break-inside:avoid-page}
  pre{max-height:none;white-space:pre-wrap}
  .m.out .body{opacity:1}.body a[href^=http]::after{content:" (" attr(href) ")";font-size:.8em}
}
]]
