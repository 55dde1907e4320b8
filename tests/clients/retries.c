/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a port counts when requests fail, and how long retries take.  Stock libibverbs alone.
 *
 * retries DEVICE silence TIMEOUT RETRY    a peer that is gone
 * retries DEVICE rnr|write-key|write-right|read-place|to-error
 *
 * Prints the status, the milliseconds, and each counter of hw_counters that has moved.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verbs_device.h"

#define BYTES	 4096u
#define COUNTERS 64u

static uint8_t memory[BYTES];

struct counters {
	unsigned n;
	char name[COUNTERS][64];
	unsigned long long value[COUNTERS];
};

static void counters_read(const char *device, struct counters *c)
{
	char path[512], folder[256];
	struct dirent *e;
	DIR *d;

	c->n = 0;
	snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s/ports/1/hw_counters", device);
	d = opendir(folder);
	while (d && (e = readdir(d)) && c->n < COUNTERS) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/%.60s", folder, e->d_name);
		f = e->d_name[0] == '.' ? NULL : fopen(path, "r");
		if (f && fscanf(f, "%llu", &c->value[c->n]) == 1)
			snprintf(c->name[c->n++], sizeof(c->name[0]), "%.60s", e->d_name);
		if (f)
			fclose(f);
	}
	if (!d || !c->n)
		device_die("no counters in %s", folder);
	closedir(d);
}

static void counters_print(const struct counters *before, const struct counters *after)
{
	for (unsigned i = 0; i < after->n; i++)
		if (after->value[i] != before->value[i])
			printf("%s %llu\n", after->name[i], after->value[i] - before->value[i]);
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp)
		device_die("ibv_create_qp: %m");
	return qp;
}

int main(int argc, char **argv)
{
	const char *device = argc > 1 ? argv[1] : "mlx5_0", *what = argc > 2 ? argv[2] : "silence";
	struct device_connection how = device_default_connection;
	bool to_error = !strcmp(what, "to-error");
	static struct counters before, after;
	struct device_address address[2];
	struct ibv_mr *mr, *read_only;
	struct device_port port;
	struct ibv_qp *qp[2];
	struct ibv_wc wc = {0};
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	uint64_t start;

	device_port_open(&port, device, -1);
	pd = ibv_alloc_pd(port.ctx);
	cq = ibv_create_cq(port.ctx, 32, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, memory, BYTES,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	read_only = ibv_reg_mr(pd, memory, BYTES, IBV_ACCESS_REMOTE_READ);
	if (!pd || !cq || !mr || !read_only)
		device_die("PD, CQ or MR: %m");
	how.timeout = argc > 3 ? (uint8_t)atoi(argv[3]) : 14;
	how.retry_cnt = argc > 4 ? (uint8_t)atoi(argv[4]) : 7;
	how.rnr_retry = 0;
	for (int i = 0; i < 2; i++) {
		qp[i] = make_qp(pd, cq);
		address[i] = device_address(&port, qp[i], 100);
	}
	for (int i = 0; i < 2; i++) {
		if (i && !strcmp(what, "write-right"))
			how.access &= ~(unsigned)IBV_ACCESS_REMOTE_WRITE;
		device_qp_init(qp[i], &how);
		device_qp_connect(&port, qp[i], &how, &address[!i], 100);
	}
	if (!strcmp(what, "silence") && ibv_destroy_qp(qp[1]))
		device_die("ibv_destroy_qp: %m");

	struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .wr.rdma = {(uintptr_t)memory, mr->rkey}};

	if (!strcmp(what, "rnr"))
		wr.opcode = IBV_WR_SEND;
	if (!strcmp(what, "write-key"))
		wr.wr.rdma.rkey = mr->rkey ^ 1;
	if (!strcmp(what, "read-place")) {
		wr.opcode = IBV_WR_RDMA_READ;
		sge.lkey = read_only->lkey;
	}
	counters_read(device, &before);
	if (to_error &&
	    ibv_modify_qp(qp[0], &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE))
		device_die("ibv_modify_qp: %m");
	start = device_now_ns();
	for (int i = 0; i < (to_error ? 2 : 1); i++)
		if (ibv_post_send(qp[0], &wr, &bad))
			device_die("ibv_post_send: %m");
	for (int i = 0; i < (to_error ? 2 : 1); i++)
		while (!ibv_poll_cq(cq, 1, &wc))
			if (device_now_ns() - start > 100000000000u)
				device_die("no completion");
	printf("status %d\nms %llu\n", wc.status,
	       (unsigned long long)(device_now_ns() - start) / 1000000);
	/* the kernel reads them at most each 'lifespan' */
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	counters_read(device, &after);
	counters_print(&before, &after);
	return 0;
}
