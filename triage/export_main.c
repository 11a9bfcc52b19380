/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of an exported C file or kselftest: main(), and what every round
 * does in each of the forms. */
#include <string.h>

#include "export_c.h"

#define PUT MMR_EXPORT_PUT
#define uses mmr_export_uses

static const char *tabs(int n)
{
	return &"\t\t\t\t"[4 - n];
}

/* What main(), or LTP's setup(), finds out once. */
void mmr_export_setup(struct mmr_export *x)
{
	if (uses(x, MMR_USED_PAGE))
		PUT(x, "\tpage = getpagesize();\n");
	if (uses(x, MMR_USED_HUGE))
		PUT(x,
		    x->to == MMR_EXPORT_LTP
			    ? "\thuge = tst_get_hugepage_size();\n"
			    : "\thuge = meminfo(\"Hugepagesize: %%lu\") << 10;"
			      "\n");
	if (x->pins)
		PUT(x, "\tsched_getaffinity(0, sizeof(allowed), &allowed);\n");
	if (x->shares && !x->own_shared)
		PUT(x,
		    "\tshared = %s(NULL, sizeof(*shared), PROT_READ | "
		    "PROT_WRITE,\n\t\t%s   MAP_SHARED | MAP_ANONYMOUS, -1, "
		    "0);\n",
		    x->to == MMR_EXPORT_LTP ? "SAFE_MMAP" : "mmap",
		    x->to == MMR_EXPORT_LTP ? "\t" : "   ");
	if (uses(x, MMR_USED_RECOVER))
		PUT(x, "\tsigaction(SIGSEGV, &to_on_fault, NULL);\n"
		       "\tsigaction(SIGBUS, &to_on_fault, NULL);\n");
	if (x->leaves || !x->whole)
		PUT(x, "\tprctl(PR_SET_CHILD_SUBREAPER, 1);\n");
}

static void put_parties(struct mmr_export *x, const char *sync)
{
	PUT(x, "%sshared->sync_%s.parties = %d;\n", tabs(x->e.indent), sync,
	    mmr_export_parties(x->c, sync));
}

/* What has to be there before a round's first statement. */
static void put_round_state(struct mmr_export *x)
{
	const char *tab = tabs(x->e.indent), *where = mmr_export_where(x);
	int i, j;

	if (x->shares && !x->own_shared)
		PUT(x, "%s*shared = (struct shared){ 0 };\n", tab);
	if (!x->e.one_meet)
		mmr_export_names(x, MMR_ARG_SYNC, put_parties);
	for (i = 0; i < x->c->nprocs && !x->simple; i++) {
		const struct mmr_proc *p = x->c->procs[i];

		for (j = 0; j < p->nthreads; j++)
			if (mmr_export_is_plain(p, p->threads[j]) &&
			    mmr_export_is_awaited(x->c, MMR_UNTIL_DONE,
						  p->threads[j]->name))
				PUT(x, "%s%sspawned_%s = %d;\n", tab, where,
				    p->threads[j]->name, p->copies);
	}
}

bool mmr_export_has_array(const struct mmr_export *x)
{
	return x->nplain > 1 ||
	       (!x->whole && !x->simple &&
		mmr_export_is_awaited(x->c, MMR_UNTIL_EXITED,
				      mmr_export_first_plain(x->c)->name));
}

static void put_plain(struct mmr_export *x)
{
	const char *tab = tabs(x->e.indent);
	int i, k, n = 0;

	PUT(x,
	    "%sfor (int k = 0; k < PLAIN; k++)\n"
	    "%s\tplain[k] = start(bodies[k], plain[0]);\n",
	    tab, tab);
	for (i = 0; i < x->c->nprocs; i++) {
		const struct mmr_proc *p = x->c->procs[i];

		for (k = 0; !p->is_template && k < p->copies; k++, n++)
			if (mmr_export_is_awaited(x->c, MMR_UNTIL_EXITED,
						  p->name))
				PUT(x, "%sshared->pids_%s[%d] = plain[%d];\n",
				    tab, p->name, k, n);
	}
}

static void put_fork(struct mmr_export *x, const char *process)
{
	PUT(x,
	    "\t\tpid = fork();\n"
	    "\t\tif (pid < 0)\n\t\t\terr(%s, \"fork\");\n"
	    "\t\tif (!pid) {\n"
	    "\t\t\tprctl(PR_SET_PDEATHSIG, SIGKILL);\n"
	    "\t\t\tproc_%s();\n\t\t\t_exit(0);\n\t\t}\n",
	    x->to == MMR_EXPORT_C ? "4" : "KSFT_SKIP", process);
}

void mmr_export_fail(struct mmr_export *x, int indent, const char *what)
{
	const char *tab = tabs(indent), *arg = what ? "i" : "i, wrong";

	if (!what)
		what = "%s";
	if (x->to == MMR_EXPORT_C)
		PUT(x, "%serrx(1, \"round %%d %s\", %s);\n", tab, what, arg);
	else if (x->to == MMR_EXPORT_LTP)
		PUT(x, "%stst_brk(TFAIL, \"round %%d %s\", %s);\n", tab, what,
		    arg);
	else
		PUT(x,
		    "%sksft_test_result_fail(\"round %%d %s\\n\",%s%s);\n"
		    "%sksft_finished();\n",
		    tab, what, indent > 3 ? "\n\t\t\t\t\t\t      " : " ", arg,
		    tab);
}

void mmr_export_fail_if(struct mmr_export *x, const char *condition,
			const char *what)
{
	bool two = x->to == MMR_EXPORT_KSELFTEST;

	PUT(x, "\t\tif (%s)%s\n", condition, two ? " {" : "");
	mmr_export_fail(x, 3, what);
	if (two)
		PUT(x, "\t\t}\n");
}

static void start_and_watch(struct mmr_export *x)
{
	const char *end = !x->whole && mmr_export_has_budget(x) ? ", end" : "";
	const char *group = x->e.groups ? ", 0" : "";
	const char *name = mmr_export_first_plain(x->c)->name;

	if (mmr_export_has_array(x)) {
		put_plain(x);
		PUT(x, "\t\twrong = watch(plain%s);\n", end);
	} else if (!mmr_export_has_start(x)) {
		put_fork(x, name);
		if (mmr_export_has_watch(x))
			PUT(x, "\t\twrong = watch(pid%s);\n", end);
	} else if (mmr_export_has_watch(x)) {
		PUT(x, "\t\twrong = watch(start(proc_%s%s)%s);\n", name, group,
		    end);
	} else {
		PUT(x, "\t\tstart(proc_%s%s);\n", name, group);
	}
}

void mmr_export_put_round(struct mmr_export *x)
{
	x->e.indent = 2;
	if (mmr_export_has_array(x))
		PUT(x, "\t\tpid_t plain[PLAIN] = { 0 };\n\n");
	put_round_state(x);
	start_and_watch(x);
	if (mmr_export_has_watch(x))
		mmr_export_fail_if(x, "wrong", NULL);
	else
		mmr_export_wait(x);
	if (x->content)
		mmr_export_fail_if(x, "shared->foreign",
				   "reads what nobody wrote");
}

/* What the round needs at the top of its function. */
void mmr_export_put_locals(struct mmr_export *x)
{
	if (mmr_export_has_watch(x))
		PUT(x, "\tconst char *wrong;\n");
	else
		PUT(x, "\tint status%s;\n", x->counts ? "" : ", ms");
	if (!mmr_export_has_start(x) && !mmr_export_has_array(x))
		PUT(x, "\tpid_t pid;\n");
}

static void put_rounds(struct mmr_export *x)
{
	bool is_c = x->to == MMR_EXPORT_C;

	PUT(x, "\tfor (int i = 0; i < %s%s; i++) {\n",
	    x->c->keep ? "1" : "ROUNDS",
	    mmr_export_has_budget(x) ? " && time(NULL) < end" : "");
	mmr_export_put_round(x);
	if (uses(x, MMR_USED_UFFD))
		PUT(x, is_c ? "\t\tif (shared->missing)\n"
			      "\t\t\terrx(4, \"no %%s here\", "
			      "shared->missing);\n"
			    : "\t\tif (shared->missing)\n"
			      "\t\t\tksft_exit_skip(\"no %%s here\\n\", "
			      "shared->missing);\n");
	PUT(x, "\t}\n");
}

/* Text inside a string. */
static void put_string(struct mmr_export *x, const char *s)
{
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', x->out);
		else if (*s == '%')
			fputc('%', x->out);
		fputc(*s, x->out);
	}
}

bool mmr_export_has_budget(const struct mmr_export *x)
{
	return x->c->budget_ns && x->to != MMR_EXPORT_LTP;
}

void mmr_export_main(struct mmr_export *x)
{
	bool is_c = x->to == MMR_EXPORT_C;

	PUT(x, "int main(void)\n{\n");
	if (mmr_export_has_budget(x))
		PUT(x, "\ttime_t end = time(NULL) + BUDGET;\n");
	mmr_export_before(x);
	mmr_export_put_locals(x);
	if (mmr_export_has_need(x, MMR_NEED_ARCH))
		PUT(x, "\tstruct utsname uts;\n");
	PUT(x, "\n");
	if (!is_c)
		PUT(x, "\tksft_print_header();\n");
	mmr_export_needs(x);
	if (!is_c)
		PUT(x, "\tksft_set_plan(1);\n");
	mmr_export_setup(x);
	put_rounds(x);
	mmr_export_after(x);
	if (is_c) {
		PUT(x, "\treturn 0;\n}\n");
		return;
	}
	PUT(x, "\tksft_test_result_pass(\"");
	put_string(x, x->c->title ? x->c->title : "every round ends");
	PUT(x, "\\n\");\n\tksft_finished();\n}\n");
}

/* --- what is not the file itself --- */

char *mmr_export_name(const char *from, char *buf, size_t n)
{
	const char *slash = strrchr(from, '/');
	size_t len = 0;

	for (from = slash ? slash + 1 : from; *from && *from != '.'; from++) {
		char ch = *from;

		if (ch >= 'A' && ch <= 'Z')
			ch = (char)(ch - 'A' + 'a');
		if (!(ch >= 'a' && ch <= 'z') && !(ch >= '0' && ch <= '9'))
			ch = '_';
		if (len + 1 < n && (ch != '_' || (len && buf[len - 1] != '_')))
			buf[len++] = ch;
	}
	while (len && buf[len - 1] == '_')
		len--;
	if (len < n)
		buf[len] = '\0';
	if (!len)
		snprintf(buf, n, "mm_race");
	return buf;
}

int mmr_export_form(const char *word)
{
	static const char *const words[] = {
		[MMR_EXPORT_C] = "c",
		[MMR_EXPORT_LTP] = "ltp",
		[MMR_EXPORT_KSELFTEST] = "kselftest",
	};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i], word))
			return (int)i;
	return -1;
}

void mmr_export_line(const struct mmr_case *c, enum mmr_export_to to,
		     const char *name, FILE *out)
{
	char made[64];

	if (!name)
		name = mmr_export_name(c->title ? c->title : "", made,
				       sizeof(made));
	if (to == MMR_EXPORT_LTP)
		mmr_export_ltp_line(c, name, out);
	else if (to == MMR_EXPORT_KSELFTEST)
		fprintf(out, "# %s\nCATEGORY=\"race\" run_test ./%s\n",
			c->title ? c->title : "a race or a stall", name);
}
