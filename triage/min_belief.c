// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Beliefs: how likely each element is needed, what to take away next by
 * them, and what a run says of them (Bayes' rule, elements taken as
 * independent, as in ProbDD).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "min_search.h"

#define TINY 1e-15

int mmr_belief_close(struct mmr_search *s)
{
	struct mmr_search_pass *p = s->pass;
	size_t have = 0, max = (size_t)p->n * 2 + 16;
	int *list, *more, i, j;

	free(p->list);
	p->list = NULL;
	list = malloc(max * sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (i = 0; i < p->n; i++) {
		p->at[i] = (int)have;
		memcpy(p->tmp, p->out, (size_t)p->n);
		if (!p->out[i] && s->ops->close) {
			p->tmp[i] = 1;
			s->ops->close(s->arg, p->tmp);
		} else if (!p->out[i]) {
			p->tmp[i] = 1;
		}
		for (j = 0; j < p->n; j++) {
			if (!p->tmp[j] || p->out[j])
				continue;
			if (have == max) {
				max *= 2;
				more = realloc(list, max * sizeof(*list));
				if (!more) {
					free(list);
					return -ENOMEM;
				}
				list = more;
			}
			list[have++] = j;
		}
	}
	p->at[p->n] = (int)have;
	p->list = list;
	return 0;
}

struct by_belief {
	double needed; /* that any of its closure is */
	int i;
};

static int compare(const void *a, const void *b)
{
	const struct by_belief *x = a, *y = b;

	if (x->needed != y->needed)
		return x->needed < y->needed ? -1 : 1;
	return x->i - y->i;
}

/* What may be tried, most promising first. */
static int candidates(const struct mmr_search_pass *p, const double *pi,
		      double most, struct by_belief *out)
{
	int i, k, n = 0;

	for (i = 0; i < p->n; i++) {
		double free_of = 1;

		if (p->out[i])
			continue;
		for (k = p->at[i]; k < p->at[i + 1]; k++)
			free_of *= 1 - pi[p->list[k]];
		if (1 - free_of >= most)
			continue;
		out[n].needed = 1 - free_of;
		out[n++].i = i;
	}
	qsort(out, (size_t)n, sizeof(*out), compare);
	return n;
}

static int count(const uint8_t *set, int n)
{
	int i, k = 0;

	for (i = 0; i < n; i++)
		k += set[i];
	return k;
}

/* The first k candidates with their closures, and what goes with all of them
 * together; how many, 0 when something needed would go. */
static int gather(const struct mmr_search *s, const struct by_belief *c, int k,
		  const double *pi, double most, uint8_t *gone)
{
	const struct mmr_search_pass *p = s->pass;
	int i, j;

	memcpy(gone, p->out, (size_t)p->n);
	for (i = 0; i < k; i++)
		for (j = p->at[c[i].i]; j < p->at[c[i].i + 1]; j++)
			gone[p->list[j]] = 1;
	if (s->ops->close)
		s->ops->close(s->arg, gone);
	for (i = 0; i < p->n; i++) {
		gone[i] = gone[i] && !p->out[i];
		if (gone[i] && pi[i] >= most)
			return 0;
	}
	return count(gone, p->n);
}

static double none_needed(const uint8_t *set, const double *pi, int n)
{
	double q = 1;
	int i;

	for (i = 0; i < n; i++)
		if (set[i])
			q *= 1 - pi[i];
	return q;
}

int mmr_belief_pick(const struct mmr_search *s, const double *pi, double most,
		    uint8_t *gone, double *belief)
{
	const struct mmr_search_pass *p = s->pass;
	struct by_belief *c = malloc((size_t)p->n * sizeof(*c) + 1);
	uint8_t *set = p->tmp + p->n;
	double q = 1, best = -1;
	int n, k, i, best_k = 0, size = 0, got = 0;

	*belief = 0;
	if (!c)
		return -ENOMEM;
	n = candidates(p, pi, most, c);
	memset(set, 0, (size_t)p->n);
	for (k = 0; k < n; k++) {
		for (i = p->at[c[k].i]; i < p->at[c[k].i + 1]; i++) {
			if (set[p->list[i]])
				continue;
			set[p->list[i]] = 1;
			size++;
			q *= 1 - pi[p->list[i]];
		}
		if (size * q > best) {
			best = size * q;
			best_k = k + 1;
		}
	}
	for (k = best_k; k > 0 && !got; k--)
		got = gather(s, c, k, pi, most, gone);
	/* The most promising one may be what cannot go: then any other. */
	for (k = 1; k < n && !got; k++)
		got = gather(s, c + k, 1, pi, most, gone);
	if (got)
		*belief = none_needed(gone, pi, p->n);
	free(c);
	return got;
}

void mmr_belief_miss(double *pi, const uint8_t *set, int n, double like)
{
	double q = none_needed(set, pi, n);
	int i;

	for (i = 0; i < n; i++) {
		double others, unneeded;

		if (!set[i])
			continue;
		others = q / (1 - pi[i] + TINY);
		unneeded = (1 - pi[i]) * (1 - like * others);
		pi[i] = pi[i] / (pi[i] + unneeded + TINY);
	}
}

void mmr_belief_hit(double *pi, const uint8_t *set, int n, double p, double f)
{
	double q = none_needed(set, pi, n);
	int i;

	for (i = 0; i < n; i++) {
		double others, hit;

		if (!set[i])
			continue;
		others = q / (1 - pi[i] + TINY);
		hit = p * others + f * (1 - others);
		pi[i] = pi[i] * f / (pi[i] * f + (1 - pi[i]) * hit + TINY);
	}
}
