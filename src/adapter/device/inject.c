// SPDX-License-Identifier: BSD-2-Clause
/*
 * What happens on demand to the queues of a device (softhca inject, registry/fault.h): the error state of
 * queue pairs, and asynchronous events together with what leads to them on a card.
 */
#include "adapter/adapter.h"

#include "adapter/core/device.h"
#include "adapter/qp/qp.h"
#include "adapter/qp/qp_state.h"
#include "adapter/queue/cq.h"
#include "adapter/queue/recvq.h"
#include "base/explain.h"
#include "base/trace.h"
#include "registry/fault.h"

#define BY_INJECTION "softhca-inject"

struct injection {
	struct adapter *adapter;
	struct fault_view *view;
	uint32_t row;
	struct fault_counts *counts;
};

static const struct fault_rule *rule_of(const struct injection *i)
{
	return &i->view->rule[i->row];
}

static enum ib_event event_of(const struct fault_rule *r)
{
	return (enum ib_event)(r->event_plus_1 - 1);
}

static __attribute__((cold)) void rule_explain(const struct injection *i, const char *object,
					       uint32_t number)
{
	const struct wire *wire = i->adapter->wire;
	const struct fault_rule *r = rule_of(i);
	char port[SUBNET_PORT_TEXT];

	explain_line(number, "%s %s 0x%x: %s%s, because softhca inject says so",
		     subnet_port_text(wire_subnet(wire), wire_port_row(wire), port), object, number,
		     r->error_state ? "the error state" : "IBV_EVENT_",
		     r->error_state ? "" : ib_event_name(event_of(r)));
}

/* True if it happens to the object of that number, which it concerns. */
static bool rule_injects(const struct injection *i, const char *object, uint32_t number)
{
	const struct fault_rule *r = rule_of(i);

	if ((r->qpn && r->qpn != number) || !fault_view_fails(i->view, i->row, i->counts))
		return false;
	trace(object, injected, object, number,
	      r->error_state ? "error-state" : ib_event_name(event_of(r)));
	if (explaining())
		rule_explain(i, object, number);
	return true;
}

/* Calls fn with each object that has a number. */
static void numbers_walk(struct number_space *s, void (*fn)(struct injection *i, void *object),
			 struct injection *i)
{
	for (uint32_t chunk = s->first_chunk; chunk < s->end_chunk; chunk++) {
		/* It may be that of another process. */
		if (!atomic_load_explicit(&s->chunk[chunk], memory_order_acquire))
			continue;
		for (uint32_t n = 0; n < NUMBER_CHUNK; n++) {
			void *object = number_find(s, chunk * NUMBER_CHUNK + n);

			if (object)
				fn(i, object);
		}
	}
}

/* ---- queue pairs ---- */

/* A queue pair that tells of a connection, before the program has said that it has one. */
static bool may_be_established(const struct qp *qp)
{
	return qp_state(qp) == IB_QPS_RTR && qp_is_connected(qp);
}

static bool qp_can(const struct qp *qp, const struct fault_rule *r)
{
	enum ib_qp_state state = qp_state(qp);

	if (qp->rss || state == IB_QPS_RESET || state == IB_QPS_ERR)
		return false;
	return r->error_state || event_of(r) != IB_EVENT_COMM_EST || may_be_established(qp);
}

static void qp_inject(struct injection *i, void *object)
{
	const struct fault_rule *r = rule_of(i);
	struct qp *qp = object;

	if (!qp_can(qp, r) || !rule_injects(i, "queue-pair", qp->qpn))
		return;
	/* Who hears of the event finds the queue pair in the state that has led to it. */
	if (r->error_state || event_of(r) != IB_EVENT_COMM_EST)
		qp_fail(qp, BY_INJECTION);
	if (!r->error_state)
		qp_async(qp, event_of(r));
}

/* The device has failed as a whole. */
static void qp_inject_failed(struct injection *i, void *object)
{
	struct qp *qp = object;
	enum ib_qp_state state = qp_state(qp);

	(void)i;
	if (!qp->rss && state != IB_QPS_RESET)
		qp_fail(qp, BY_INJECTION);
}

/* ---- other queues ---- */

static void srq_inject(struct injection *i, void *object)
{
	bool error = event_of(rule_of(i)) == IB_EVENT_SRQ_ERR;
	struct srq *srq = object;

	if (error && !srq_has_failed(srq) &&
	    rule_injects(i, "shared-receive-queue", srq_number(srq)))
		srq_fail(srq);
	/* The event comes only to queues that have a limit. */
	if (!error && srq_limit(srq) && rule_injects(i, "shared-receive-queue", srq_number(srq)))
		srq_reach_limit(srq);
}

static bool cq_inject(void *user, uint32_t cqn)
{
	return rule_injects(user, "completion-queue", cqn);
}

void adapter_inject(struct adapter *a, struct fault_view *view, uint32_t row,
		    struct fault_counts *counts)
{
	struct injection i = {a, view, row, counts};

	switch (rule_of(&i)->object) {
	case FAULT_QUEUE_PAIR:
		numbers_walk(&a->qps, qp_inject, &i);
		break;
	case FAULT_DEVICE:
		numbers_walk(&a->qps, qp_inject_failed, &i);
		break;
	case FAULT_SHARED_RECEIVE_QUEUE:
		numbers_walk(&a->srqs, srq_inject, &i);
		break;
	case FAULT_COMPLETION_QUEUE:
		cqs_overrun(a, cq_inject, &i);
		break;
	default:
		break;
	}
	adapter_run(a);
}
