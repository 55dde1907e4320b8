/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports and connected queue pairs for tests; see verbs_device.h. */
#include "../support/verbs_device.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

const struct device_connection device_default_connection = {
	.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	.rnr_retry = 7, /* for ever */
	.retry_cnt = 7,
	/* 4.096 us * 2^18 = 1.1 s: a side that a busy machine lets wait is not lost */
	.timeout = 18,
	.min_rnr_timer = 12, /* 0.64 ms */
	.rd_atomic = 8,
	.mtu = IBV_MTU_1024,
};

void device_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

static struct ibv_context *open_by_name(const char *name,
					struct ibv_context *(*open)(struct ibv_device *device))
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);
	struct ibv_context *ctx = NULL;

	if (!list)
		device_die("ibv_get_device_list: %m");
	for (int i = 0; i < count && !ctx; i++) {
		if (!name || !strcmp(name, ibv_get_device_name(list[i]))) {
			ctx = open(list[i]);
			if (!ctx)
				device_die("opening %s: %m", ibv_get_device_name(list[i]));
		}
	}
	ibv_free_device_list(list);
	if (!ctx)
		device_die("no device %s among %d", name ? name : "at all", count);
	return ctx;
}

void device_port_open(struct device_port *port, const char *device, int gid_index)
{
	device_port_open_by(port, device, gid_index, ibv_open_device);
}

void device_port_open_by(struct device_port *port, const char *device, int gid_index,
			 struct ibv_context *(*open)(struct ibv_device *device))
{
	*port = (struct device_port){.ctx = open_by_name(device, open)};
	if (ibv_query_port(port->ctx, DEVICE_PORT, &port->attr))
		device_die("ibv_query_port: %m");
	if (port->attr.state != IBV_PORT_ACTIVE)
		device_die("the port is %s", ibv_port_state_str(port->attr.state));
	port->ethernet = port->attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	port->global = port->ethernet || gid_index >= 0;
	port->gid_index = gid_index >= 0 ? gid_index : 0;
	if (ibv_query_gid(port->ctx, DEVICE_PORT, port->gid_index, &port->gid))
		device_die("ibv_query_gid %d: %m", port->gid_index);
}

void device_port_close(struct device_port *port)
{
	if (ibv_close_device(port->ctx))
		device_die("ibv_close_device: %m");
	port->ctx = NULL;
}

uint8_t *device_memory(size_t bytes)
{
	const char *kind = getenv("TEST_MEMORY");
	int flags = MAP_PRIVATE | MAP_ANONYMOUS, fd = -1;
	void *p;

	if (kind && !strcmp(kind, "shared")) {
		flags = MAP_SHARED;
		fd = memfd_create("memory", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, (off_t)bytes))
			device_die("a file for memory: %m");
	}
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (p == MAP_FAILED)
		device_die("mmap: %m");
	return p;
}

struct device_address device_address(const struct device_port *port, const struct ibv_qp *qp,
				     uint32_t psn)
{
	return (struct device_address){
		.gid = port->gid,
		.qpn = qp->qp_num,
		.psn = psn,
		.lid = port->attr.lid,
	};
}

struct ibv_ah_attr device_ah_attr(const struct device_port *port, const struct device_address *peer)
{
	struct ibv_ah_attr ah = {
		.dlid = peer->lid,
		.is_global = port->global,
		.port_num = DEVICE_PORT,
	};

	if (port->global) {
		ah.grh.dgid = peer->gid;
		ah.grh.sgid_index = (uint8_t)port->gid_index;
		ah.grh.hop_limit = 64;
	}
	return ah;
}

static void modify_or_die(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, const char *to)
{
	int err = ibv_modify_qp(qp, attr, mask);

	if (err)
		device_die("ibv_modify_qp to %s: %s", to, strerror(err));
}

void device_qp_init(struct ibv_qp *qp, const struct device_connection *how)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = DEVICE_PORT,
		.qp_access_flags = how->access,
		.qkey = DEVICE_QKEY,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	modify_or_die(qp, &attr,
		      mask | (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS),
		      "INIT");
}

void device_qp_connect(const struct device_port *port, struct ibv_qp *qp,
		       const struct device_connection *how, const struct device_address *peer,
		       uint32_t psn)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int mask = IBV_QP_STATE;
	bool rc = qp->qp_type == IBV_QPT_RC;

	if (qp->qp_type != IBV_QPT_UD) {
		attr.ah_attr = device_ah_attr(port, peer);
		attr.path_mtu = how->mtu;
		attr.dest_qp_num = peer->qpn;
		attr.rq_psn = peer->psn;
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	}
	if (rc) {
		attr.max_dest_rd_atomic = how->rd_atomic;
		attr.min_rnr_timer = how->min_rnr_timer;
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	}
	modify_or_die(qp, &attr, mask, "RTR");

	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = psn;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (rc) {
		attr.timeout = how->timeout;
		attr.retry_cnt = how->retry_cnt;
		attr.rnr_retry = how->rnr_retry;
		attr.max_rd_atomic = how->rd_atomic;
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	}
	modify_or_die(qp, &attr, mask, "RTS");
}

enum ibv_qp_state device_qp_state(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	int err = ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);

	if (err)
		device_die("ibv_query_qp: %s", strerror(err));
	return attr.qp_state;
}

uint64_t device_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void device_sort(uint64_t *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
}
