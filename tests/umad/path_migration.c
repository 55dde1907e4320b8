// SPDX-License-Identifier: BSD-2-Clause
/*
 * An end of a connection that moves to its alternate path when the first one breaks.
 * Usage: path_migration listens|connects PORT OWN PEER
 * OWN and PEER are the path bits of both ends on the alternate path; those of the first are 0.  Both
 * ends meet over TCP on this machine.  When both are armed, the connecting one makes a file 'armed' in its
 * directory, and waits for a file 'broken' before it goes on.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pair.h"

#define BYTES	 65536u
#define MESSAGES 200u
#define SIZE	 512u
#define WAIT_MS	 30000u

struct end {
	struct pair pair;
	bool listens;
	uint16_t peer_lid; /* the base */
	uint8_t own_bits, peer_bits;
};

/* The other end has come as far. */
static void meet(const struct end *e)
{
	char here = 'x', there = 0;

	if (send(e->pair.sock, &here, 1, MSG_NOSIGNAL) != 1 ||
	    recv(e->pair.sock, &there, 1, MSG_WAITALL) != 1 || there != here)
		device_die("the other end has gone");
}

static struct ibv_qp_attr query(const struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(e->pair.qp, &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE, &init))
		device_die("ibv_query_qp: %m");
	return attr;
}

static void expect_state(const struct end *e, enum ibv_mig_state state)
{
	struct ibv_qp_attr attr = query(e);

	if (attr.path_mig_state != state)
		device_die("path_mig_state is %d, not %d", attr.path_mig_state, state);
}

static void expect_refused(const struct end *e, enum ibv_mig_state state)
{
	struct ibv_qp_attr attr = {.path_mig_state = state};
	int ret = ibv_modify_qp(e->pair.qp, &attr, IBV_QP_PATH_MIG_STATE);

	if (ret != EINVAL)
		device_die("path_mig_state %d: %d", state, ret);
}

static struct ibv_qp_attr alternate(const struct end *e)
{
	return (struct ibv_qp_attr){
		.alt_ah_attr = {.dlid = (uint16_t)(e->peer_lid + e->peer_bits),
				.src_path_bits = e->own_bits,
				.port_num = 1},
		.alt_port_num = 1,
		.alt_timeout = 12,
		.path_mig_state = IBV_MIG_REARM,
	};
}

static void rearm(const struct end *e)
{
	struct ibv_qp_attr attr = alternate(e), seen;
	int ret = ibv_modify_qp(e->pair.qp, &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE);

	if (ret)
		device_die("IBV_MIG_REARM: %s", strerror(ret));
	seen = query(e);
	if (seen.path_mig_state != IBV_MIG_REARM ||
	    seen.alt_ah_attr.dlid != attr.alt_ah_attr.dlid ||
	    seen.alt_ah_attr.src_path_bits != e->own_bits || seen.alt_port_num != 1 ||
	    seen.alt_timeout != 12)
		device_die("the alternate path is not what was set");
	expect_refused(e, IBV_MIG_ARMED);
	expect_refused(e, IBV_MIG_MIGRATED);
}

/* WRITEs of the numbers from 'first' on, each into a place of its own, and back by READs. */
static void transfer(struct end *e, uint32_t first)
{
	struct pair *p = &e->pair;

	for (uint32_t i = 0; i < MESSAGES; i++) {
		size_t place = BYTES / 2 + i % 64 * SIZE;
		uint32_t value = first + i;

		memcpy(p->mem, &value, sizeof(value));
		pair_write(p, i, 0, place, SIZE);
		pair_complete(p, "WRITE");
		pair_read(p, i, SIZE, place, SIZE);
		pair_complete(p, "READ");
		if (memcmp(p->mem, p->mem + SIZE, sizeof(value)) != 0)
			device_die("message %u came back as another", value);
	}
}

static void await_file(const char *name)
{
	for (uint64_t end = pair_now_ms() + WAIT_MS; access(name, F_OK) != 0; usleep(10000))
		if (pair_now_ms() > end)
			device_die("no file '%s'", name);
}

static void expect_event(const struct end *e, enum ibv_event_type type)
{
	struct pollfd ready = {.fd = e->pair.port.ctx->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	if (poll(&ready, 1, WAIT_MS) != 1 || ibv_get_async_event(e->pair.port.ctx, &event))
		device_die("no event");
	if (event.event_type != type || event.element.qp != e->pair.qp)
		device_die("event %s", ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
}

/* The alternate path is the primary one now. */
static void expect_migrated(const struct end *e)
{
	struct ibv_qp_attr attr = query(e), alt = alternate(e);

	expect_event(e, IBV_EVENT_PATH_MIG);
	expect_state(e, IBV_MIG_MIGRATED);
	if (attr.ah_attr.dlid != alt.alt_ah_attr.dlid ||
	    attr.ah_attr.src_path_bits != e->own_bits || attr.timeout != 12)
		device_die("the primary path is not the alternate one");
}

static void exchange_lids(struct end *e)
{
	uint16_t mine = e->pair.port.attr.lid;

	if (send(e->pair.sock, &mine, sizeof(mine), MSG_NOSIGNAL) != sizeof(mine) ||
	    recv(e->pair.sock, &e->peer_lid, sizeof(e->peer_lid), MSG_WAITALL) !=
		    sizeof(e->peer_lid))
		device_die("the other end has gone");
}

int main(int argc, char **argv)
{
	struct device_connection how = pair_impatient;
	struct end e = {.listens = argc > 1 && strcmp(argv[1], "listens") == 0};
	struct ibv_device_attr device;

	if (argc != 5)
		device_die("usage: path_migration listens|connects PORT OWN PEER");
	e.own_bits = (uint8_t)atoi(argv[3]);
	e.peer_bits = (uint8_t)atoi(argv[4]);
	how.retry_cnt = 3;
	pair_open(&e.pair, "mlx5_0", &how, BYTES);
	if (ibv_query_device(e.pair.port.ctx, &device) ||
	    !(device.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG))
		device_die("the device has no path migration");
	pair_meet(&e.pair, &how, e.listens, pair_number(argv[2]));
	exchange_lids(&e);
	expect_state(&e, IBV_MIG_MIGRATED);
	expect_refused(&e, IBV_MIG_ARMED);
	rearm(&e);
	meet(&e);
	if (!e.listens)
		transfer(&e, 1000);
	meet(&e);
	expect_state(&e, IBV_MIG_ARMED);
	expect_refused(&e, IBV_MIG_REARM);
	meet(&e);
	if (!e.listens) {
		close(open("armed", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		await_file("broken");
		transfer(&e, 2000);
	}
	meet(&e);
	expect_migrated(&e);
	if (e.listens)
		transfer(&e, 3000);
	meet(&e);
	pair_close(&e.pair);
	return 0;
}
