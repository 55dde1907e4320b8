/* SPDX-License-Identifier: BSD-2-Clause */
/* Dynamically connected transport: the initiator (DCI) and the target (DCT). */
#pragma once

#include <assert.h>

#include "adapter/adapter.h"
#include "adapter/qp/send_wqe.h"
#include "registry/registry.h"

/*
 * The process of an initiator, as its requests name it (pkt_dc.process): the slot, and which of the
 * slot's successive owners it is.
 */

#define DC_PROCESS_SLOT_BITS 10u

static_assert(REGISTRY_SLOTS == 1u << DC_PROCESS_SLOT_BITS, "a process names its slot");

static inline uint32_t dc_process_name(uint32_t slot, uint32_t generation)
{
	return generation << DC_PROCESS_SLOT_BITS | slot;
}

/* The slot's present owner. */
static inline uint32_t dc_process(const struct slot *slots, uint32_t slot)
{
	return dc_process_name(slot,
			       atomic_load_explicit(&slots[slot].alive, memory_order_acquire));
}

/* True while the process lives; once it is false, it stays false. */
static inline bool dc_process_lives(const struct slot *slots, uint32_t process)
{
	uint32_t slot = process % REGISTRY_SLOTS;
	uint32_t generation = atomic_load_explicit(&slots[slot].alive, memory_order_acquire);

	return generation && dc_process_name(slot, generation) == process;
}

/*
 * The initiator of dynamically connected transport: a requester like that of RC, but each work
 * request names its peer.  It has one peer at a time: a request to another peer starts when all
 * requests before it have ended.  A connection needs no handshake, see struct pkt_dc.
 *
 * Streams: requests carry a stream number.  Hardware runs streams side by side; this device runs
 * them in the order in which they were posted.  Programs cannot tell the difference, but they can
 * tell that an error stays within its stream.
 */

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

/*
 * The target of dynamically connected transport: a number, an access key, a shared receive queue,
 * and one responder per initiator that has found it.  Each responder is a queue pair without a
 * number of its own and without a send side, so all rules of RC's responder hold.
 *
 * A responder is made when an initiator's first packet arrives, and stays for the next connection
 * of the same initiator.  An error ends the connection, never the target.
 *
 * Only this target knows what it has executed of a connection.  An initiator whose answer was lost
 * sends again, however long it was silent; a target that had forgotten the connection would execute
 * the message twice.  So an initiator keeps its place while its process lives.  After that nothing
 * opens a connection in its name, because packets still on their way may have been executed before.
 */

struct dct;
struct pkt;

struct dct *dct_create(const struct qp_create_attr *attr);
/* Takes a request to the BTH_DC queue pair, which need not be a target.  The caller is a reader. */
void dct_receive(struct qp *target, const struct pkt *pkt);
/*
 * Called when the target's number was withdrawn and no reader holds the target any more.
 * Sends what initiators are owed, and waits for threads that run a responder.
 */
void dct_destroy(struct qp *target);
