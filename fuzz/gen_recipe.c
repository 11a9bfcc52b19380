// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recipes become statements: holes are filled in as text, the parser of cases
 * reads it, and what it made is copied into the case.  So whatever the grammar
 * and the descriptors allow can stand in fuzz/recipes, and no list of ops has
 * to follow them here.
 */
#include "gen_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipe.h"

#define TEXT 2048
#define MAGIC "mmrace-case 1\n"
#define SMALL (1 << 20)

/* One use of a recipe. */
struct fill {
	struct mmr_gen_actor *a;
	const struct mmr_shadow_map *m, *n; /* NULL: it needs none */
	char part[96];
	const char *own[2]; /* $a $b, NULL: not named yet */
	char *out;
	size_t len, size;
};

static void put(struct fill *f, const char *s, size_t n)
{
	if (f->len + n + 1 >= f->size) {
		f->a->g->failed = true;
		return;
	}
	memcpy(f->out + f->len, s, n);
	f->len += n;
	f->out[f->len] = 0;
}

static void put_str(struct fill *f, const char *s)
{
	put(f, s, strlen(s));
}

static void put_size(struct fill *f, int64_t n, enum mmr_unit unit)
{
	char buf[48];

	put_str(f, mmr_case_print_size(buf, sizeof(buf), n, unit));
}

static bool map_fits(const struct mmr_shadow_map *m, unsigned int want)
{
	bool anon = !m->file;

	return m->state == MMR_SHADOW_WHOLE &&
	       (!(want & MMR_WANT_READ) || m->readable) &&
	       (!(want & MMR_WANT_WRITE) || m->writable) &&
	       (!(want & MMR_WANT_PRIVATE) || !m->shared) &&
	       (!(want & MMR_WANT_SHARED) || m->shared) &&
	       (!(want & MMR_WANT_ANON) || anon) &&
	       (!(want & MMR_WANT_FILE) || !anon) &&
	       (!(want & MMR_WANT_HUGE) || m->hugetlb) &&
	       (!(want & MMR_WANT_BASE) || !m->hugetlb) &&
	       (!(want & MMR_WANT_SMALL) ||
		mmr_shadow_bytes(m->len, m->unit) <= SMALL);
}

static const struct mmr_shadow_map *pick_map(struct mmr_gen_actor *a,
					     unsigned int want)
{
	struct mmr_shadow *sh = &a->g->shadow;
	uint64_t n = 0, at;
	int i;

	for (i = 0; i < sh->nmaps; i++)
		n += map_fits(&sh->maps[i], want);
	if (!n)
		return NULL;
	at = mmr_gen_below(&a->rng, n);
	for (i = 0; i < sh->nmaps; i++)
		if (map_fits(&sh->maps[i], want) && !at--)
			return &sh->maps[i];
	return NULL;
}

/* off= and len= in pages (huge ones where the mapping is of them). */
static void draw_part(struct fill *f)
{
	struct mmr_rng *r = &f->a->rng;
	enum mmr_unit unit = f->m->hugetlb ? MMR_UNIT_HUGE : MMR_UNIT_PAGE;
	int64_t unit_bytes = mmr_shadow_bytes(1, unit), off, n;
	int64_t len = mmr_shadow_bytes(f->m->len, f->m->unit) / unit_bytes;
	char a[32], b[32];

	f->part[0] = 0;
	if (len < 2 || !mmr_gen_chance(r, 40))
		return;
	off = (int64_t)mmr_gen_below(r, (uint64_t)len);
	n = 1 + (int64_t)mmr_gen_below(r, (uint64_t)(len - off));
	mmr_case_print_size(a, sizeof(a), off, unit);
	mmr_case_print_size(b, sizeof(b), n, unit);
	if (off && off + n < len)
		snprintf(f->part, sizeof(f->part), "off=%s len=%s", a, b);
	else if (off)
		snprintf(f->part, sizeof(f->part), "off=%s", a);
	else if (n < len)
		snprintf(f->part, sizeof(f->part), "len=%s", b);
}

static const char *own_name(struct fill *f, int i)
{
	if (!f->own[i])
		f->own[i] = mmr_gen_fresh(f->a->g, "r");
	return f->own[i];
}

/* A hole at s (behind the $): fills it, returns how long its name is. */
static size_t put_hole(struct fill *f, const char *s)
{
	/* A mapping cannot move to where it is: in a loop it goes there and
	 * back. */
	static const char *const places[] = {"1G", "1026M", "1028M"};
	static const char *const far[] = {"2G", "2050M", "2052M"};
	size_t n = 1;

	if (!strncmp(s, "part", 4)) {
		put_str(f, f->part);
		return 4;
	}
	if (!strncmp(s, "len", 3)) {
		put_size(f, f->m->len, f->m->unit);
		return 3;
	}
	if (!strncmp(s, "at", 2)) {
		put_str(f, places[mmr_gen_below(&f->a->rng, 3)]);
		return 2;
	}
	if (!strncmp(s, "far", 3)) {
		put_str(f, far[mmr_gen_below(&f->a->rng, 3)]);
		return 3;
	}
	if (*s == 'm')
		put_str(f, f->m->name);
	else if (*s == 'n')
		put_str(f, f->n->name);
	else if (*s == 'f')
		put_str(f, f->m->file);
	else if (*s == 'k')
		put_str(f, f->a->g->kid_ref);
	else if (*s == 'a' || *s == 'b')
		put_str(f, own_name(f, *s - 'a'));
	else
		n = 0;
	return n;
}

/* {x,y,z} at s: one of them; returns what is behind. */
static const char *put_choice(struct fill *f, const char *s)
{
	size_t n = strcspn(s, "}"), i;
	uint64_t count = 1, at;
	const char *p = s + 1;

	for (i = 0; i < n; i++)
		count += s[i] == ',';
	for (at = mmr_gen_below(&f->a->rng, count); at; at--)
		p += strcspn(p, ",") + 1;
	put(f, p, strcspn(p, ",}"));
	return s + n + (s[n] == '}');
}

static void put_line(struct fill *f, const char *s)
{
	while (*s && !f->a->g->failed) {
		if (*s == '$') {
			s++;
			s += put_hole(f, s);
		} else if (*s == '{') {
			s = put_choice(f, s);
		} else {
			put(f, s++, 1);
		}
	}
	put(f, "\n", 1);
}

static void copy_block(struct mmr_gen_actor *a, const struct mmr_block *from);

static void copy_op(struct mmr_gen_actor *a, const struct mmr_stmt *from)
{
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s = mmr_gen_op(a, from->op->id, from->ref);
	int i;

	if (s == &g->scratch)
		return;
	for (i = 0; i < from->op->nargs; i++) {
		s->args[i] = from->args[i];
		if (!from->args[i].name)
			continue;
		s->args[i].name = mmr_case_str(g->c, from->args[i].name);
		if (!s->args[i].name)
			g->failed = true;
	}
	mmr_gen_accept(s, from->accept, from->naccept);
	mmr_gen_done(a, s);
}

static void copy_block(struct mmr_gen_actor *a, const struct mmr_block *from)
{
	struct mmr_block *outer = a->block;
	struct mmr_stmt *loop;
	int i;

	for (i = 0; i < from->n && !a->g->failed; i++) {
		const struct mmr_stmt *s = from->stmts[i];

		if (s->kind == MMR_STMT_OP) {
			copy_op(a, s);
			continue;
		}
		loop = mmr_case_add_loop(a->g->c, a->block, s->until, s->count,
					 s->until_name);
		if (!loop) {
			a->g->failed = true;
			return;
		}
		a->block = &loop->body;
		copy_block(a, &s->body);
		a->block = outer;
	}
}

/* Statements as text become statements of the thread. */
static void add_text(struct mmr_gen_actor *a, const char *text)
{
	struct mmr_diag d = {0};
	char whole[TEXT + 64];
	struct mmr_case *c;
	int rc;

	snprintf(whole, sizeof(whole), MAGIC "process main\nthread A\n%s",
		 text);
	rc = mmr_case_parse(whole, strlen(whole), &c, &d, NULL, NULL);
	if (rc == -EINVAL) {
		fprintf(stderr, "mmrace: fuzz/recipes: %s in\n%s", d.text,
			text);
		abort();
	}
	if (rc) {
		a->g->failed = true;
		return;
	}
	copy_block(a, &c->procs[0]->threads[0]->body);
	mmr_case_free(c);
}

/* A group that two recipes share is made once. */
static bool said_before(struct mmr_gen *g, const char *line)
{
	int i;

	if (!g->in_setup || strchr(line, '$'))
		return false;
	for (i = 0; i < g->nsaid; i++)
		if (!strcmp(g->said[i], line))
			return true;
	if (g->nsaid < MMR_GEN_SAID)
		g->said[g->nsaid++] = line;
	return false;
}

/* The lines up to the next $verb, then that. */
static void add_lines(struct fill *f, const char *const *lines)
{
	int i, percent;

	f->len = 0;
	for (i = 0; i < MMR_RECIPE_LINES && lines[i]; i++) {
		const char *s = lines[i];

		if (said_before(f->a->g, s))
			continue;
		if (*s == '?') {
			percent = (int)strtol(s + 1, NULL, 10);
			s += strcspn(s, " ");
			s += strspn(s, " ");
			if (!mmr_gen_chance(&f->a->rng, percent))
				continue;
		}
		if (strcmp(s, "$verb")) {
			put_line(f, s);
			continue;
		}
		if (f->len)
			add_text(f->a, f->out);
		f->len = 0;
		if (f->a->depth < 2)
			mmr_gen_verb(f->a);
		/* That may have moved or taken away what we know. */
	}
	if (f->len && !f->a->g->failed)
		add_text(f->a, f->out);
}

static bool fits(const struct mmr_gen_actor *a, const struct mmr_recipe *r)
{
	if ((a->in_kid && !r->in_kid) || (a->is_body && !r->in_body))
		return false;
	if (r->outside && !a->g->outside)
		return false;
	return !(r->want & MMR_WANT_KID) ||
	       (a->g->kid_ref && !a->in_kid &&
		(a->spawner || !a->g->kid_signals));
}

/* word: its place in the profile's ops. */
static bool use(struct mmr_gen_actor *a, const struct mmr_recipe *r, int word,
		const char *const *lines)
{
	char text[TEXT];
	struct fill f = {.a = a, .out = text, .size = sizeof(text)};
	struct mmr_shadow_map m, n;
	const char *bound = a->g->bound[word];

	if (bound)
		f.m = mmr_shadow_map(&a->g->shadow, bound);
	else if (r->want & MMR_WANT_MAP)
		f.m = pick_map(a, r->want);
	if (r->want & MMR_WANT_MAP) {
		if (!f.m)
			return false;
		/* Copies: what comes between changes the shadow. */
		m = *f.m;
		f.m = &m;
		f.n = pick_map(a, MMR_WANT_MAP);
		n = f.n ? *f.n : m;
		f.n = &n;
		draw_part(&f);
	}
	add_lines(&f, lines);
	if (lines == r->setup && f.m)
		a->g->bound[word] = f.m->name;
	return true;
}

bool mmr_gen_recipe(struct mmr_gen_actor *a, const char *name)
{
	const struct mmr_recipe *r = mmr_recipe_find(name);
	int word = mmr_weights_find(&a->g->p->ops, name);

	if (!r || word < 0 || !fits(a, r) || !r->lines[0] ||
	    (r->setup[0] && !a->g->ready[word]))
		return false;
	if (!use(a, r, word, r->lines))
		return false;
	a->g->used[word] = 1;
	return true;
}

/* Ahead of all objects: nothing is drawn, and the shadow does not see it. */
static void set_up_early(struct mmr_gen_actor *a, const struct mmr_recipe *r)
{
	char text[TEXT];
	struct fill f = {.a = a, .out = text, .size = sizeof(text)};

	a->g->hidden = true;
	add_lines(&f, r->early);
	a->g->hidden = false;
}

void mmr_gen_recipe_set_up(struct mmr_gen_actor *a, bool early)
{
	const struct mmr_weights *ops = &a->g->p->ops;
	int i;

	a->g->in_setup = true;
	for (i = 0; i < ops->n && !a->g->failed; i++) {
		const struct mmr_recipe *r = mmr_recipe_find(ops->w[i].word);

		if (!r || !a->g->use[i] || !r->setup[0] || !fits(a, r))
			continue;
		if (early) {
			set_up_early(a, r);
			continue;
		}
		if (!use(a, r, i, r->setup))
			continue;
		a->g->ready[i] = a->g->used[i] = 1;
	}
	a->g->in_setup = false;
}

bool mmr_gen_recipe_serves(const struct mmr_gen *g)
{
	const struct mmr_weights *ops = &g->p->ops;
	int i;

	for (i = 0; i < ops->n; i++) {
		const struct mmr_recipe *r = mmr_recipe_find(ops->w[i].word);

		if (r && g->ready[i] && r->server[0])
			return true;
	}
	return false;
}

void mmr_gen_recipe_server(struct mmr_gen_actor *a, bool at_end)
{
	const struct mmr_weights *ops = &a->g->p->ops;
	int i;

	for (i = 0; i < ops->n && !a->g->failed; i++) {
		const struct mmr_recipe *r = mmr_recipe_find(ops->w[i].word);

		if (r && a->g->ready[i] && r->server[0])
			use(a, r, i, at_end ? r->closing : r->server);
	}
}

static bool has_need(const struct mmr_case *c, const struct mmr_need *n)
{
	int i;

	for (i = 0; i < c->nneeds; i++)
		if (c->needs[i].kind == n->kind &&
		    (!n->name || !strcmp(c->needs[i].name, n->name)))
			return true;
	return false;
}

static bool has_setting(const struct mmr_case *c, const char *name)
{
	int i;

	for (i = 0; i < c->nsettings; i++)
		if (!strcmp(c->settings[i].name, name))
			return true;
	return false;
}

static void add_head(struct mmr_gen *g, const struct mmr_recipe *r)
{
	char text[TEXT] = MAGIC;
	struct mmr_diag d = {0};
	struct mmr_case *c;
	int i;

	for (i = 0; i < MMR_RECIPE_LINES && r->head[i]; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%s\n", r->head[i]);
	snprintf(text + strlen(text), sizeof(text) - strlen(text),
		 "process main\nthread A\npause\n");
	if (mmr_case_parse(text, strlen(text), &c, &d, NULL, NULL)) {
		fprintf(stderr, "mmrace: fuzz/recipes: %s in\n%s", d.text,
			text);
		abort();
	}
	for (i = 0; i < c->nneeds; i++)
		if (!has_need(g->c, &c->needs[i]) &&
		    mmr_case_add_need(g->c, c->needs[i].kind, c->needs[i].n,
				      c->needs[i].name))
			g->failed = true;
	for (i = 0; i < c->nsettings; i++)
		if (!has_setting(g->c, c->settings[i].name) &&
		    mmr_case_add_setting(g->c, c->settings[i].name,
					 c->settings[i].value))
			g->failed = true;
	mmr_case_free(c);
}

void mmr_gen_recipe_heads(struct mmr_gen *g)
{
	int i;

	for (i = 0; i < g->p->ops.n && !g->failed; i++)
		if (g->used[i])
			add_head(g, mmr_recipe_find(g->p->ops.w[i].word));
}
