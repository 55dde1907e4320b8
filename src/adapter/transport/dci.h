/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initiator of dynamically connected transport: a requester as that of RC, whose peer is named
 * by each work request.  It has one peer at a time: a request to another one starts when all
 * before it are over.  A connection needs no handshake, see struct pkt_dc.
 *
 * Streams: requests carry a stream number.  Hardware runs streams side by side; here one follows
 * the other, in the order in which they were posted, which their users cannot tell apart.  What
 * they can tell is that an error stays within its stream.
 */
#pragma once

#include "adapter/qp/send_wqe.h"

struct qp;

struct dci {
	struct pkt_dc header;	 /* of the requests of this connection */
	struct wqe_av av;	 /* as the request had it that opened the connection */
	_Atomic(bool) connected; /* cleared by the completer after an error */
	bool closing;		 /* a request failed before it was sent: its elders finish first */
	uint16_t stream;	 /* of what is outstanding */
	/* Streams in error; under the completer's lock. */
	uint32_t errored_max; /* 0: no streams */
	_Atomic(uint32_t) errored;
	uint16_t errored_stream[1u << ADAPTER_LOG_MAX_DC_ERRORED];
};

struct dci *dci_create(const struct qp_create_attr *attr);
/* RESET: no connection, no error. */
void dci_reset(struct dci *d);

enum dci_verdict {
	DCI_GO,	  /* the connection is that of the request */
	DCI_WAIT, /* kicked when those before it are over */
	DCI_SKIP, /* its stream is in error: it was flushed */
};

/* May this new request start?  Requester, sq held. */
enum dci_verdict dci_admit(struct qp *qp, const struct send_wqe *w);
/* Is the request, which had been admitted, still of a live connection?  Refreshes the header. */
bool dci_continue(struct qp *qp);
/* The request being sent failed here.  True if later ones may start nevertheless. */
bool dci_request_failed(struct qp *qp);
/* A request has completed in error; under the completer's lock.  True: only its stream is hit. */
bool dci_contain(struct qp *qp);
