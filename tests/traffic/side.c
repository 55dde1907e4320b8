/* SPDX-License-Identifier: BSD-2-Clause */
/* Setting a side up, and its rounds; see side.h. */
#include "side.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the sides tell each other about one connection. */
struct greeting {
	struct device_address address;
	uint64_t target;
	uint32_t rkey[2];
};

static const char *type_name(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC ? "rc" : type == IBV_QPT_UC ? "uc" : "ud";
}

void side_complain(const struct traffic_side *side, const char *format, ...)
{
	const struct options *o = side->options;
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr,
		"verify: side %d, round %lu: %s\n"
		"  again: verify --device %s --gid-index %d --transport %s --mtu %u --seed %lu "
		"--ops %lu --qps %u --max-size %u --processes %d%s%s%s\n",
		side->index, side->round, text, ibv_get_device_name(side->port.ctx->device),
		o->gid_index, type_name(o->type), 128u << o->mtu, o->seed, o->ops, o->qps,
		o->max_size, o->processes, o->events ? " --events" : "",
		o->extended_cq ? " --extended-cq" : "", o->srq ? " --srq" : "");
}

/* ---- the control stream ---- */

static bool transfer_bytes(int fd, void *data, size_t size, bool out)
{
	char *at = data;

	while (size) {
		ssize_t n = out ? send(fd, at, size, MSG_NOSIGNAL) : recv(fd, at, size, 0);

		if (n <= 0)
			return false;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

static bool exchange_data(int fd, const void *mine, void *theirs, size_t size)
{
	/* Both send first: what they send fits the socket's buffer. */
	return transfer_bytes(fd, (void *)(uintptr_t)mine, size, true) &&
	       transfer_bytes(fd, theirs, size, false);
}

/* Both sides meet; false if the other has found a mismatch or is gone. */
static bool meet_peer(const struct traffic_side *side, bool well)
{
	uint8_t mine = well;
	uint8_t theirs = 0;

	return exchange_data(side->control, &mine, &theirs, 1) && well && theirs;
}

/* ---- setting up ---- */

static uint8_t *map_area(void)
{
	void *p =
		mmap(NULL, PLAN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		device_die("mmap: %m");
	return p;
}

static void register_twice(struct traffic_side *side, uint8_t *area, int access,
			   struct ibv_mr *mr[2])
{
	for (int i = 0; i < 2; i++) {
		mr[i] = ibv_reg_mr(side->pd, area + PLAN_GUARD, PLAN_AREA, access);
		if (!mr[i])
			device_die("ibv_reg_mr: %m");
	}
}

static void create_cqs(struct traffic_side *side)
{
	uint32_t depth = SIDE_DEPTH * side->options->qps;

	for (int i = 0; i < 2; i++) {
		struct ibv_cq_init_attr_ex attr = {
			.cqe = depth,
			.channel = side->channel,
			.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM |
				    IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP,
		};
		struct ibv_cq *cq =
			side->options->extended_cq
				? ibv_cq_ex_to_cq(ibv_create_cq_ex(side->port.ctx, &attr))
				: ibv_create_cq(side->port.ctx, (int)depth, NULL, side->channel, 0);

		if (!cq)
			device_die("creating a CQ of %u entries: %m", depth);
		if (i)
			side->recv_cq.cq = cq;
		else
			side->send_cq.cq = cq;
	}
}

static void create_qp(struct traffic_side *side, struct end *end,
		      const struct ibv_device_attr *device)
{
	static const uint64_t ops[] = {
		[IBV_QPT_RC] = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
			       IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
			       IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
			       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
		[IBV_QPT_UC] = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
			       IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
		[IBV_QPT_UD] = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	};
	uint32_t max_sge =
		(uint32_t)device->max_sge < PLAN_MAX_SGE ? (uint32_t)device->max_sge : PLAN_MAX_SGE;
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = side->send_cq.cq,
		.recv_cq = side->recv_cq.cq,
		.srq = side->srq,
		.cap =
			{
				.max_send_wr = SIDE_DEPTH,
				.max_recv_wr = side->srq ? 0 : SIDE_DEPTH,
				/* The address vector of UD takes the place of some entries. */
				.max_send_sge = max_sge > 8 ? max_sge - 4 : max_sge,
				.max_recv_sge = side->srq ? 0 : max_sge,
				.max_inline_data = 200,
			},
		.qp_type = side->options->type,
		.pd = side->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = ops[side->options->type],
	};

	end->qp = ibv_create_qp_ex(side->port.ctx, &attr);
	if (!end->qp)
		device_die("ibv_create_qp_ex with %u entries: %m", attr.cap.max_send_sge);
	side->max_inline = attr.cap.max_inline_data;
}

static void create_srq(struct traffic_side *side, const struct ibv_device_attr *device)
{
	struct ibv_srq_init_attr attr = {
		.attr = {.max_wr = SIDE_DEPTH, .max_sge = (uint32_t)device->max_srq_sge},
	};

	if (attr.attr.max_sge > PLAN_MAX_SGE)
		attr.attr.max_sge = PLAN_MAX_SGE;
	side->srq = ibv_create_srq(side->pd, &attr);
	if (!side->srq)
		device_die("ibv_create_srq: %m");
}

/* Both sides must arrive at the same limits: these come from the options and the device alone. */
static void open_flows(struct traffic_side *side, uint32_t conn,
		       const struct ibv_device_attr *device)
{
	const struct options *o = side->options;
	struct end *end = &side->ends[conn];
	uint32_t max_sge =
		(uint32_t)device->max_sge < PLAN_MAX_SGE ? (uint32_t)device->max_sge : PLAN_MAX_SGE;
	uint32_t port_mtu = 128u << side->port.attr.active_mtu;
	struct plan_limits limits = {
		.type = o->type,
		.max_size = o->max_size,
		.mtu = 128u << o->mtu,
		.max_sge = max_sge > 8 ? max_sge - 4 : max_sge,
		.max_recv_sge = side->srq && (uint32_t)device->max_srq_sge < max_sge
					? (uint32_t)device->max_srq_sge
					: max_sge,
		.max_inline = side->max_inline,
		.max_batch = PLAN_MAX_BATCH,
	};

	/* A datagram is one packet of the port's MTU. */
	if (o->type == IBV_QPT_UD) {
		limits.mtu = port_mtu;
		limits.max_size = limits.max_size < port_mtu ? limits.max_size : port_mtu;
	}
	for (uint32_t i = 0; i < 2; i++) {
		if (!flow_open(&end->flows[i], o->seed * 1000003u + conn * 2 + i, &limits))
			device_die("out of memory");
	}
	flow_fill(&end->flows[side->index], end->initiator, NULL);
	flow_fill(&end->flows[!side->index], NULL, end->target);
}

static void open_end(struct traffic_side *side, uint32_t conn, const struct ibv_device_attr *device)
{
	struct end *end = &side->ends[conn];
	bool one_sided = side->options->type != IBV_QPT_UD;

	end->initiator = map_area();
	end->target = map_area();
	register_twice(side, end->initiator, IBV_ACCESS_LOCAL_WRITE, end->initiator_mr);
	register_twice(side, end->target,
		       IBV_ACCESS_LOCAL_WRITE |
			       (one_sided ? (int)device_default_connection.access : 0),
		       end->target_mr);
	create_qp(side, end, device);
	open_flows(side, conn, device);
}

static void connect_end(struct traffic_side *side, uint32_t conn)
{
	struct end *end = &side->ends[conn];
	struct device_connection how = device_default_connection;
	/* PSNs that wrap around soon. */
	uint32_t psn = (0xffffffu - conn * 3u) & 0xffffffu;
	struct greeting mine = {
		.address = device_address(&side->port, end->qp, psn),
		.target = (uintptr_t)(end->target + PLAN_GUARD),
		.rkey = {end->target_mr[0]->rkey, end->target_mr[1]->rkey},
	};
	struct greeting theirs;

	if (!exchange_data(side->control, &mine, &theirs, sizeof(mine)))
		device_die("the other side is gone");
	end->peer_target = theirs.target;
	end->peer_rkey[0] = theirs.rkey[0];
	end->peer_rkey[1] = theirs.rkey[1];
	end->peer_qpn = theirs.address.qpn;
	how.mtu = side->options->mtu;
	if (side->options->type != IBV_QPT_RC)
		how.access = side->options->type == IBV_QPT_UC ? IBV_ACCESS_REMOTE_WRITE : 0;
	device_qp_init(end->qp, &how);
	device_qp_connect(&side->port, end->qp, &how, &theirs.address, psn);
	if (side->options->type == IBV_QPT_UD) {
		struct ibv_ah_attr ah = device_ah_attr(&side->port, &theirs.address);

		end->ah = ibv_create_ah(side->pd, &ah);
		if (!end->ah)
			device_die("ibv_create_ah: %m");
	}
}

static void side_open(struct traffic_side *side)
{
	struct ibv_device_attr device;

	device_port_open(&side->port, side->options->device, side->options->gid_index);
	if (ibv_query_device(side->port.ctx, &device))
		device_die("ibv_query_device: %m");
	side->pd = ibv_alloc_pd(side->port.ctx);
	if (!side->pd)
		device_die("ibv_alloc_pd: %m");
	if (side->options->events) {
		side->channel = ibv_create_comp_channel(side->port.ctx);
		if (!side->channel)
			device_die("ibv_create_comp_channel: %m");
	}
	create_cqs(side);
	if (side->options->srq)
		create_srq(side, &device);
	side->ends = calloc(side->options->qps, sizeof(*side->ends));
	if (!side->ends)
		device_die("out of memory");
	for (uint32_t i = 0; i < side->options->qps; i++)
		open_end(side, i, &device);
	for (uint32_t i = 0; i < side->options->qps; i++)
		connect_end(side, i);
}

static void must_succeed(int err, const char *what)
{
	if (err)
		device_die("%s: %s", what, strerror(err));
}

static void close_end(struct end *end)
{
	if (end->ah)
		must_succeed(ibv_destroy_ah(end->ah), "ibv_destroy_ah");
	must_succeed(ibv_destroy_qp(end->qp), "ibv_destroy_qp");
	for (int i = 0; i < 2; i++) {
		must_succeed(ibv_dereg_mr(end->initiator_mr[i]), "ibv_dereg_mr");
		must_succeed(ibv_dereg_mr(end->target_mr[i]), "ibv_dereg_mr");
		flow_close(&end->flows[i]);
	}
	munmap(end->initiator, PLAN_BYTES);
	munmap(end->target, PLAN_BYTES);
}

/* Every destroy call must succeed: a count that does not balance shows here. */
static void side_close(struct traffic_side *side)
{
	for (uint32_t i = 0; i < side->options->qps; i++)
		close_end(&side->ends[i]);
	free(side->ends);
	if (side->srq)
		must_succeed(ibv_destroy_srq(side->srq), "ibv_destroy_srq");
	must_succeed(ibv_destroy_cq(side->send_cq.cq), "ibv_destroy_cq");
	must_succeed(ibv_destroy_cq(side->recv_cq.cq), "ibv_destroy_cq");
	if (side->channel)
		must_succeed(ibv_destroy_comp_channel(side->channel), "ibv_destroy_comp_channel");
	must_succeed(ibv_dealloc_pd(side->pd), "ibv_dealloc_pd");
	device_port_close(&side->port);
}

/* ---- comparing ---- */

/* The first bytes of a received datagram hold the GRH or nothing defined: taken over. */
static void accept_grh(const struct flow *flow, uint8_t *model, const uint8_t *real)
{
	for (uint32_t i = 0; i < flow->batch.count; i++) {
		const struct op *op = &flow->batch.ops[i];
		uint32_t left = PLAN_GRH;

		for (uint32_t s = 0; s < op->receives && left; s++) {
			uint32_t n = op->receive[s].length < left ? op->receive[s].length : left;
			size_t at = PLAN_GUARD + op->receive[s].offset;

			memcpy(model + at, real + at, n);
			left -= n;
		}
	}
}

static bool compare_areas(struct traffic_side *side, uint32_t conn, const char *what,
			  const struct flow *flow, const uint8_t *model, const uint8_t *real)
{
	uint32_t at = 0;
	uint32_t differing = 0;

	if (!memcmp(model, real, PLAN_BYTES))
		return true;
	while (model[at] == real[at])
		at++;
	for (uint32_t i = at; i < PLAN_BYTES; i++)
		differing += model[i] != real[i];
	side_complain(side,
		      "connection %u: %u bytes of the %s area differ, the first at offset %ld: "
		      "%#x, expected %#x",
		      conn, differing, what, (long)at - (long)PLAN_GUARD, real[at], model[at]);
	for (uint32_t i = 0; i < flow->batch.count; i++) {
		const struct op *op = &flow->batch.ops[i];

		fprintf(stderr,
			"    %2u %s%s%s %u bytes, %u entries from %u; remote %u; %u into %u\n", i,
			op_name(op->kind), op->inlined ? " inline" : "",
			op->fenced ? " fenced" : "", op->length, op->locals, op->local[0].offset,
			op->remote, op->receives, op->receive[0].offset);
	}
	return false;
}

static bool compare_all(struct traffic_side *side)
{
	bool same = true;

	for (uint32_t i = 0; i < side->options->qps; i++) {
		struct end *end = &side->ends[i];
		struct flow *out = &end->flows[side->index];
		struct flow *in = &end->flows[!side->index];

		if (side->options->type == IBV_QPT_UD)
			accept_grh(in, in->target, end->target);
		same &= compare_areas(side, i, "initiator's", out, out->initiator, end->initiator);
		same &= compare_areas(side, i, "target's", in, in->target, end->target);
	}
	return same;
}

/* ---- rounds ---- */

/* Does what a faulty adapter would do, somewhere in one of the areas, guard zones included. */
static void spoil_byte(struct traffic_side *side)
{
	struct rnd rnd = {side->options->seed};
	struct end *end = &side->ends[rnd_below(&rnd, side->options->qps)];
	uint8_t *area = rnd_percent(&rnd, 50) ? end->initiator : end->target;

	area[rnd_below(&rnd, PLAN_BYTES)] ^= (uint8_t)(1u << rnd_below(&rnd, 8));
}

static bool post_receives(struct traffic_side *side, bool late)
{
	for (uint32_t i = 0; i < side->options->qps; i++) {
		if (side->ends[i].flows[!side->index].batch.late_receive == late &&
		    !side_post_receives(side, i))
			return false;
	}
	return true;
}

static bool post_batches(struct traffic_side *side)
{
	for (uint32_t i = 0; i < side->options->qps; i++) {
		if (!side_post_batch(side, i))
			return false;
	}
	return true;
}

/* Returns the operations done on the flows that we initiate, 0 after a mismatch. */
static uint64_t one_round(struct traffic_side *side)
{
	uint64_t ops = 0;

	for (uint32_t i = 0; i < side->options->qps; i++) {
		flow_next(&side->ends[i].flows[0]);
		flow_next(&side->ends[i].flows[1]);
		ops += side->ends[i].flows[side->index].batch.count;
	}
	if (!meet_peer(side, post_receives(side, false)))
		return 0;
	if (!meet_peer(side,
		       post_batches(side) && post_receives(side, true) && side_complete(side)))
		return 0;
	if (side->options->spoil && side->round == 3)
		spoil_byte(side);
	/* The peer must not begin to change our memory while we compare. */
	return meet_peer(side, compare_all(side)) ? ops : 0;
}

bool side_run(const struct options *options, int index, int control)
{
	struct traffic_side side = {.options = options, .index = index, .control = control};
	uint64_t done = 0;

	side_open(&side);
	if (!meet_peer(&side, true))
		return false;
	/* Both sides count rounds, not their own operations: they must stop together. */
	for (uint64_t target = options->ops * options->qps * 2 / PLAN_MAX_BATCH + 1;
	     side.round * options->qps < target; side.round++) {
		uint64_t ops = one_round(&side);

		if (!ops)
			return false;
		done += ops;
	}
	side_close(&side);
	if (options->verbose)
		printf("side %d: %lu operations in %lu rounds, all as expected\n", index, done,
		       side.round);
	return true;
}
