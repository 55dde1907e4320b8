// SPDX-License-Identifier: BSD-2-Clause
/* See endpoint_proxy.h. */
#include "endpoint_proxy.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The last line that a test prints is its reason; 77 is Automake's status for skipped tests. */
_Noreturn static void leave(int status)
{
	putchar('\n');
	fflush(stdout);
	_exit(status);
}

void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	leave(1);
}

void skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	leave(77);
}

void same(const char *file, int line, const char *what, uint64_t got, uint64_t want)
{
	if (got != want)
		fail("%s:%d: %s is %#" PRIx64 " and not %#" PRIx64, file, line, what, got, want);
}

/* The child's whole life. */
_Noreturn static void serve(int socket, uint8_t *memory)
{
	static struct endpoint endpoint;
	static struct order order;
	static struct answer answer;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	endpoint.memory = memory;
	while (recv(socket, &order, sizeof(order), 0) == (ssize_t)sizeof(order)) {
		endpoint_carry_out(&endpoint, &order, &answer);
		if (send(socket, &answer, sizeof(answer), 0) != (ssize_t)sizeof(answer))
			break;
	}
	endpoint_close(&endpoint);
	exit(0);
}

void proxy_begin(struct endpoint_proxy *p, const char *name, bool elsewhere)
{
	int pair[2];

	*p = (struct endpoint_proxy){.name = name, .socket = -1};
	p->memory =
		mmap(NULL, ORDER_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p->memory == MAP_FAILED)
		device_die("mmap: %m");
	if (!elsewhere) {
		p->endpoint = calloc(1, sizeof(*p->endpoint));
		if (!p->endpoint)
			device_die("no memory");
		p->endpoint->memory = p->memory;
		return;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		device_die("socketpair: %m");
	p->child = fork();
	if (p->child < 0)
		device_die("fork: %m");
	if (!p->child) {
		close(pair[0]);
		serve(pair[1], p->memory);
	}
	close(pair[1]);
	p->socket = pair[0];
}

void proxy_end(struct endpoint_proxy *p)
{
	int status = 0;

	if (p->endpoint) {
		endpoint_close(p->endpoint);
		free(p->endpoint);
	} else {
		shutdown(p->socket, SHUT_WR);
		if (waitpid(p->child, &status, 0) != p->child || status)
			fail("%s ended with status %#x", p->name, (unsigned)status);
		close(p->socket);
	}
	munmap(p->memory, ORDER_MEMORY);
}

void proxy_ask(struct endpoint_proxy *p, const struct order *order, struct answer *answer)
{
	if (p->endpoint) {
		endpoint_carry_out(p->endpoint, order, answer);
		return;
	}
	if (send(p->socket, order, sizeof(*order), MSG_NOSIGNAL) != (ssize_t)sizeof(*order) ||
	    recv(p->socket, answer, sizeof(*answer), 0) != (ssize_t)sizeof(*answer))
		fail("%s has gone", p->name);
}

int proxy_open(struct endpoint_proxy *p, const struct open_order *how)
{
	struct order o = {.code = ORDER_OPEN, .open = *how};
	struct answer a;

	proxy_ask(p, &o, &a);
	p->address = a.address;
	return a.status;
}

void proxy_connect(struct endpoint_proxy *p, const struct endpoint_proxy *peer)
{
	struct order o = {.code = ORDER_CONNECT, .peer = peer->address};
	struct answer a;

	proxy_ask(p, &o, &a);
}

int try_key_create(struct endpoint_proxy *p, int key, uint32_t flags, uint16_t entries)
{
	struct order o = {.code = ORDER_KEY_CREATE,
			  .key = key,
			  .create = {.flags = flags, .entries = entries}};
	struct answer a;

	proxy_ask(p, &o, &a);
	p->key[key] = a.names;
	return a.status;
}

void key_create(struct endpoint_proxy *p, int key, uint32_t flags, uint16_t entries)
{
	int err = try_key_create(p, key, flags, entries);

	if (err == EOPNOTSUPP || err == EPROTONOSUPPORT)
		skip("no indirect keys here");
	if (err)
		fail("%s: mlx5dv_create_mkey: %s", p->name, strerror(err));
}

int key_destroy(struct endpoint_proxy *p, int key)
{
	struct order o = {.code = ORDER_KEY_DESTROY, .key = key};
	struct answer a;

	proxy_ask(p, &o, &a);
	return a.status;
}

int try_configure(struct endpoint_proxy *p, int key, const struct key_conf *conf)
{
	struct order o = {.code = ORDER_KEY_CONFIGURE, .key = key, .conf = *conf};
	struct answer a;

	proxy_ask(p, &o, &a);
	return a.status;
}

bool proxy_supports(const struct endpoint_proxy *p, const struct domain *d)
{
	static const uint16_t crc[SIGNATURES] = {
		[CRC32] = MLX5DV_SIG_CRC_TYPE_CAP_CRC32,
		[CRC32C] = MLX5DV_SIG_CRC_TYPE_CAP_CRC32C,
		[CRC64] = MLX5DV_SIG_CRC_TYPE_CAP_CRC64_XP10,
	};
	const struct mlx5dv_sig_caps *caps = &p->address.caps;

	if (d->type == NO_SIGNATURE)
		return true;
	return caps->block_size & 1ull << d->size &&
	       (caps->crc_type & crc[d->type]) == crc[d->type];
}

enum ibv_wc_status configure_status(struct endpoint_proxy *p, int key, const struct key_conf *conf)
{
	int err = try_configure(p, key, conf);

	if (err)
		fail("%s: configuring a key: %s", p->name, strerror(err));
	return completion(p, SENDS).status;
}

void configure(struct endpoint_proxy *p, int key, const struct key_conf *conf)
{
	int err;

	if (conf->set_signature &&
	    !(proxy_supports(p, &conf->mem) && proxy_supports(p, &conf->wire)))
		skip("the device lacks such a signature or block size");
	err = try_configure(p, key, conf);
	if (err)
		fail("%s: configuring a key: %s", p->name, strerror(err));
	if (!conf->unsignaled)
		SAME(success(p, SENDS).opcode, IBV_WC_DRIVER1);
}

int try_check(struct endpoint_proxy *p, int key, struct mlx5dv_mkey_err *error)
{
	struct order o = {.code = ORDER_KEY_CHECK, .key = key};
	struct answer a;

	proxy_ask(p, &o, &a);
	*error = a.error;
	return a.status;
}

struct mlx5dv_mkey_err check(struct endpoint_proxy *p, int key)
{
	struct mlx5dv_mkey_err error;
	int err = try_check(p, key, &error);

	if (err)
		fail("%s: mlx5dv_mkey_check: %s", p->name, strerror(err));
	return error;
}

void expect_no_error(struct endpoint_proxy *p, int key)
{
	struct mlx5dv_mkey_err e = check(p, key);

	if (e.err_type != MLX5DV_MKEY_NO_ERR)
		fail("%s: a signature error of type %d where there is none: actual %#" PRIx64
		     ", expected %#" PRIx64 ", offset %" PRIu64,
		     p->name, e.err_type, e.err.sig.actual_value, e.err.sig.expected_value,
		     e.err.sig.offset);
}

void post_all(struct endpoint_proxy *p, unsigned count, const struct request *r)
{
	struct order o = {.code = ORDER_POST, .post = {.count = count}};
	struct answer a;

	memcpy(o.post.request, r, count * sizeof(*r));
	proxy_ask(p, &o, &a);
	if (a.status)
		fail("%s: ibv_wr_complete: %s", p->name, strerror(a.status));
}

void post(struct endpoint_proxy *p, const struct request *r)
{
	post_all(p, 1, r);
}

void receive(struct endpoint_proxy *p, uint64_t id, struct slice slice)
{
	struct order o = {.code = ORDER_RECEIVE,
			  .receive = {.id = id, .slices = 1, .slice = {slice}}};
	struct answer a;

	proxy_ask(p, &o, &a);
	if (a.status)
		fail("%s: ibv_post_recv: %s", p->name, strerror(a.status));
}

unsigned completions(struct endpoint_proxy *p, enum which_cq cq, struct ibv_wc *wc, unsigned max,
		     unsigned limit_ms)
{
	struct order o = {
		.code = ORDER_POLL,
		.poll = {.receives = cq == RECEIVES,
			 .count = max < ORDER_WCS ? max : ORDER_WCS,
			 .limit_ms = limit_ms},
	};
	struct answer a;

	proxy_ask(p, &o, &a);
	if (a.status)
		fail("%s: ibv_poll_cq fails", p->name);
	memcpy(wc, a.poll.wc, a.poll.count * sizeof(*wc));
	return a.poll.count;
}

struct ibv_wc completion(struct endpoint_proxy *p, enum which_cq cq)
{
	struct ibv_wc wc;

	if (!completions(p, cq, &wc, 1, PROXY_PATIENCE_MS))
		fail("%s: no completion", p->name);
	return wc;
}

struct ibv_wc success(struct endpoint_proxy *p, enum which_cq cq)
{
	struct ibv_wc wc = completion(p, cq);

	if (wc.status != IBV_WC_SUCCESS)
		fail("%s: request %" PRIu64 " completes with \"%s\" (vendor %#x)", p->name,
		     wc.wr_id, ibv_wc_status_str(wc.status), wc.vendor_err);
	return wc;
}

void expect_no_completion(struct endpoint_proxy *p, enum which_cq cq)
{
	struct ibv_wc wc;

	if (completions(p, cq, &wc, 1, 0))
		fail("%s: an unexpected completion of request %" PRIu64 ", opcode %d, status %d",
		     p->name, wc.wr_id, wc.opcode, wc.status);
}

int cancel(struct endpoint_proxy *p, uint64_t wr_id)
{
	struct order o = {.code = ORDER_CANCEL, .wr_id = wr_id};
	struct answer a;

	proxy_ask(p, &o, &a);
	return a.status;
}

int change_state(struct endpoint_proxy *p, enum ibv_qp_state state, bool from_sqd)
{
	struct order o = {.code = ORDER_MODIFY, .modify = {.state = state, .current = from_sqd}};
	struct answer a;

	proxy_ask(p, &o, &a);
	return a.status;
}

enum ibv_qp_state state_of(struct endpoint_proxy *p)
{
	struct order o = {.code = ORDER_STATE};
	struct answer a;

	proxy_ask(p, &o, &a);
	return a.state;
}

static bool next_event(struct endpoint_proxy *p, unsigned limit_ms, enum ibv_event_type *type)
{
	struct order o = {.code = ORDER_EVENT, .limit_ms = limit_ms};
	struct answer a;

	proxy_ask(p, &o, &a);
	if (a.status)
		fail("%s: an event about something else: %s", p->name, strerror(a.status));
	*type = a.event.type;
	return a.event.happened;
}

void expect_drained(struct endpoint_proxy *p)
{
	enum ibv_event_type type;

	if (!next_event(p, PROXY_PATIENCE_MS, &type))
		fail("%s: no event; the queue pair is in state %d", p->name, state_of(p));
	SAME(type, IBV_EVENT_SQ_DRAINED);
}

void expect_no_event(struct endpoint_proxy *p)
{
	enum ibv_event_type type;

	if (next_event(p, PROXY_A_WHILE_MS, &type))
		fail("%s: an unexpected event, type %d", p->name, type);
}
