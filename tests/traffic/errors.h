/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Error tests: a pair of queue pairs, one request that must fail, and what each side must see.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../support/verbs_device.h"

#define ERROR_PAIR_PAGE	  4096u
#define ERROR_PAIR_BYTES  (8 * ERROR_PAIR_PAGE)
#define ERROR_PAIR_MR_AT  ERROR_PAIR_PAGE /* the registration leaves the first and last page out */
#define ERROR_PAIR_MR_LEN (6 * ERROR_PAIR_PAGE)
#define ERROR_PAIR_INLINE 64u
#define ERROR_PAIR_SGES	  4u

/* How a request names memory. */
enum key {
	KEY_GOOD,
	KEY_WRONG_VARIANT, /* the low byte of a valid key changed */
	KEY_WRONG_INDEX,   /* a key that was never given out */
	KEY_FOREIGN,	   /* of another protection domain */
	KEY_NO_RIGHTS,	   /* local read only */
	KEY_UNMAPPED,	   /* registered, then unmapped */
	KEY_STALE,	   /* deregistered */
	KEY_NULL,	   /* of the null region */
	KEY_EMPTY,	   /* of a region of no bytes inside the others */
	KEYS,
};

/* One side: 0 requester, 1 responder. */
struct role {
	struct ibv_pd *pd;
	struct ibv_pd *foreign_pd;
	struct ibv_cq *cq; /* sends and receives: told apart by wr_id */
	struct ibv_qp *qp;
	uint8_t *memory;   /* ERROR_PAIR_BYTES */
	uint8_t *vanished; /* ERROR_PAIR_BYTES, no longer mapped */
	struct ibv_mr *mr[KEYS];
	uint32_t keys[KEYS];
};

struct error_pair {
	struct device_port port;
	struct role roles[2];
	struct ibv_ah *ah; /* UD */
};

#define STATUS_NONE (-1)

struct error_case {
	const char *name;
	enum ibv_qp_type type; /* 0: RC */
	enum ibv_wr_opcode opcode;
	uint32_t length;
	enum key local, remote, receive;
	/* Bytes by which a range sticks out of its registration; 0: it lies inside. */
	uint32_t local_over, remote_over;
	bool local_wraps, remote_wraps; /* the range ends past the end of the address space */
	uint32_t remote_shift;		/* off the natural alignment */
	uint32_t receive_length;	/* 0: as long as the message */
	bool inlined;			/* the data stand in the request */
	bool no_receive;
	bool no_peer; /* the responder's queue pair is destroyed first */
	bool wrong_qkey;
	bool executed;		 /* although it fails */
	uint32_t access_without; /* rights that the responder's queue pair lacks */
	/* What must come of it: at the requester either of two where the specification leaves it
	 * open, at the responder the status of its first receive. */
	enum ibv_wc_status requester;
	enum ibv_wc_status requester_or;
	int responder;
	enum ibv_qp_state states[2];
};

extern const struct error_case error_cases[];
extern const size_t error_case_count;

/* Something else that must be refused, or reported. */
struct special_case {
	const char *name;
	bool (*run)(struct error_pair *s);
};

extern const struct special_case special_cases[];
extern const size_t special_case_count;

/* Opens a fresh pair; the connection has short timers. */
void error_pair_open(struct error_pair *s, const char *device, int gid_index,
		     const struct error_case *c);
void error_pair_close(struct error_pair *s);

/* Waits for one completion; false after 10 s. */
bool error_pair_completion(struct role *role, struct ibv_wc *wc);
/* Takes an asynchronous event, if there is one, or comes within that time.  To be acknowledged. */
bool error_pair_event(struct error_pair *s, struct ibv_async_event *event);
bool error_pair_event_within(struct error_pair *s, struct ibv_async_event *event, int ms);
/* The start of a range of this length that sticks out of the registration by 'over'. */
uint64_t error_pair_range(const struct role *r, enum key key, uint32_t length, uint32_t over);
/* Two receives at the responder, RECV | FIRST and RECV | SECOND. */
void error_pair_post_receives(struct error_pair *s, const struct error_case *c);

#define FIRST  1u /* wr_id of the request under test, and of the receive that it would use */
#define SECOND 2u
#define RECV   0x100u

/* The first complaint of a case is kept. */
#define COMPLAINT_BYTES 256
extern char complaint[COMPLAINT_BYTES];
bool bad(const char *format, ...) __attribute__((format(printf, 1, 2)));

bool expect_completion(struct role *r, const char *who, uint64_t wr_id, enum ibv_wc_status status,
		       enum ibv_wc_status or_status);
