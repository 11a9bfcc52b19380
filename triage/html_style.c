// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The looks of the page: one column, light or dark as the reader's system is,
 * readable from 320 pixels on.  Pictures are strips without text in them:
 * their labels are text of the page, so that it keeps its size when a strip is
 * made narrower.
 */
#include "html.h"

static const char *const css[] = {
	":root{color-scheme:light dark;--bg:#fbfbfa;--fg:#1c1e21;--dim:#5c636b;"
	"--line:#dcdfe3;--card:#fff;--code:#f2f3f5;--link:#0b57a4;--bad:#"
	"b3261e;"
	"--badbg:#fbe9e7;--calm:#2f6b3a;--calmbg:#e6f2e8;--bar:#3b78c2;"
	"--grid:#e6e8eb}\n",
	"@media(prefers-color-scheme:dark){:root{--bg:#15171a;--fg:#e6e8ea;"
	"--dim:#a0a8b1;--line:#343a41;--card:#1c1f23;--code:#23272c;"
	"--link:#86b8f5;--bad:#ff9d94;--badbg:#43211f;--calm:#9fd6a9;"
	"--calmbg:#1f3a26;--bar:#5f9ee8;--grid:#2b3036}}\n",
	"*{box-sizing:border-box}\n"
	"body{margin:0 auto;padding:1rem;max-width:72rem;background:var(--bg);"
	"color:var(--fg);font:16px/1.5 system-ui,sans-serif;"
	"overflow-wrap:anywhere}\n",
	"h1{font-size:1.9rem;line-height:1.2;margin:.1rem 0 .4rem}\n"
	"h2{font-size:1.3rem;line-height:1.3;margin:0 0 .5rem}\n"
	"h3{font-size:1rem;margin:1.4rem 0 .4rem}\n"
	"p{margin:.4rem 0}a{color:var(--link)}\n",
	".brand{margin:0;color:var(--dim);font-weight:600;font-size:.9rem}\n"
	".origin,.dim,figcaption,.axis{color:var(--dim)}\n"
	".origin,figcaption,.dim{font-size:.9rem}\n",
	"section,nav{background:var(--card);border:1px solid var(--line);"
	"border-radius:.5rem;padding:1rem;margin:1rem 0}\n"
	".index{margin:0;padding-left:1.4rem}.index li{margin:.5rem 0}\n",
	".chip{display:inline-block;padding:.05rem .5rem;border-radius:1rem;"
	"font-size:.85rem;font-weight:600;background:var(--badbg);"
	"color:var(--bad)}\n"
	".chip.calm{background:var(--calmbg);color:var(--calm)}\n"
	".says{font-size:1.05rem}\n",
	"dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(min("
	"16rem"
	",100%),1fr));gap:.5rem 1.2rem;margin:.6rem 0}\n"
	"dt{color:var(--dim);font-size:.85rem}"
	"dd{margin:0;font-variant-numeric:tabular-nums}\n",
	"pre{margin:.5rem 0;padding:.7rem;background:var(--code);overflow:auto;"
	"border-radius:.4rem;font:.84rem/1.45 ui-monospace,monospace;"
	"overflow-wrap:normal;max-height:36rem;tab-size:8}\n"
	"code{font:.9em ui-monospace,monospace;background:var(--code);"
	"padding:.05rem .25rem;border-radius:.25rem}\n"
	"summary{cursor:pointer;font-weight:600;padding:.3rem 0}\n",
	".wide{overflow-x:auto}table{border-collapse:collapse;width:100%;"
	"font-size:.9rem;font-variant-numeric:tabular-nums}\n"
	"th,td{text-align:left;padding:.3rem .6rem .3rem 0;"
	"border-bottom:1px solid var(--line);vertical-align:top;"
	"overflow-wrap:normal}\n"
	"th{font-weight:600;color:var(--dim)}td.n,th.n{text-align:right}\n"
	"tr.moved td{background:var(--badbg);color:var(--bad)}\n",
	"figure{margin:.6rem 0}.strips{display:grid;"
	"grid-template-columns:minmax(6rem,13rem) 1fr;gap:.25rem .6rem;"
	"align-items:center}\n"
	".strips>span{font-size:.85rem;line-height:1.25}\n"
	"svg{display:block;width:100%;background:var(--code);"
	"border-radius:.2rem}\n"
	".axis{display:flex;justify-content:space-between;font-size:.8rem;"
	"gap:.5rem;grid-column:2}\n"
	"@media(max-width:34rem){.strips{grid-template-columns:1fr}"
	".axis{grid-column:1}.strips>span{margin-top:.35rem}}\n",
	".legend{display:flex;flex-wrap:wrap;gap:.2rem .9rem;font-size:.85rem;"
	"margin:.4rem 0 0;padding:0;list-style:none}\n"
	".legend i{display:inline-block;width:.8em;height:.8em;"
	"border-radius:.15em;margin-right:.35em}\n",
	/* Twelve colours that hold against both grounds. */
	".o0{fill:#3b78c2;background:#3b78c2}.o1{fill:#d07a1f;background:#"
	"d07a1f}"
	".o2{fill:#3f9a55;background:#3f9a55}.o3{fill:#c2453b;background:#"
	"c2453b}"
	".o4{fill:#8a63c9;background:#8a63c9}.o5{fill:#9b6a4b;"
	"background:#9b6a4b}\n",
	".o6{fill:#cf5fa4;background:#cf5fa4}.o7{fill:#7b8794;background:#"
	"7b8794}"
	".o8{fill:#9a9a20;background:#9a9a20}.o9{fill:#1f9ea8;background:#"
	"1f9ea8}"
	".o10{fill:#5c6bc0;background:#5c6bc0}.o11{fill:#6d8f3a;"
	"background:#6d8f3a}\n",
	".bar{fill:var(--bar)}.grid{stroke:var(--grid);stroke-width:1}"
	".mark{fill:var(--bad)}.soft{fill:var(--bar);opacity:.35}"
	".stuck{fill:var(--bad)}.step{fill:#7b8794}\n"
	".bar,.soft,.mark,.stuck,.step{shape-rendering:crispEdges}\n",
	"@media print{section,nav{break-inside:avoid}pre{max-height:none}}\n",
};

void mmr_html_style(FILE *f)
{
	size_t i;

	fputs("<style>\n", f);
	for (i = 0; i < sizeof(css) / sizeof(css[0]); i++)
		fputs(css[i], f);
	fputs("</style>\n", f);
}
