// SPDX-License-Identifier: BSD-2-Clause
/* See inject.h. */
#include "driver/uverbs/core/inject.h"

#include <string.h>
#include <strings.h>

#include "base/explain.h"
#include "base/spin.h"
#include "base/trace.h"
#include "driver/uverbs/core/event.h"
#include "driver/uverbs/core/file.h"
#include "registry/fault.h"
#include "registry/registry.h"

/* What the process knows of the rules for calls, for all of its devices. */
static struct {
	struct spin lock;
	struct fault_view view;
} calls;

/* The same for objects; the control thread's own. */
static struct fault_view objects;

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
	const char *a2 = name_bare(name), *b2 = asked, *a1, *b1;
	size_t na1 = word_next(&a2, &a1), nb1 = word_next(&b2, &b1);
	size_t na2 = strlen(a2), nb2 = strlen(b2);

	return (words_equal(a1, na1, b1, nb1) && words_equal(a2, na2, b2, nb2)) ||
	       (words_equal(a1, na1, b2, nb2) && words_equal(a2, na2, b1, nb1));
}

/* ---- rules ---- */

static bool rule_concerns_call(const struct ufile *f, const struct fault_rule *r, const char *name)
{
	return r->set && r->kind == FAULT_CALLS && call_is(name, r->call) &&
	       (!r->from_row_plus_1 || r->from_row_plus_1 == f->hca->port_row + 1) &&
	       (!r->from_host_plus_1 || r->from_host_plus_1 == f->hca->node->host + 1);
}

/* Returns the error of the first rule that lets the call fail, or 0. */
static int calls_judge(const struct ufile *f, const char *name)
{
	for (uint32_t row = 0; row < calls.view.n; row++) {
		const struct fault_rule *r = &calls.view.rule[row];

		if (rule_concerns_call(f, r, name) &&
		    fault_view_fails(&calls.view, row, &f->process->slot->faults[row]))
			return r->error;
	}
	return 0;
}

void inject_fork_child(void)
{
	memset(&calls, 0, sizeof(calls));
	memset(&objects, 0, sizeof(objects));
}

int inject_call(const struct ufile *f, const char *name)
{
	int error;

	if (likely(!(atomic_load_explicit(&f->process->slot->observers, memory_order_relaxed) &
		     SLOT_HAS_FAULTS)))
		return 0;
	spin_lock(&calls.lock);
	(void)fault_view_refresh(&calls.view, &f->process->registry->faults);
	error = calls_judge(f, name);
	spin_unlock(&calls.lock);
	if (error && explaining())
		(void)explain_reason("softhca inject says so");
	return -error;
}

/* ---- objects ---- */

static bool rule_concerns_hca(const struct fault_rule *r, const struct hca *h)
{
	return !r->from_host_plus_1 || r->from_host_plus_1 == h->node->host + 1;
}

static bool rule_concerns_port(const struct fault_rule *r, uint32_t port_row)
{
	return !r->from_row_plus_1 || r->from_row_plus_1 == port_row + 1;
}

static bool rule_injects(const char *object, uint32_t number, uint32_t row,
			 struct fault_counts *counts)
{
	enum ib_event event = (enum ib_event)(objects.rule[row].event_plus_1 - 1);

	if (!fault_view_fails(&objects, row, counts))
		return false;
	trace(object, injected, object, number, ib_event_name(event));
	if (explaining())
		explain_line(event, "%s %u: IBV_EVENT_%s, because softhca inject says so", object,
			     number, ib_event_name(event));
	return true;
}

/* The device fails as a whole. */
static void inject_device(struct hca *h, uint32_t row, struct fault_counts *counts)
{
	if (!uverbs_event_is_heard(h->port_row) || !rule_injects("device", h->index, row, counts))
		return;
	adapter_inject(h->adapter, &objects, row, counts);
	uverbs_event_device(h->port_row, (enum ib_event)(objects.rule[row].event_plus_1 - 1));
}

/* The event of ports of a device. */
static void inject_ports(const struct hca *h, uint32_t row, struct fault_counts *counts)
{
	const struct fault_rule *r = &objects.rule[row];
	enum ib_event event = (enum ib_event)(r->event_plus_1 - 1);

	for (uint32_t i = 0; i < h->node->nports; i++)
		if (fault_port_raises(h->port->ethernet, event) &&
		    rule_concerns_port(r, h->port_row + i) &&
		    uverbs_event_is_heard(h->port_row + i) &&
		    rule_injects("port", i + 1, row, counts))
			uverbs_event_port(h->port_row + i, event);
}

void inject_objects(struct process *p, uint32_t row)
{
	struct fault_counts *counts = &p->slot->faults[row];
	const struct fault_rule *r = &objects.rule[row];

	/* A rule that has not changed has happened. */
	if (!(fault_view_refresh(&objects, &p->registry->faults) >> row & 1) || !r->set ||
	    r->kind != FAULT_OBJECTS)
		return;
	for (uint32_t i = 0; i < p->nhcas; i++) {
		struct hca *h = &p->hcas[i];

		if (!rule_concerns_hca(r, h))
			continue;
		if (r->object == FAULT_PORT)
			inject_ports(h, row, counts);
		else if (!rule_concerns_port(r, h->port_row))
			continue;
		else if (r->object == FAULT_DEVICE)
			inject_device(h, row, counts);
		else
			adapter_inject(h->adapter, &objects, row, counts);
	}
}
