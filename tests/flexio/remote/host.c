// SPDX-License-Identifier: BSD-2-Clause
/* The host program of tests/flexio/remote; the argument is the name of a case. */
#include "host.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENT_S 60
#define CQE_BYTES 64u
#define RQ_BYTES  (16u << LOG_DEPTH)
#define SQ_BYTES  (64u << LOG_DEPTH)
/* What the first packets count from, each way. */
#define OUR_PSN	  0x100u
#define THEIR_PSN 0xfffff0u

uint64_t end_call(struct end *e, flexio_func_t *f, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t value = UINT64_MAX;

	OK(flexio_process_call(e->p, f, &value, a, b, c));
	return value;
}

uint64_t end_heap(struct end *e, size_t bytes, int value)
{
	flexio_uintptr_t at;

	OK(flexio_buf_dev_alloc(e->p, bytes, &at));
	OK(flexio_buf_dev_memset(e->p, value, bytes, at));
	return at;
}

static void end_context(struct end *e, bool ethernet)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port = {0};

	CHECK(list);
	for (int i = 0; list[i] && !e->ctx; i++) {
		e->ctx = ibv_open_device(list[i]);
		CHECK(e->ctx && !ibv_query_port(e->ctx, 1, &port));
		if ((port.link_layer == IBV_LINK_LAYER_ETHERNET) == ethernet)
			break;
		CHECK(!ibv_close_device(e->ctx));
		e->ctx = NULL;
	}
	ibv_free_device_list(list);
	CHECK(e->ctx);
	e->ethernet = ethernet;
	e->lid = port.lid;
	CHECK(!ibv_query_gid(e->ctx, 1, ethernet, &e->gid));
}

void line_up_as(struct end *e, struct line *line, struct flexio_cq_attr attr)
{
	struct reader r = {.depth = DEPTH};
	flexio_uintptr_t at;

	attr.log_cq_depth = LOG_DEPTH;
	attr.uar_id = flexio_uar_get_id(flexio_process_get_uar(e->p));
	attr.cqe_comp_type = e->compression;

	r.ring = end_heap(e, CQE_BYTES << LOG_DEPTH, 0xff);
	line->ring = r.ring;
	r.record = end_heap(e, 8, 0);
	attr.cq_ring_qmem.daddr = r.ring;
	attr.cq_dbr_daddr = r.record;
	OK(flexio_cq_create(e->p, NULL, &attr, &line->cq));
	OK(flexio_copy_from_host(e->p, &r, sizeof(r), &at));
	line->reader = at;
}

void line_up(struct end *e, struct line *line)
{
	line_up_as(e, line,
		   (struct flexio_cq_attr){.element_type = FLEXIO_CQ_ELEMENT_TYPE_NON_DPA_CQ});
}

void end_open(struct end *e, bool ethernet, uint32_t transport)
{
	struct flexio_mkey_attr key = {.len = DATA_BYTES, .access = RIGHTS};

	memset(e, 0, sizeof(*e));
	end_context(e, ethernet);
	OK(flexio_process_create(e->ctx, remote_app, NULL, &e->p));
	e->pd = flexio_process_get_pd(e->p);
	line_up(e, &e->sent);
	line_up(e, &e->received);
	e->rings = end_heap(e, RQ_BYTES + SQ_BYTES, 0);
	e->record = end_heap(e, 8, 0);
	e->data = end_heap(e, DATA_BYTES, 0);
	e->post_at = end_heap(e, sizeof(e->post), 0);
	e->posts_at = end_heap(e, sizeof(e->posts), 0);
	key.pd = e->pd;
	key.daddr = e->data;
	OK(flexio_device_mkey_create(e->p, &key, &e->mkey));
	e->key = flexio_mkey_get_id(e->mkey);
	e->made = (struct flexio_qp_attr){
		.transport_type = transport,
		.uar_id = flexio_uar_get_id(flexio_process_get_uar(e->p)),
		.user_index = USER_INDEX,
		.log_sq_depth = LOG_DEPTH,
		.sq_cqn = flexio_cq_get_cq_num(e->sent.cq),
		.log_rq_depth = LOG_DEPTH,
		.rq_cqn = flexio_cq_get_cq_num(e->received.cq),
		.qp_wq_buff_qmem.daddr = e->rings,
		.qp_wq_dbr_qmem.daddr = e->record,
	};
}

void end_make(struct end *e)
{
	OK(flexio_qp_create(e->p, NULL, &e->made, &e->qp));
	e->qpn = flexio_qp_get_qp_num(e->qp);
	e->post = (struct post){
		.qpn = e->qpn,
		.ring = e->rings + RQ_BYTES,
		.ce = 2,
		.data = e->data,
		.key = e->key,
	};
	e->posts = (struct posts){.ring = e->rings, .record = e->record, .key = e->key};
}

struct flexio_qp_attr end_attr(const struct end *e, const struct peer *p)
{
	static uint8_t mac[6];
	struct flexio_qp_attr attr = {
		.qp_access_mask = RIGHTS,
		.remote_qp_num = p->qpn,
		.gid_table_index = e->ethernet,
		.rgid_or_rip = p->gid,
		.rlid = (uint16_t)p->lid,
		.min_rnr_nak_timer = 12,
		.path_mtu = FLEXIO_QP_QPC_MTU_BYTES_1K,
		.retry_count = 7,
		.vhca_port_num = 1,
		.next_rcv_psn = THEIR_PSN,
		.next_send_psn = OUR_PSN,
		.udp_sport = e->ethernet ? 0xc123 : 0,
		.log_rra_max = 2,
		.log_sra_max = 2,
		.fl = e->looped,
	};

	if (e->looped) {
		attr.rlid ^= 0x3f00;
		memset(&attr.rgid_or_rip.raw[12], 0x77, 4);
	}
	/* the last 64 bits of an address of the link are made of the MAC */
	for (unsigned i = 0; i < 6; i++)
		mac[i] = p->gid.raw[8 + i + (i >= 3 ? 2 : 0)];
	mac[0] ^= 2;
	if (e->ethernet)
		attr.dest_mac = mac;
	return attr;
}

void end_move(struct end *e, struct flexio_qp_attr *attr, enum flexio_qp_state from,
	      enum flexio_qp_state to)
{
	for (unsigned s = from + 1; s <= to; s++) {
		attr->next_state = (enum flexio_qp_state)s;
		OK(flexio_qp_modify(e->qp, attr, NULL));
		CHECK(flexio_qp_state_get(e->qp) == attr->next_state);
	}
}

void peer_meet(struct peer *p, const struct end *e, const struct flexio_qp_attr *attr,
	       unsigned reads)
{
	char gid[33];

	for (unsigned i = 0; i < 16; i++)
		snprintf(gid + 2 * i, 3, "%02x", e->gid.raw[i]);
	peer_do(p, "connect %u %u %s %u %u %u %u %u", e->qpn, e->lid, gid, attr->path_mtu,
		attr->next_send_psn, attr->next_rcv_psn, reads, attr->grh);
}

void end_meet(struct end *e, struct peer *p)
{
	struct flexio_qp_attr attr = end_attr(e, p);

	end_move(e, &attr, FLEXIO_QP_STATE_RST, FLEXIO_QP_STATE_RTS);
	peer_meet(p, e, &attr, 4);
}

/* As a request has it: 48 bytes. */
void end_address(struct end *e, const struct peer *p, const struct flexio_qp_attr *attr)
{
	uint8_t *av = (uint8_t *)e->post.address;

	memset(av, 0, sizeof(e->post.address));
	av[8] = 0x80;
	av[9] = (uint8_t)(p->qpn >> 16);
	av[10] = (uint8_t)(p->qpn >> 8);
	av[11] = (uint8_t)p->qpn;
	av[13] = e->looped ? 0x80 : 0;
	if (!e->ethernet) {
		av[14] = (uint8_t)(attr->rlid >> 8);
		av[15] = (uint8_t)attr->rlid;
		return;
	}
	av[14] = (uint8_t)(attr->udp_sport >> 8);
	av[15] = (uint8_t)attr->udp_sport;
	memcpy(av + 20, attr->dest_mac, 6);
	av[27] = 64;
	av[28] = 0x40;
	av[29] = (uint8_t)(attr->gid_table_index << 4);
	memcpy(av + 32, attr->rgid_or_rip.raw, 16);
}

static void line_down(struct end *e, struct line *line)
{
	struct reader r = {0};
	uint64_t *word = (uint64_t *)&r;

	for (size_t i = 0; i < 2; i++)
		word[i] = end_call(e, &peek, line->reader + 8 * i, 0, 0);
	OK(flexio_cq_destroy(line->cq));
	OK(flexio_buf_dev_free(e->p, r.ring));
	OK(flexio_buf_dev_free(e->p, r.record));
	OK(flexio_buf_dev_free(e->p, line->reader));
}

void end_close(struct end *e)
{
	if (e->qp)
		OK(flexio_qp_destroy(e->qp));
	line_down(e, &e->sent);
	line_down(e, &e->received);
	OK(flexio_device_mkey_destroy(e->mkey));
	OK(flexio_process_destroy(e->p));
	CHECK(!ibv_close_device(e->ctx));
}

/* ---- what it does ---- */

void end_post(struct end *e, enum post_kind kind)
{
	e->post.kind = kind;
	OK(flexio_host2dev_memcpy(e->p, &e->post, sizeof(e->post), e->post_at));
	CHECK(!end_call(e, &post, e->post_at, 0, 0));
	e->post.pi = end_call(e, &peek, e->post_at + offsetof(struct post, pi), 0, 0);
}

void end_receive(struct end *e, unsigned count, uint64_t data, uint32_t bytes)
{
	e->posts.count = count;
	e->posts.data = data;
	e->posts.bytes = e->posts.step = bytes;
	OK(flexio_host2dev_memcpy(e->p, &e->posts, sizeof(e->posts), e->posts_at));
	CHECK(!end_call(e, &receive, e->posts_at, 0, 0));
	e->posts.pi = end_call(e, &peek, e->posts_at + offsetof(struct posts, pi), 0, 0);
}

uint64_t end_take(struct end *e, const struct line *line)
{
	uint64_t *word = (uint64_t *)&e->last;
	time_t end = time(NULL) + PATIENT_S;

	while (!end_call(e, &take, line->reader, 0, 0)) {
		CHECK(time(NULL) < end);
		usleep(1000);
	}
	for (size_t i = 0; i < sizeof(e->last) / 8; i++)
		word[i] = end_call(e, &peek, line->reader + 8 * i, 0, 0);
	return e->last.opcode;
}

bool end_quiet(struct end *e, const struct line *line)
{
	return !end_call(e, &take, line->reader, 0, 0);
}

void end_done(struct end *e, enum post_kind kind)
{
	uint16_t counter = (uint16_t)e->post.pi;

	end_post(e, kind);
	end_take(e, &e->sent);
	CHECK_SAY(e->last.opcode == DONE_REQUEST, "kind %d: syndrome 0x%llx", (int)kind,
		  (unsigned long long)e->last.syndrome);
	CHECK(e->last.counter == counter && e->last.qpn == e->qpn);
	CHECK(e->last.user_index == USER_INDEX);
}

void end_fails(struct end *e, enum post_kind kind, unsigned syndrome)
{
	end_post(e, kind);
	end_take(e, &e->sent);
	CHECK_SAY(e->last.opcode == DONE_REQUEST_ERROR && e->last.syndrome == syndrome,
		  "kind %d: opcode %llu, syndrome 0x%llx", (int)kind,
		  (unsigned long long)e->last.opcode, (unsigned long long)e->last.syndrome);
}

int main(int argc, char **argv)
{
	const struct host_case *const all[] = {kind_cases, local_cases, field_cases, frame_cases,
					       pool_cases, death_cases, depth_cases, script_cases,
					       part_cases, event_cases};

	CHECK(argc > 1);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (const struct host_case *c = all[i]; c->name; c++)
			if (!strcmp(c->name, argv[1])) {
				c->run();
				return 0;
			}
	CHECK_SAY(false, "no case %s", argv[1]);
}
