// SPDX-License-Identifier: BSD-2-Clause
/*
 * A peer names keys that its connection has no right to: of another protection domain, and of another
 * device of the same process, whose first domain is the first there, too.  Both are refused; a key of
 * the connection's own domain is not.
 *
 *	foreign_keys DEVICE OTHER_DEVICE
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_device.h"

#define BYTES 4096u

enum { OWN, OTHER_DOMAIN, OTHER_DEVICE, KEYS };

/* One end of a connection for each key. */
struct end {
	struct device_port port, other;
	struct ibv_pd *pd[KEYS];
	struct ibv_mr *mr[KEYS];
	struct ibv_cq *cq;
	struct ibv_qp *qp[KEYS];
};

struct introduction {
	struct device_address address[KEYS];
	uint64_t at[KEYS];
	uint32_t rkey[KEYS];
};

static void end_open(struct end *e, const char *device, const char *other)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

	device_port_open(&e->port, device, -1);
	device_port_open(&e->other, other, -1);
	e->cq = ibv_create_cq(e->port.ctx, 16, NULL, NULL, 0);
	for (int i = 0; i < KEYS; i++) {
		e->pd[i] = ibv_alloc_pd(i == OTHER_DEVICE ? e->other.ctx : e->port.ctx);
		e->mr[i] =
			e->pd[i] ? ibv_reg_mr(e->pd[i], device_memory(BYTES), BYTES, access) : NULL;
		if (!e->mr[i] || !e->cq)
			device_die("set-up: %m");
	}
	for (int i = 0; i < KEYS; i++) {
		struct ibv_qp_init_attr attr = {.send_cq = e->cq,
						.recv_cq = e->cq,
						.qp_type = IBV_QPT_RC,
						.cap = {4, 4, 1, 1, 0}};
		struct device_connection how = device_default_connection;

		how.access = IBV_ACCESS_REMOTE_WRITE;
		e->qp[i] = ibv_create_qp(e->pd[OWN], &attr);
		if (!e->qp[i])
			device_die("ibv_create_qp: %m");
		device_qp_init(e->qp[i], &how);
	}
}

static void end_meet(struct end *e, int sock, struct introduction *peer)
{
	struct introduction mine = {0};

	for (int i = 0; i < KEYS; i++) {
		mine.address[i] = device_address(&e->port, e->qp[i], 0);
		mine.at[i] = (uintptr_t)e->mr[i]->addr;
		mine.rkey[i] = e->mr[i]->rkey;
	}
	if (write(sock, &mine, sizeof(mine)) != sizeof(mine) ||
	    read(sock, peer, sizeof(*peer)) != sizeof(*peer))
		device_die("the other end: %m");
	for (int i = 0; i < KEYS; i++)
		device_qp_connect(&e->port, e->qp[i], &device_default_connection, &peer->address[i],
				  0);
}

static enum ibv_wc_status status_of_write(struct end *e, int i, const struct introduction *peer)
{
	struct ibv_sge sge = {(uintptr_t)e->mr[OWN]->addr, 8, e->mr[OWN]->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	wr.wr.rdma.remote_addr = peer->at[i];
	wr.wr.rdma.rkey = peer->rkey[i];
	if (ibv_post_send(e->qp[i], &wr, &bad))
		device_die("ibv_post_send: %m");
	do
		n = ibv_poll_cq(e->cq, 1, &wc);
	while (!n);
	if (n < 0)
		device_die("ibv_poll_cq");
	return wc.status;
}

/* Its keys are named; it sees at last what came of that. */
static int target_run(const char *device, const char *other, int sock)
{
	struct introduction peer;
	struct end e;
	char end;

	end_open(&e, device, other);
	end_meet(&e, sock, &peer);
	if (write(sock, "", 1) != 1 || read(sock, &end, 1) != 1)
		return 1;
	for (int i = 0; i < KEYS; i++)
		if (*(uint8_t *)e.mr[i]->addr != (i == OWN ? 0x5a : 0)) {
			fprintf(stderr, "memory %d is 0x%x\n", i, *(uint8_t *)e.mr[i]->addr);
			return 1;
		}
	return 0;
}

int main(int argc, char **argv)
{
	struct introduction peer;
	int ends[2], failed = 0, status;
	struct end e;
	char ready;
	pid_t child;

	if (argc != 3)
		device_die("usage: foreign_keys DEVICE OTHER_DEVICE");
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		device_die("socketpair: %m");
	child = fork();
	if (!child)
		_exit(target_run(argv[1], argv[2], ends[1]));
	end_open(&e, argv[1], argv[2]);
	end_meet(&e, ends[0], &peer);
	if (read(ends[0], &ready, 1) != 1)
		device_die("the target: %m");
	memset(e.mr[OWN]->addr, 0x5a, 8);
	for (int i = 0; i < KEYS; i++) {
		enum ibv_wc_status wanted = i == OWN ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
		enum ibv_wc_status found = status_of_write(&e, i, &peer);

		if (found != wanted)
			fprintf(stderr, "key %d: %s\n", i, ibv_wc_status_str(found));
		failed |= found != wanted;
	}
	if (write(ends[0], "", 1) != 1 || waitpid(child, &status, 0) != child)
		device_die("the target: %m");
	return failed || status;
}
