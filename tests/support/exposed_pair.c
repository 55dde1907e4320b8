// SPDX-License-Identifier: BSD-2-Clause
#include "exposed_pair.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "test_slots.h"
#include "test_subnet.h"

#define CHANNEL_BYTES (1u << 20)
#define TARGET_OFFSET 8192u /* of the target in its file */
#define LID	      7u

static int64_t chunk_alloc(void *user, enum number_kind kind)
{
	struct exposed_side *s = user;
	uint32_t c = ++s->pair->next_chunk;

	if (kind == NUMBER_QPN)
		atomic_store(&s->pair->registry->qpn_slot_plus_1[c], (uint16_t)(s->slot + 1));
	return (int64_t)c << REGISTRY_CHUNK_SHIFT;
}

static int channel_open(void *user, uint16_t peer, int *fd, size_t *bytes, int *side)
{
	struct exposed_side *s = user;

	*fd = dup(s->pair->channel);
	*bytes = CHANNEL_BYTES;
	*side = s->slot > peer;
	return 0;
}

static void side_up(struct exposed_pair *p, struct exposed_side *s, uint16_t slot)
{
	const struct wire_process_attr attr = {
		.registry = p->registry,
		.subnet = &p->subnet,
		.slots = p->slots,
		.slot = slot,
		.open_channel = channel_open,
		.expose = true,
		.user = s,
	};
	struct adapter_attr a = {.number_chunk = chunk_alloc, .user = s};

	s->pair = p;
	s->slot = slot;
	s->device = (struct test_device){
		.registry = p->registry, .subnet = &p->subnet, .slots = p->slots};
	p->slots[slot].pid = getpid();
	atomic_store(&p->slots[slot].alive, 1);
	CHECK(!wire_process_create(&attr, &s->device.host));
	CHECK(!wire_create(s->device.host, slot, &s->device.wire[0]));
	a.wire = s->device.wire[0];
	CHECK(!adapter_create(&a, &s->device.adapter[0]));
}

static void side_down(struct exposed_side *s)
{
	adapter_destroy(s->device.adapter[0]);
	wire_destroy(s->device.wire[0]);
	wire_process_destroy(s->device.host);
}

void exposed_pair_connect(struct exposed_pair *p, struct device_qp *q, struct device_qp *peer,
			  uint16_t peer_slot)
{
	struct qp_attr attr;

	device_attr(&p->initiator.device, 0, peer, &attr);
	attr.ah.dlid = (uint16_t)(LID + peer_slot);
	attr.timeout = 0;
	attr.max_dest_rd_atomic = p->takes_reads;
	device_qp_ready(q, &attr);
}

struct expose *exposed_pair_expose(struct exposed_pair *p)
{
	return wire_expose(p->target.device.wire[0]);
}

struct qp_block *exposed_pair_block(struct exposed_pair *p)
{
	return &exposed_pair_expose(p)->mem->qps[qp_number(p->to->qp.qp) % EXPOSE_BLOCKS];
}

uint32_t exposed_pair_msn(struct exposed_pair *p)
{
	return qp_word_msn(qp_word_load(&exposed_pair_block(p)->word));
}

static void target_file_up(struct exposed_pair *p)
{
	int fd = memfd_create("target", MFD_CLOEXEC);

	CHECK(fd >= 0 && !ftruncate(fd, EXPOSED_PAIR_FILE_BYTES));
	CHECK(!segment_table_add(&exposed_pair_expose(p)->segments, hidden_keep(fd),
				 EXPOSED_PAIR_FILE_BYTES, &p->file));
}

void *exposed_pair_map(struct exposed_pair *p, uint64_t offset, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			exposed_pair_expose(p)->segments.own[p->file.row].file.fd, (off_t)offset);

	CHECK(at != MAP_FAILED);
	return at;
}

void exposed_pair_data(struct exposed_pair *p, struct mkey *key)
{
	const struct key_place place = {
		.way = p->way,
		.addr = (uintptr_t)p->to->data,
		.segment = p->file,
		.offset = TARGET_OFFSET + (uint64_t)(p->to->data - (const uint8_t *)p->to),
	};

	mkey_expose(p->target.device.adapter[0], key, &place);
}

void exposed_pair_live(struct exposed_pair *p)
{
	test_life_begin(&p->life, &exposed_pair_expose(p)->mem->alive);
}

void exposed_pair_die(struct exposed_pair *p)
{
	test_life_end(&p->life);
}

struct exposed_pair *exposed_pair_up_of(enum key_way way, enum ib_qp_type type)
{
	struct exposed_pair *p = aligned_alloc(64, align_up(sizeof(*p), 64));

	CHECK(p);
	memset(p, 0, sizeof(*p));
	p->way = way;
	p->registry = calloc(1, sizeof(*p->registry));
	p->slots = test_slots_map();
	CHECK(p->registry);
	test_subnet_open(&p->subnet, EXPOSED_PAIR_PORTS);
	for (unsigned i = 0; i < EXPOSED_PAIR_PORTS; i++) {
		test_subnet_port(&p->subnet, i, 0, false);
		test_subnet_lid(&p->subnet, i, (uint16_t)(LID + i));
		atomic_store(&p->registry->slot_host_plus_1[i], i + 1);
	}
	p->channel = memfd_create("channel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(p->channel >= 0 && !ftruncate(p->channel, CHANNEL_BYTES));
	side_up(p, &p->initiator, 0);
	side_up(p, &p->target, 1);

	target_file_up(p);
	p->to = exposed_pair_map(p, TARGET_OFFSET, sizeof(*p->to));
	device_qp_up(&p->initiator.device, 0, &p->from, type);
	device_qp_up(&p->target.device, 0, &p->to->qp, type);
	p->source_key = device_mr(&p->initiator.device, 0, p->from.pdn, p->source,
				  sizeof(p->source), EXPOSED_PAIR_RIGHTS, &p->mr[0]);
	p->target_key = device_mr(&p->target.device, 0, p->to->qp.pdn, p->to->data,
				  sizeof(p->to->data), EXPOSED_PAIR_RIGHTS, &p->mr[1]);
	p->takes_reads = 4;
	exposed_pair_connect(p, &p->from, &p->to->qp, 1);
	exposed_pair_connect(p, &p->to->qp, &p->from, 0);
	exposed_pair_data(p, p->mr[1]);
	exposed_pair_live(p);
	for (unsigned i = 0; i < sizeof(p->source); i++)
		p->source[i] = (uint8_t)(i * 7 + 1);
	return p;
}

struct exposed_pair *exposed_pair_up(enum key_way way)
{
	return exposed_pair_up_of(way, IB_QPT_RC);
}

void exposed_pair_down(struct exposed_pair *p)
{
	exposed_pair_die(p);
	device_qp_down(&p->from);
	device_qp_down(&p->to->qp);
	mkey_destroy(p->initiator.device.adapter[0], p->mr[0]);
	mkey_destroy(p->target.device.adapter[0], p->mr[1]);
	munmap(p->to, sizeof(*p->to));
	side_down(&p->initiator);
	side_down(&p->target);
	close(p->channel);
	test_subnet_close(&p->subnet);
	free(p->registry);
	test_slots_unmap(p->slots);
	free(p);
}

void exposed_pair_post(struct exposed_pair *p, uint8_t opcode, uint32_t imm, uint32_t len)
{
	struct device_wqe w;

	device_wqe_begin(&p->from, &w, opcode, WQE_CTRL_CE_ALWAYS, imm);
	if (opcode == WQE_OP_RDMA_WRITE || opcode == WQE_OP_RDMA_READ)
		device_wqe_raddr(&w, (uintptr_t)p->to->data, p->target_key);
	device_wqe_data(&w, p->source, len, p->source_key);
	device_wqe_end(&w);
}

/* The packets' way. */
void exposed_pair_progress(struct exposed_pair *p)
{
	for (unsigned i = 0; i < 200; i++) {
		uint64_t never = UINT64_MAX;

		(void)adapter_progress(p->initiator.device.adapter[0], &never);
		(void)adapter_progress(p->target.device.adapter[0], &never);
		(void)wire_process_progress(p->initiator.device.host);
		(void)wire_process_progress(p->target.device.host);
		usleep(10);
	}
}

void exposed_pair_sent(struct exposed_pair *p, uint8_t op)
{
	const struct cqe64 *cqe = device_cq_poll(&p->from.cq);

	CHECK(cqe && cqe->op_own >> 4 == op);
}

void exposed_pair_received(struct exposed_pair *p, uint8_t op, uint32_t bytes)
{
	const struct cqe64 *cqe = device_cq_poll(&p->to->qp.cq);

	CHECK(cqe && cqe->op_own >> 4 == op);
	if (op != CQE_OP_RESP_ERR)
		CHECK(be32_get(cqe->byte_cnt) == bytes &&
		      (be32_get(cqe->flags_rqpn) & IB_QPN_MASK) == qp_number(p->from.qp) &&
		      (be32_get(cqe->sop_drop_qpn) & IB_QPN_MASK) == qp_number(p->to->qp.qp));
}

uint64_t exposed_pair_counted(const struct exposed_side *s, enum port_counter c)
{
	uint64_t n = 0;

	for (unsigned shard = 0; shard < SLOT_SHARDS; shard++)
		n += atomic_load(&s->pair->slots[s->slot].counters[shard][0][c]);
	return n;
}

void exposed_pair_count(const struct exposed_pair *p, uint64_t got[EXPOSED_PAIR_COUNTS])
{
	static const enum port_counter c[] = {PORT_XMIT_DATA, PORT_XMIT_PACKETS, PORT_RCV_DATA,
					      PORT_RCV_PACKETS};

	for (unsigned i = 0; i < 8; i++)
		got[i] =
			exposed_pair_counted(i < 4 ? &p->initiator : &p->target, c[i % 4]) - got[i];
	got[8] = exposed_pair_counted(&p->target, HW_RX_WRITE_REQUESTS) - got[8];
	got[9] = exposed_pair_counted(&p->target, HW_RX_READ_REQUESTS) - got[9];
}

void exposed_pair_ignore(struct tap *t, enum tap_point at, uint64_t ns, uint32_t port_row,
			 const struct pkt *p)
{
	(void)t;
	(void)at;
	(void)ns, (void)port_row;
	(void)p;
}
