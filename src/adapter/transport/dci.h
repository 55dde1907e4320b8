/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initiator of dynamically connected transport: a requester like that of RC, but each work
 * request names its peer.  It has one peer at a time: a request to another peer starts when all
 * requests before it have ended.  A connection needs no handshake, see struct pkt_dc.
 *
 * Streams: requests carry a stream number.  Hardware runs streams side by side; this device runs
 * them in the order in which they were posted.  Programs cannot tell the difference, but they can
 * tell that an error stays within its stream.
 */
#pragma once

#include "adapter/qp/send_wqe.h"

struct qp;

struct dci {
	struct pkt_dc header;	 /* goes with the requests of this connection */
	struct wqe_av av;	 /* of the request that opened the connection */
	_Atomic(bool) connected; /* the completer clears it after an error */
	bool closing;		 /* a request failed before it was sent; older requests end first */
	uint16_t stream;	 /* the stream of the outstanding requests */
	/* Streams in error, under the completer's lock. */
	uint32_t errored_max; /* most streams that may be in error; 0: there are no streams */
	_Atomic(uint32_t) errored;
	uint16_t errored_stream[1u << ADAPTER_LOG_MAX_DC_ERRORED];
};

struct dci *dci_create(const struct qp_create_attr *attr);
/* Resets the DCI: it then has no connection and no stream in error. */
void dci_reset(struct dci *d);

enum dci_verdict {
	DCI_GO,	  /* the connection is the one that the request needs */
	DCI_WAIT, /* the QP is kicked when the requests before it have ended */
	DCI_SKIP, /* its stream is in error, so it was flushed */
};

/* Says whether a new request may start.  The requester calls it with sq held. */
enum dci_verdict dci_admit(struct qp *qp, const struct send_wqe *w);
/* True if the connection of an admitted request still lives.  Refreshes the header. */
bool dci_continue(struct qp *qp);
/* Notes that the request being sent failed on this side.  True: later requests may start all the
 * same. */
bool dci_request_failed(struct qp *qp);
/* Notes that a request has completed in error.  True: the error stays within its stream.  Under
 * comp.lock. */
bool dci_contain(struct qp *qp);
