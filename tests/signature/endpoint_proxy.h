/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A side of a connection as tests see it.  Its endpoint is in this process or in a child of it; a
 * child's memory is shared, so that a test reads and writes it directly in both cases.
 *
 * What a test takes for granted ends it with a message if it does not hold; what it asks about has
 * a function that returns the outcome.
 */
#pragma once

#include <sys/types.h>

#include "endpoint.h"

#define PROXY_PATIENCE_MS 5000u
#define PROXY_A_WHILE_MS  20u /* long enough for what must not happen to happen */

struct endpoint_proxy {
	const char *name;
	uint8_t *memory; /* ORDER_MEMORY bytes */
	struct address address;
	struct key_names key[ORDER_KEYS];
	struct endpoint *endpoint; /* NULL: in the child */
	int socket;
	pid_t child;
};

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define EXPECT(cond)                                                          \
	do {                                                                  \
		if (!(cond))                                                  \
			fail("%s:%d: not so: %s", __FILE__, __LINE__, #cond); \
	} while (0)
/* Numbers that must agree. */
#define SAME(got, want) same(__FILE__, __LINE__, #got, got, want)
void same(const char *file, int line, const char *what, uint64_t got, uint64_t want);

/* elsewhere: in a process of its own, which must be made before this one opens a device. */
void proxy_begin(struct endpoint_proxy *p, const char *name, bool elsewhere);
/* Everything it has is destroyed. */
void proxy_end(struct endpoint_proxy *p);
void proxy_ask(struct endpoint_proxy *p, const struct order *order, struct answer *answer);

/* 0 or an errno value. */
int proxy_open(struct endpoint_proxy *p, const struct open_order *how);
void proxy_connect(struct endpoint_proxy *p, const struct endpoint_proxy *peer);

/* What CRCs and block sizes there are depends on the device (mlx5dv_query_device(3)). */
bool proxy_supports(const struct endpoint_proxy *p, const struct domain *d);

int try_key_create(struct endpoint_proxy *p, int key, uint32_t flags, uint16_t entries);
void key_create(struct endpoint_proxy *p, int key, uint32_t flags, uint16_t entries);
int key_destroy(struct endpoint_proxy *p, int key);
int try_configure(struct endpoint_proxy *p, int key, const struct key_conf *conf);
/* Waits for the completion, if there is one.  A signature that the device lacks skips the test. */
void configure(struct endpoint_proxy *p, int key, const struct key_conf *conf);
/* Status of the completion. */
enum ibv_wc_status configure_status(struct endpoint_proxy *p, int key, const struct key_conf *conf);
/* 0 or an errno value. */
int try_check(struct endpoint_proxy *p, int key, struct mlx5dv_mkey_err *error);
struct mlx5dv_mkey_err check(struct endpoint_proxy *p, int key);
void expect_no_error(struct endpoint_proxy *p, int key);

void post(struct endpoint_proxy *p, const struct request *r);
void post_all(struct endpoint_proxy *p, unsigned count, const struct request *r);
void receive(struct endpoint_proxy *p, uint64_t id, struct slice slice);

enum which_cq { SENDS, RECEIVES };
/* The next, which must come. */
struct ibv_wc completion(struct endpoint_proxy *p, enum which_cq cq);
/* The next, which must be a success. */
struct ibv_wc success(struct endpoint_proxy *p, enum which_cq cq);
/* Up to max, as many as come in that time. */
unsigned completions(struct endpoint_proxy *p, enum which_cq cq, struct ibv_wc *wc, unsigned max,
		     unsigned limit_ms);
/* One look that must find nothing. */
void expect_no_completion(struct endpoint_proxy *p, enum which_cq cq);

int cancel(struct endpoint_proxy *p, uint64_t wr_id);
int change_state(struct endpoint_proxy *p, enum ibv_qp_state state, bool from_sqd);
enum ibv_qp_state state_of(struct endpoint_proxy *p);
/* The queue has been drained: waits for the event. */
void expect_drained(struct endpoint_proxy *p);
void expect_no_event(struct endpoint_proxy *p);
