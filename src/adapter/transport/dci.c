// SPDX-License-Identifier: BSD-2-Clause
/* The initiator; see dc.h. */
#include "adapter/transport/dc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/qp/path.h"
#include "adapter/qp/qp.h"
#include "adapter/qp/send_cqe.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/trace.h"
#include "wire/route.h"

struct dci *dci_create(const struct qp_create_attr *attr)
{
	struct dci *d = calloc(1, sizeof(*d));

	if (d && attr->dc_streams)
		d->errored_max = 1u << attr->log_dc_errored;
	return d;
}

void dci_reset(struct dci *d)
{
	atomic_store(&d->connected, false);
	atomic_store(&d->errored, 0);
	d->closing = false;
	d->stream = 0;
}

/* ---- streams ---- */

/* The index of a stream in the list of errored streams; 'errored' if it is not in it. */
static uint32_t find_errored(struct dci *d, uint16_t stream)
{
	uint32_t n = atomic_load_explicit(&d->errored, memory_order_relaxed), i = 0;

	while (i < n && d->errored_stream[i] != stream)
		i++;
	return i;
}

static bool is_errored(struct qp *qp, uint16_t stream)
{
	struct dci *d = qp->dci;
	bool found;

	if (likely(!atomic_load_explicit(&d->errored, memory_order_acquire)))
		return false;
	spin_lock(&qp->comp.lock);
	found = find_errored(d, stream) < atomic_load(&d->errored);
	spin_unlock(&qp->comp.lock);
	return found;
}

int qp_reset_stream(struct qp *qp, uint16_t stream)
{
	struct dci *d = qp->dci;
	uint32_t n, i;
	int ret = -EINVAL;

	if (!d)
		return -EINVAL;
	spin_lock(&qp->comp.lock);
	n = atomic_load(&d->errored);
	i = find_errored(d, stream);
	if (i < n) {
		d->errored_stream[i] = d->errored_stream[n - 1];
		atomic_store(&d->errored, n - 1);
		ret = 0;
	}
	spin_unlock(&qp->comp.lock);
	return ret;
}

bool dci_contain(struct qp *qp)
{
	struct dci *d = qp->dci;
	uint32_t n = atomic_load(&d->errored);

	atomic_store(&d->connected, false);
	if (!d->errored_max)
		return false;
	/* this request was under way when its stream failed */
	if (find_errored(d, d->stream) < n)
		return true;
	d->errored_stream[n] = d->stream;
	atomic_store_explicit(&d->errored, n + 1, memory_order_release);
	log_info("QP 0x%x: stream %u is in error, %u of %u", qp->qpn, d->stream, n + 1,
		 d->errored_max);
	return n + 1 < d->errored_max;
}

bool dci_request_failed(struct qp *qp)
{
	qp->dci->closing = true;
	return qp->dci->errored_max;
}

/* ---- connections ---- */

/* True if nothing is outstanding.  Otherwise the completer kicks the QP when the last request
 * ends. */
static bool dci_drained(struct qp *qp)
{
	bool empty;

	spin_lock(&qp->comp.lock);
	empty = atomic_load(&qp->comp.head) == atomic_load(&qp->req.tail);
	/* In SQD the mark belongs to the program, which waits for SQ_DRAINED. */
	if (!empty || qp_state(qp) == IB_QPS_RTS)
		atomic_store(&qp->drain_notify, !empty);
	spin_unlock(&qp->comp.lock);
	return empty;
}

/* Connection numbers also rise from one owner of the QP number to the next, because they come from
 * the clock. */
static uint64_t next_connection(const struct dci *d)
{
	uint64_t now = clock_ns();

	return now > d->header.connection ? now : d->header.connection + 1;
}

static void dci_connect(struct qp *qp, const struct wqe_av *av)
{
	struct dci *d = qp->dci;

	d->av = *av;
	path_from_av(qp->adapter, av, &qp->path);
	qp->path.pkey = qp->pkey;
	qp->path.mtu = (uint8_t)qp->attr.path_mtu;
	qp->attr.dest_qpn = be32_get(av->dqp_dct) & IB_QPN_MASK;
	d->header = (struct pkt_dc){
		.key = be64_get(av->dc_key_or_qkey),
		.connection = next_connection(d),
		.process = dc_process(qp->adapter->slots, qp->adapter->slot),
	};
	qp->req.connection = d->header.connection;
	/* Without streams an error stops the whole queue. */
	qp->req.target = d->errored_max ? NULL : &d->av;
	/* for people who ask */
	expose_note_qp(wire_expose(qp->adapter->wire), qp->qpn, qp->create.type, qp->attr.dest_qpn);
	/* Nobody is sending on the path: the requester is ours, and its earlier requests have been
	 * answered. */
	route_forget(&qp->route);
	qp->path.route = &qp->route;
	/* A late answer of an earlier peer names PSNs below this one. */
	spin_lock(&qp->comp.lock);
	atomic_store(&qp->comp.acked_psn, qp->req.psn);
	qp->comp.retry_left = qp->attr.retry_cnt;
	qp->comp.rnr_left = qp->attr.rnr_retry;
	qp->comp.asked = false;
	atomic_store(&qp->comp.withdrawn, 0);
	spin_unlock(&qp->comp.lock);
	atomic_store(&d->connected, true);
}

static void dci_skip(struct qp *qp, const struct send_wqe *w)
{
	const struct send_op op = {.block = (uint16_t)qp->req.next_block,
				   .opcode = w->opcode,
				   .ce = qp_ce(qp, w->fm_ce_se)};

	trace(wqe, taken, qp->qpn, op.block, wqe_opcode_name(op.opcode), w->len);
	send_cqe_flush(qp, &op);
	qp->req.next_block += w->nblocks;
}

static bool connected_to(const struct dci *d, const struct wqe_av *av)
{
	return atomic_load(&d->connected) && memcmp(av, &d->av, sizeof(*av)) == 0;
}

enum dci_verdict dci_admit(struct qp *qp, const struct send_wqe *w)
{
	struct dci *d = qp->dci;
	uint16_t stream = d->errored_max ? wqe_stream(&w->ctrl) : 0;
	bool local = w->bad || wqe_props(w->opcode)->local;

	if (stream == d->stream && !d->closing && (local || connected_to(d, &w->av)) &&
	    !is_errored(qp, stream))
		return DCI_GO;
	if (!dci_drained(qp))
		return DCI_WAIT;
	d->closing = false;
	d->stream = stream;
	if (is_errored(qp, stream)) {
		dci_skip(qp, w);
		return DCI_SKIP;
	}
	if (!local && !connected_to(d, &w->av))
		dci_connect(qp, &w->av);
	return DCI_GO;
}

bool dci_continue(struct qp *qp)
{
	struct dci *d = qp->dci;

	d->header.psn = atomic_load(&qp->comp.acked_psn);
	return atomic_load(&d->connected);
}
