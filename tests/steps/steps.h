/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the processes of a test of steps say to each other.  The tracer orders, one thing at a time,
 * and waits for the answer: nobody else may wait without a limit.
 *
 *     tracer ---- ptrace ---- walkers, one for each place to stop at
 *        |                        | a connected pair each
 *        +---- orders ---- witness ---- a connected pair ---- third
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "verbs_device.h"

#define STEPS_BYTES	65536u /* of each region that a peer reaches */
#define STEPS_PARTS	16u    /* requests of a list, each of ... */
#define STEPS_PART	64u    /* ... so many bytes in a page of its own */
#define STEPS_MESSAGE	256u   /* of a SEND */
#define STEPS_RECEIVES	8u
#define STEPS_DEPTH	64u
#define STEPS_MOST	64u   /* walkers of a run */
#define STEPS_LIMIT_MS	30000 /* for one order */
#define STEPS_FIRST_PSN 100u
#define STEPS_RECV_ID	(1ull << 63)

enum { BYTE_OLD = 0x11, BYTE_NEW = 0x5b, BYTE_POISON = 0xee };

/* The call that the walker is taken through. */
enum what {
	/* of an initiator: the witness is the target */
	WRITE_8,
	WRITE_64K,
	READ_64K,
	LIST_16,
	SEND,
	FETCH_ADD,
	/* of a target: the witness writes, reads and sends */
	DEREG,
	REREG,
	TO_ERROR,
	TO_RESET,
	DESTROY,
	QUERY,
	POLL,
	WHATS,
};

/* Of the pair that the call is about. */
enum transport { OVER_RC, OVER_XRC, OVER_DC, TRANSPORTS };

static inline bool what_initiates(enum what what)
{
	return what <= FETCH_ADD;
}

/* Afterwards the peer may not reach the memory. */
static inline bool what_revokes(enum what what)
{
	return what >= DEREG && what <= DESTROY;
}

/* How the witness takes its memory back from a walker that stands still. */
enum revoke { BY_NOTHING, BY_DEREG, BY_REREG, BY_ERROR, BY_RESET, BY_DESTROY, REVOKES };

static inline bool revoke_ends_qp(enum revoke how)
{
	return how >= BY_ERROR;
}

enum order_code {
	/* to all */
	MAKE,	 /* link, arg 1: a CQ that others share: where it is */
	CONNECT, /* link, where the peer is */
	WARM_UP, /* link: requests that must succeed; they open what the first ones open */
	QUIT,
	/* to a walker */
	STEP,	  /* the call; the answer comes when it has returned */
	FINISH,	  /* arg 1: the queue pair to error first.  value 0: the parts that succeeded */
	EPILOGUE, /* more requests that must succeed */
	/* to a walker and to the witness */
	CHECK, /* link: the poison is whole */
	/* to the witness */
	FILL,	 /* link: old contents */
	LOOK,	 /* link: all that a program may ask of its objects; requests to the third */
	REAP,	 /* the message of the third has arrived */
	REVOKE,	 /* link, arg: enum revoke.  value 0: the parts that have arrived before */
	VERIFY,	 /* link: all has arrived, once */
	PROBE,	 /* link: requests to the walker, not waited for */
	TRAFFIC, /* link: PROBE until the next order comes */
	/* link, arg 1: the queue pair to error first.  value 0: failed requests, 1: the last number
	 * written with success */
	SETTLE,
	DROP, /* link: what is left of it goes */
	/* to the third */
	RECEIVE, /* a receive is posted */
	TALK,	 /* WRITE and SEND to the witness */
};

struct place {
	struct device_address address; /* of who takes requests */
	uint32_t initiator;	       /* who sends them: a number */
	uint32_t srqn;		       /* XRC: where messages are to go */
	uint64_t addr;
	uint32_t rkey;
};

struct order {
	uint32_t code;
	uint32_t link;
	uint32_t arg;
	struct place place;
};

struct answer {
	char complaint[160]; /* empty: it went well */
	uint64_t value[2];
	struct place place;
};

void answer_send(int sock, const struct answer *a);
typedef void obey_fn(const struct order *o, enum what what, struct answer *a);
/* Obeys orders, one at a time, and answers; ends the process when the tracer has gone.  While there
 * is none, calls idle until it returns false; NULL: nothing to do meanwhile. */
_Noreturn void orders_serve(int sock, obey_fn *obey, enum what what, bool (*idle)(void));
/* Notes the first complaint. */
void complain(struct answer *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- an end of a connected pair ---- */

struct end {
	enum transport transport;
	struct device_port *port;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;     /* sends requests */
	struct ibv_qp *target; /* takes them; over RC it is the same one */
	uint32_t target_qpn;   /* its number, also when it has gone */
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;   /* the target's; NULL over RC */
	struct ibv_ah *ah;     /* to the peer's target, over DC */
	struct ibv_mr *mr;     /* what the peer may reach */
	struct ibv_mr *own_mr; /* what requests take from and messages arrive in */
	uint8_t *mem;	       /* STEPS_BYTES */
	uint8_t *own;	       /* so many to send from, and as many again to read into */
	struct place peer;
	uint32_t posted, done, failed; /* requests */
	uint32_t receives, received;
	uint32_t sent;	    /* SENDs, which the peer has receives for */
	uint64_t good_ids;  /* bit n: the request of that id succeeded */
	uint64_t last_good; /* the highest id of them */
	uint32_t status;    /* the first that is not success */
};

/* cq NULL: one of its own. */
void end_make(struct end *e, enum transport transport, struct device_port *port, struct ibv_pd *pd,
	      struct ibv_cq *cq, struct place *where);
void end_connect(struct end *e, const struct place *peer);
void end_receive(struct end *e, unsigned n);
/* A request of one entry: own memory at local, the peer's at remote. */
struct request {
	enum ibv_wr_opcode opcode;
	uint64_t id;
	size_t local, remote;
	uint32_t bytes;
};

/* Posts them by one call. */
void end_post(struct end *e, const struct request *r, unsigned n);
/* WRITE, READ and, if the peer has a receive, SEND. */
void end_post_all(struct end *e, uint64_t id);
/* Takes notice of a completion of this end. */
void end_completed(struct end *e, const struct ibv_wc *wc);
enum ibv_qp_state qp_state_of(struct ibv_qp *qp, struct answer *a);
void qp_to_state(struct ibv_qp *qp, enum ibv_qp_state state, struct answer *a);
/* Destroys the target; over RC nothing can be sent afterwards either.  An errno. */
int end_destroy_target(struct end *e);
/* The state of a target that takes requests. */
enum ibv_qp_state end_ready_state(const struct end *e);

/* ---- the queue pairs of an end (queues.c) ---- */

void queues_make(struct end *e);
void queues_connect(struct end *e);
/* The rest of what queues_make has made; an errno. */
int queues_destroy(struct end *e);
void queues_post(struct end *e, const struct request *r, unsigned n);
bool all_are(const uint8_t *mem, size_t bytes, uint8_t value);

_Noreturn void walker(int sock, const char *device, enum what what, enum transport transport);
_Noreturn void witness(int sock, const char *device, enum what what, enum transport transport);
_Noreturn void third(int sock, const char *device);
