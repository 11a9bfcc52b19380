// SPDX-License-Identifier: GPL-2.0-or-later
/* The page as a whole, and how text becomes part of it. */
#include "html.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "version.h"

const char *mmr_html_str(const json_t *j, const char *key)
{
	return json_string_value(json_object_get(j, key));
}

double mmr_html_num(const json_t *j, const char *key)
{
	double v = json_number_value(json_object_get(j, key));

	return isfinite(v) ? v : 0;
}

/* Length of the UTF-8 sequence at s and its code point; 0: it is none. */
static int sequence(const unsigned char *s, uint32_t *code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	int n = s[0] < 0x80   ? 1
		: s[0] < 0xc2 ? 0
		: s[0] < 0xe0 ? 2
		: s[0] < 0xf0 ? 3
		: s[0] < 0xf5 ? 4
			      : 0;
	int i;

	if (n <= 1) {
		*code = s[0];
		return n;
	}
	*code = s[0] & (0xffu >> (n + 1));
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (s[i] & 0x3f);
	}
	if (*code < least[n] || *code > 0x10ffff ||
	    (*code >= 0xd800 && *code < 0xe000))
		return 0;
	return n;
}

/* What a page may not hold, or what would show text as another one: controls,
 * noncharacters, marks that turn the direction of writing. */
static bool is_bad(uint32_t c)
{
	if (c < 0x20)
		return c != '\n' && c != '\t';
	return (c >= 0x7f && c < 0xa0) || (c >= 0x200e && c <= 0x200f) ||
	       (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
	       (c >= 0xfdd0 && c <= 0xfdef) || (c & 0xfffe) == 0xfffe ||
	       c == 0x061c;
}

void mmr_html_text(FILE *f, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;
	uint32_t c;
	int n;

	while (p && *p) {
		n = sequence(p, &c);
		if (!n || is_bad(c))
			fputs("\xef\xbf\xbd", f);
		else if (c == '<')
			fputs("&lt;", f);
		else if (c == '>')
			fputs("&gt;", f);
		else if (c == '&')
			fputs("&amp;", f);
		else if (c == '"')
			fputs("&quot;", f);
		else if (c == '\'')
			fputs("&#39;", f);
		else
			fwrite(p, 1, (size_t)n, f);
		p += n ? n : 1;
	}
}

void mmr_html_put(FILE *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
}

void mmr_html_fact(FILE *f, const char *key, const char *text)
{
	if (!text || !*text)
		return;
	mmr_html_put(f, "<div><dt>%s</dt><dd>", key);
	mmr_html_text(f, text);
	fputs("</dd></div>\n", f);
}

void mmr_html_factf(FILE *f, const char *key, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	mmr_html_fact(f, key, text);
}

void mmr_html_block(FILE *f, const char *title, const char *text, bool open)
{
	if (!text || !text[strspn(text, " \n")])
		return;
	mmr_html_put(f,
		     "<details%s><summary>%s</summary>\n"
		     "<pre tabindex=\"0\">",
		     open ? " open" : "", title);
	mmr_html_text(f, text);
	fputs("</pre></details>\n", f);
}

const char *mmr_html_time(char *buf, size_t n, double ns)
{
	static const struct {
		double ns;
		const char *unit;
	} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
	size_t i = 0;

	while (i < 3 && ns < units[i].ns)
		i++;
	snprintf(buf, n, ns / units[i].ns < 100 ? "%.3g %s" : "%.0f %s",
		 ns / units[i].ns, units[i].unit);
	return buf;
}

const char *mmr_html_count(char *buf, size_t n, double v)
{
	char digits[40];
	size_t len, i, used = 0;

	snprintf(digits, sizeof(digits), "%.0f", v < 1e18 ? v : 1e18);
	len = strlen(digits);
	for (i = 0; i < len && used + 2 < n; i++) {
		if (i && (len - i) % 3 == 0 && digits[i - 1] != '-')
			buf[used++] = ',';
		buf[used++] = digits[i];
	}
	buf[used] = '\0';
	return buf;
}

static void head(FILE *f, const struct mmr_html_source *src)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
	      "<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-"
	      "src 'none'; style-src 'unsafe-inline'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-"
	      "scale=1\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n"
	      "<meta name=\"generator\" content=\"mmrace " MMR_VERSION "\">\n"
	      "<title>mmrace: ",
	      f);
	mmr_html_text(f, src->one && src->nfindings ? src->findings[0].id
						    : src->dir);
	fputs("</title>\n", f);
	mmr_html_style(f);
	fputs("</head>\n<body>\n", f);
}

/* Where and when, from the soak, else from the finding. */
static void origin(FILE *f, const struct mmr_html_source *src)
{
	const json_t *j = src->soak;
	char when[40] = "";
	time_t now = time(NULL);
	struct tm tm;

	if (!j && src->nfindings)
		j = src->findings[0].verdict;
	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", &tm);
	fputs("<p class=\"origin\">Linux ", f);
	mmr_html_text(f, mmr_html_str(j, "kernel"));
	fputs(" &middot; ", f);
	mmr_html_text(f, mmr_html_str(j, "arch"));
	mmr_html_put(f,
		     " &middot; %.0f CPUs &middot; page made %s by mmrace "
		     "%s</p>\n",
		     mmr_html_num(j, "cpus"), when, MMR_VERSION);
}

static int open_findings(const struct mmr_html_source *src)
{
	int i, n = 0;

	for (i = 0; i < src->nfindings; i++)
		n += !src->findings[i].known;
	return n;
}

static void title(FILE *f, const struct mmr_html_source *src)
{
	const double rounds = mmr_html_num(src->soak, "rounds") -
			      mmr_html_num(src->soak, "rounds_void");
	int n = open_findings(src);
	char buf[40];

	fputs("<header>\n<p class=\"brand\">mmrace report</p>\n<h1>", f);
	if (src->one)
		mmr_html_put(f, "A finding");
	else if (n)
		mmr_html_put(f, "%d finding%s", n, n == 1 ? "" : "s");
	else
		mmr_html_put(f, "Nothing found");
	fputs("</h1>\n", f);
	origin(f, src);
	if (!src->one && !n && rounds > 0) {
		mmr_html_put(f, "<p>None in %s rounds: ",
			     mmr_html_count(buf, sizeof(buf), rounds));
		mmr_html_put(
			f, "at 95 %% confidence fewer than one in %s.</p>\n",
			mmr_html_count(buf, sizeof(buf), floor(rounds / 3)));
	}
	fputs("</header>\n", f);
}

/* One line a finding, with a way to it. */
static void index_of(FILE *f, const struct mmr_html_source *src)
{
	const struct mmr_html_finding *d;
	int i;

	if (src->one || !src->nfindings)
		return;
	fputs("<nav aria-label=\"findings\"><ol class=\"index\">\n", f);
	for (i = 0; i < src->nfindings; i++) {
		d = &src->findings[i];
		mmr_html_put(f, "<li><a href=\"#f%d\">", i + 1);
		mmr_html_text(f, d->id);
		fputs("</a>", f);
		if (d->known)
			fputs(" <span class=\"chip calm\">set aside</span>", f);
		mmr_html_put(f,
			     " <span class=\"dim\">seen %.0f&times;</span>"
			     "<br>",
			     mmr_html_num(d->verdict, "count"));
		mmr_html_text(f, mmr_html_str(d->verdict, "text"));
		fputs("</li>\n", f);
	}
	fputs("</ol></nav>\n", f);
	if (src->more)
		mmr_html_put(f,
			     "<p>%llu more are in the folder; this page shows "
			     "the first %d.</p>\n",
			     (unsigned long long)src->more, src->nfindings);
}

static void notes(FILE *f, const struct mmr_html_source *src)
{
	json_t *note;
	size_t i;

	if (!json_array_size(src->notes))
		return;
	fputs("<section><h2>Also in the folder</h2><ul>\n", f);
	json_array_foreach (src->notes, i, note) {
		fputs("<li>", f);
		mmr_html_text(f, json_string_value(note));
		fputs("</li>\n", f);
	}
	fputs("</ul></section>\n", f);
}

int mmr_html_page(FILE *f, const struct mmr_html_source *src)
{
	int i;

	head(f, src);
	title(f, src);
	fputs("<main>\n", f);
	index_of(f, src);
	for (i = 0; i < src->nfindings; i++)
		mmr_html_finding(f, &src->findings[i], i + 1);
	mmr_html_soak(f, src);
	notes(f, src);
	fputs("</main>\n</body>\n</html>\n", f);
	return fflush(f) || ferror(f) ? -EIO : 0;
}
