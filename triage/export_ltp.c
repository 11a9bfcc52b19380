/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end of an exported test for LTP's new library: setup, the rounds, and
 * struct tst_test, whose fields (LTP's include/tst_test.h describes them) take
 * the place of code wherever there is one.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/setting.h"
#include "export_c.h"

#define PUT MMR_EXPORT_PUT
#define uses mmr_export_uses

/* LTP's own runs have to end some time, s. */
#define LONGEST 3600

/* Since when the kernel has it, and what has to be configured (from the
 * kernel's own history and init/Kconfig). */
static const struct known {
	const char *name, *since, *config;
} known[] = {
	{"cachestat", "6.5", NULL},
	{"clone3", "5.3", NULL},
	{"mbind", NULL, "CONFIG_NUMA"},
	{"memfd_secret", "5.14", "CONFIG_SECRETMEM"},
	{"migrate_pages", NULL, "CONFIG_NUMA"},
	{"move_pages", NULL, "CONFIG_NUMA"},
	{"mseal", "6.10", NULL},
	{"pidfd_open", "5.3", NULL},
	{"pidfd_send_signal", "5.1", NULL},
	{"process_madvise", "5.10", NULL},
	{"process_mrelease", "5.15", NULL},
	{"process_vm_readv", NULL, "CONFIG_CROSS_MEMORY_ATTACH"},
	{"process_vm_writev", NULL, "CONFIG_CROSS_MEMORY_ATTACH"},
	{"set_mempolicy", NULL, "CONFIG_NUMA"},
	{"set_mempolicy_home_node", "5.17", "CONFIG_NUMA"},
	{"userfaultfd", NULL, "CONFIG_USERFAULTFD"},
};

static const struct known *find_known(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].name, name))
			return &known[i];
	return NULL;
}

static int64_t largest_need(const struct mmr_case *c, enum mmr_need_kind kind)
{
	int64_t n = 0;
	int i;

	for (i = 0; i < c->nneeds; i++)
		if (c->needs[i].kind == kind && c->needs[i].n > n)
			n = c->needs[i].n;
	return n;
}

/* All runs that show the symptom with 95 % may take that long; those of the
 * other forms are one run. */
int64_t mmr_export_runtime(const struct mmr_export *x)
{
	int64_t runs = x->to == MMR_EXPORT_LTP ? mmr_export_runs(x->c) : 1;

	if (!x->c->budget_ns)
		return LONGEST;
	if (runs < 1)
		runs = 1;
	if (runs > LONGEST / x->budget_s)
		return x->budget_s > LONGEST ? x->budget_s : LONGEST;
	return runs * x->budget_s;
}

static void put_setup(struct mmr_export *x)
{
	PUT(x, "static void setup(void)\n{\n");
	mmr_export_needs(x);
	mmr_export_setup(x);
	PUT(x, "}\n\n");
}

static bool has_setup(struct mmr_export *x)
{
	return mmr_export_is_lasting(x) ||
	       uses(x, MMR_USED_PAGE | MMR_USED_HUGE | MMR_USED_RECOVER) ||
	       x->pins || x->shares || x->leaves || !x->whole ||
	       mmr_export_has_need(x, MMR_NEED_NODES) ||
	       mmr_export_has_need(x, MMR_NEED_CAP) ||
	       mmr_export_has_need(x, MMR_NEED_SYSCALL) ||
	       mmr_export_has_need(x, MMR_NEED_FEATURE) ||
	       mmr_export_has_need(x, MMR_NEED_MEMCG) ||
	       mmr_export_has_need(x, MMR_NEED_SWAP) ||
	       mmr_export_has_need(x, MMR_NEED_THP);
}

static void put_run(struct mmr_export *x)
{
	PUT(x, "static void run(void)\n{\n");
	mmr_export_before(x);
	mmr_export_put_locals(x);
	PUT(x,
	    "\tint i;\n\n"
	    "\tfor (i = 0; i < %s && tst_remaining_runtime(); i++) {\n",
	    x->c->keep ? "1" : "ROUNDS");
	mmr_export_put_round(x);
	if (uses(x, MMR_USED_UFFD))
		PUT(x, "\t\tif (shared->missing)\n"
		       "\t\t\ttst_brk(TCONF, \"no %%s here\", "
		       "shared->missing);\n");
	PUT(x, "\t}\n");
	mmr_export_after(x);
	if (x->c->keep)
		PUT(x,
		    "\ttst_res(TPASS, \"all rounds ended in time\");\n}\n\n");
	else
		PUT(x, "\ttst_res(TPASS, \"%%d rounds ended in time\", i);\n"
		       "}\n\n");
}

static void put_needs(struct mmr_export *x)
{
	const struct mmr_case *c = x->c;
	int64_t n;
	int i;

	if (mmr_export_has_need(x, MMR_NEED_CAP) ||
	    mmr_export_has_need(x, MMR_NEED_NOCAP) ||
	    mmr_export_has_need(x, MMR_NEED_HUGEPAGES) || c->nsettings ||
	    x->writes)
		PUT(x, "\t.needs_root = 1,\n");
	n = largest_need(c, MMR_NEED_CPUS);
	if (n > 1)
		PUT(x, "\t.min_cpus = %" PRId64 ",\n", n);
	n = largest_need(c, MMR_NEED_MEMORY);
	if (n)
		PUT(x, "\t.min_mem_avail = %" PRId64 ",\n", n >> 20);
	n = largest_need(c, MMR_NEED_HUGEPAGES);
	if (n)
		PUT(x, "\t.hugepages = {%" PRId64 ", TST_NEEDS},\n", n);
	for (i = 0; i < c->nneeds; i++)
		if (c->needs[i].kind == MMR_NEED_ARCH)
			PUT(x,
			    "\t.supported_archs = (const char *const []){\n"
			    "\t\t\"%s\",\n\t\tNULL\n\t},\n",
			    c->needs[i].name);
	for (i = 0, n = 0; i < c->nneeds; i++)
		if (c->needs[i].kind == MMR_NEED_NOCAP)
			PUT(x, "%s\t\tTST_CAP(TST_CAP_DROP, %s),\n",
			    n++ ? "" : "\t.caps = (struct tst_cap []){\n",
			    c->needs[i].name);
	if (n)
		PUT(x, "\t\t{}\n\t},\n");
}

/* Version numbers: "5.9" is older than "5.10". */
static bool is_newer(const char *a, const char *b)
{
	int a1 = atoi(a), b1 = atoi(b);

	if (a1 != b1)
		return a1 > b1;
	return atoi(strchr(a, '.') + 1) > atoi(strchr(b, '.') + 1);
}

static void put_config(struct mmr_export *x, const char *config, int *n)
{
	if (!*n)
		PUT(x, "\t.needs_kconfigs = (const char *const []){\n");
	PUT(x, "\t\t\"%s=y\",\n", config);
	++*n;
}

static void put_kernel(struct mmr_export *x)
{
	const struct mmr_case *c = x->c;
	const struct known *k, *configs[MMR_CASE_MAX_NAMES];
	const char *since = NULL;
	int i, j, n = 0, nconfigs = 0;

	for (i = 0; i < c->nneeds; i++) {
		if (c->needs[i].kind != MMR_NEED_SYSCALL)
			continue;
		k = find_known(c->needs[i].name);
		if (k && k->since && (!since || is_newer(k->since, since)))
			since = k->since;
		for (j = 0; k && k->config && j < nconfigs; j++)
			if (!strcmp(configs[j]->config, k->config))
				break;
		if (k && k->config && j == nconfigs &&
		    nconfigs < MMR_CASE_MAX_NAMES)
			configs[nconfigs++] = k;
	}
	if (since)
		PUT(x, "\t.min_kver = \"%s\",\n", since);
	for (i = 0; i < nconfigs; i++)
		put_config(x, configs[i]->config, &n);
	if (mmr_export_has_need(x, MMR_NEED_THP))
		put_config(x, "CONFIG_TRANSPARENT_HUGEPAGE", &n);
	if (mmr_export_has_need(x, MMR_NEED_HUGEPAGES))
		put_config(x, "CONFIG_HUGETLBFS", &n);
	if (mmr_export_has_need(x, MMR_NEED_NODES) && !nconfigs)
		put_config(x, "CONFIG_NUMA", &n);
	if (n)
		PUT(x, "\t\tNULL\n\t},\n");
}

static void put_settings(struct mmr_export *x)
{
	uint64_t named = 0;
	char value[32];
	int i;

	if (!x->c->nsettings && !x->writes)
		return;
	PUT(x, "\t.save_restore = (const struct tst_path_val []){\n");
	for (i = 0; i < x->c->nsettings; i++) {
		const struct mmr_setting *s = &x->c->settings[i];
		int index = mmr_setting_index(s->name);

		if (index < 0)
			continue;
		named |= 1ULL << index;
		PUT(x, "\t\t{\"%s\", \"%s\", TST_SR_TCONF},\n",
		    mmr_setting_table[index].path,
		    mmr_setting_text(index, s->value, value, sizeof(value)));
	}
	for (i = 0; mmr_setting_table[i].name; i++)
		if ((x->writes & ~named) >> i & 1)
			PUT(x, "\t\t{\"%s\", NULL, TST_SR_TCONF},\n",
			    mmr_setting_table[i].path);
	PUT(x, "\t\t{}\n\t},\n");
}

void mmr_export_ltp(struct mmr_export *x)
{
	if (has_setup(x))
		put_setup(x);
	put_run(x);
	PUT(x, "static struct tst_test test = {\n");
	if (has_setup(x))
		PUT(x, "\t.setup = setup,\n");
	PUT(x,
	    "\t.test_all = run,\n\t.forks_child = 1,\n"
	    "\t.runtime = %" PRId64 ",\n",
	    mmr_export_runtime(x));
	if (x->limit_ms > 10000) /* the library gives 30 s more than that */
		PUT(x, "\t.timeout = %" PRId64 ",\n", x->limit_ms / 1000 * 3);
	PUT(x, "\t.taint_check = TST_TAINT_W | TST_TAINT_D,\n");
	put_needs(x);
	put_kernel(x);
	put_settings(x);
	if (x->c->fixed_commit)
		PUT(x,
		    "\t.tags = (const struct tst_tag []){\n"
		    "\t\t{\"linux-git\", \"%s\"},\n\t\t{}\n\t}\n",
		    x->c->fixed_commit);
	PUT(x, "};\n");
}

void mmr_export_ltp_line(const struct mmr_case *c, const char *name, FILE *out)
{
	fprintf(out, "# %s\n%s %s\n", c->title ? c->title : "a race or a stall",
		name, name);
}
