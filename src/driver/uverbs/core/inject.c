// SPDX-License-Identifier: BSD-2-Clause
/* See inject.h. */
#include "driver/uverbs/core/inject.h"

#include <string.h>
#include <strings.h>

#include "base/explain.h"
#include "base/spin.h"
#include "base/trace.h"
#include "driver/uverbs/core/file.h"
#include "registry/fault.h"
#include "registry/registry.h"

/* What the process knows of the rules, for all of its devices. */
static struct {
	struct spin lock;
	uint32_t sequence, n;
	struct fault_rule rule[FAULT_RULES];
	uint64_t met[FAULT_RULES];
} calls;

/* ---- names ---- */

/* The word of the name that begins at *at: its length, and *at behind it. */
static size_t word_next(const char **at, const char **word)
{
	size_t n = strcspn(*at, "_");

	*word = *at;
	*at += n + ((*at)[n] == '_');
	return n;
}

static bool words_equal(const char *a, size_t na, const char *b, size_t nb)
{
	return na == nb && !strncasecmp(a, b, na);
}

/* Without what says only by which way the call comes. */
static const char *name_bare(const char *name)
{
	static const char *const prefixes[] = {"UVERBS_METHOD_", "MLX5_IB_METHOD_", "EX_"};

	for (size_t i = 0; i < array_size(prefixes); i++) {
		size_t n = strlen(prefixes[i]);

		if (!strncmp(name, prefixes[i], n))
			name += n;
	}
	return name;
}

/* True for "create_qp", which users write, and "CREATE_QP" or "QP_CREATE", which the tables have. */
static bool call_is(const char *name, const char *asked)
{
	const char *a = name_bare(name), *b = asked, *a1, *a2, *b1, *b2;
	size_t na1 = word_next(&a, &a1), nb1 = word_next(&b, &b1);
	size_t na2 = strlen(a), nb2 = strlen(b);

	a2 = a;
	b2 = b;
	return (words_equal(a1, na1, b1, nb1) && words_equal(a2, na2, b2, nb2)) ||
	       (words_equal(a1, na1, b2, nb2) && words_equal(a2, na2, b1, nb1));
}

/* ---- rules ---- */

static void calls_refresh(const struct registry *r)
{
	struct fault_rule rule[FAULT_RULES];

	if (!fault_rules_copy(&r->faults, &calls.sequence, rule, &calls.n))
		return;
	for (uint32_t row = 0; row < FAULT_RULES; row++)
		if (rule[row].set != calls.rule[row].set)
			calls.met[row] = 0;
	memcpy(calls.rule, rule, sizeof(rule));
}

static bool rule_concerns_call(const struct ufile *f, const struct fault_rule *r, const char *name)
{
	return r->set && r->kind == FAULT_CALLS && call_is(name, r->call) &&
	       (!r->from_row_plus_1 || r->from_row_plus_1 == f->hca->port_row + 1) &&
	       (!r->from_host_plus_1 || r->from_host_plus_1 == f->hca->node->host + 1);
}

/* Returns the error of the first rule that lets the call fail, or 0. */
static int calls_judge(const struct ufile *f, const char *name)
{
	for (uint32_t row = 0; row < calls.n; row++) {
		const struct fault_rule *r = &calls.rule[row];
		struct fault_counts *counts = &f->process->slot->faults[row];

		if (!rule_concerns_call(f, r, name))
			continue;
		calls.met[row]++;
		atomic_fetch_add(&counts->seen, 1);
		if (!fault_chooses(r, calls.met[row]) ||
		    (r->some_ppm && fault_draw(r, 0, calls.met[row], FAULT_ALL) >= r->some_ppm))
			continue;
		atomic_fetch_add(&counts->done, 1);
		return r->error;
	}
	return 0;
}

int inject_call(const struct ufile *f, const char *name)
{
	int error;

	if (likely(!(atomic_load_explicit(&f->process->slot->observers, memory_order_relaxed) &
		     SLOT_HAS_FAULTS)))
		return 0;
	spin_lock(&calls.lock);
	calls_refresh(f->process->registry);
	error = calls_judge(f, name);
	spin_unlock(&calls.lock);
	if (error && explaining())
		(void)explain_reason("softhca inject says so");
	return -error;
}
