// SPDX-License-Identifier: BSD-2-Clause
#include "signed_pair.h"

#include <string.h>
#include <time.h>

#include "adapter/memory/mkey_indirect.h"
#include "base/hazard.h"

static const uint16_t lids[2] = {7, 9};

static unsigned dev_of(const struct signed_pair *t, unsigned side)
{
	return t->two_processes ? side : 0;
}

struct adapter *signed_pair_adapter(struct signed_pair *t, unsigned side)
{
	return t->device.adapter[dev_of(t, side)];
}

struct slot_user {
	struct signed_pair *pair;
	uint16_t slot;
};

static struct slot_user slot_users[2];

/* test_fabric.h: the slot's QP numbers begin there. */
static int64_t slot_chunk(void *user, enum number_kind kind)
{
	struct slot_user *u = user;

	if (kind == NUMBER_QPN)
		return test_fabric_qpn(u->slot);
	return (int64_t)(16 + ++u->pair->chunks) << REGISTRY_CHUNK_SHIFT;
}

static void processes_up(struct signed_pair *t)
{
	struct registry *r;

	t->fabric = test_fabric_create();
	r = t->fabric->registry;
	t->device.registry = r;
	t->device.subnet = &t->fabric->subnet;
	for (uint16_t i = 0; i < 2; i++) {
		struct wire_process_attr attr = {
			.registry = r,
			.subnet = t->device.subnet,
			.slots = t->fabric->slots,
			.slot = i,
			.open_channel = test_fabric_open_channel,
			.expose = t->exposed,
			.user = &t->process[i],
		};
		struct adapter_attr a = {.number_chunk = slot_chunk,
					 .port = {.fabric_port = i},
					 .user = &slot_users[i]};

		slot_users[i] = (struct slot_user){t, i};
		t->process[i] = (struct test_process){.fabric = t->fabric, .slot = i};
		test_subnet_lid(t->device.subnet, i, lids[i]);
		t->fabric->slots[i].pid = getpid();
		CHECK(!wire_process_create(&attr, &t->process[i].host));
		test_process_live(&t->process[i]);
		CHECK(!wire_create(t->process[i].host, i, &t->device.wire[i]));
		a.wire = t->device.wire[i];
		CHECK(!adapter_create(&a, &t->device.adapter[i]));
	}
	test_process_add_channel(&t->process[0]);
	test_process_add_channel(&t->process[1]);
}

struct mkey *signed_pair_key(struct signed_pair *t, unsigned side)
{
	const struct mkey_indirect_attr attr = {
		.pdn = t->side[side].q.pdn,
		.access = DEVICE_ALL_ACCESS,
		.local_read = true,
		.qpn = MKEY_ANY_QPN,
		.umr = true,
		.signature = true,
		.bsf_octowords = 4,
		.max_entries = SIGNED_PAIR_ENTRIES,
	};

	struct mkey *m;

	CHECK(!mkey_create_indirect(signed_pair_adapter(t, side), &attr, &m));
	return m;
}

static void list_up(struct signed_pair *t, unsigned side)
{
	struct signed_pair_side *s = &t->side[side];

	s->list = signed_pair_key(t, side);
	s->skey = mkey_key(s->list);
	for (unsigned i = 0; i < SIG_SIDES; i++)
		CHECK(!psv_create(signed_pair_adapter(t, side), s->q.pdn, &s->psv[i]));
}

static void pair_up(struct signed_pair *t, const struct signed_pair *kind)
{
	enum ib_qp_type type = kind->type;
	bool two_processes = kind->two_processes;

	*t = *kind;
	if (two_processes)
		processes_up(t);
	else
		device_up(&t->device);
	for (unsigned i = 0; i < 2; i++) {
		struct signed_pair_side *s = &t->side[i];

		device_qp_up(&t->device, dev_of(t, i), &s->q, type);
		s->memory = malloc(SIGNED_PAIR_BYTES);
		CHECK(s->memory);
		s->lkey = device_mr(&t->device, dev_of(t, i), s->q.pdn, s->memory,
				    SIGNED_PAIR_BYTES, DEVICE_ALL_ACCESS, &s->region);
		list_up(t, i);
	}
}

void signed_pair_up(struct signed_pair *t, bool two_processes)
{
	pair_up(t, &(struct signed_pair){.two_processes = two_processes, .type = IB_QPT_RC});
}

void signed_pair_up_exposed(struct signed_pair *t)
{
	pair_up(t,
		&(struct signed_pair){.two_processes = true, .exposed = true, .type = IB_QPT_RC});
}

void signed_pair_up_of(struct signed_pair *t, enum ib_qp_type type)
{
	pair_up(t, &(struct signed_pair){.type = type});
}

void signed_pair_down(struct signed_pair *t)
{
	for (unsigned i = 0; i < 2; i++) {
		struct signed_pair_side *s = &t->side[i];

		device_qp_down(&s->q);
		mkey_destroy(signed_pair_adapter(t, i), s->list);
		mkey_destroy(signed_pair_adapter(t, i), s->region);
		for (unsigned k = 0; k < SIG_SIDES; k++)
			psv_destroy(signed_pair_adapter(t, i), s->psv[k]);
		free(s->memory);
	}
	if (!t->two_processes) {
		device_down(&t->device);
		return;
	}
	for (unsigned i = 0; i < 2; i++) {
		adapter_destroy(t->device.adapter[i]);
		wire_destroy(t->device.wire[i]);
	}
	for (unsigned i = 0; i < 2; i++) {
		test_life_end(&t->process[i].life);
		wire_process_destroy(t->process[i].host);
	}
	close(t->fabric->channel_fd);
}

static void qp_step(struct signed_pair *t, unsigned side, enum ib_qp_state state, uint32_t mask,
		    enum ib_mtu mtu)
{
	struct qp_attr attr;

	device_attr(&t->device, 0, &t->side[!side].q, &attr);
	attr.state = state;
	attr.path_mtu = mtu;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	if (t->two_processes)
		attr.ah = (struct ib_ah){.dlid = lids[!side], .port_num = 1};
	CHECK(!qp_modify(t->side[side].q.qp, &attr, mask));
}

static void restart_qp(struct device_qp *q)
{
	q->sq_pi = q->rq_pi = 0;
	memset(q->dbrec, 0, sizeof(q->dbrec));
	memset(q->async, 0, sizeof(q->async));
}

void signed_pair_connect(struct signed_pair *t, enum ib_mtu mtu)
{
	for (unsigned i = 0; i < 2; i++) {
		qp_step(t, i, IB_QPS_RESET, IB_QP_STATE, mtu);
		restart_qp(&t->side[i].q);
	}
	if (t->type != IB_QPT_RC) {
		device_connect(&t->device, 0, &t->side[0].q, &t->side[1].q);
		return;
	}
	for (unsigned i = 0; i < 2; i++) {
		qp_step(t, i, IB_QPS_INIT,
			IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS, mtu);
		qp_step(t, i, IB_QPS_RTR,
			IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
				IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
			mtu);
		qp_step(t, i, IB_QPS_RTS,
			IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
				IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC,
			mtu);
	}
}

void signed_pair_progress(struct signed_pair *t)
{
	for (unsigned i = 0; i < 2; i++) {
		if (t->two_processes)
			(void)wire_process_progress(t->process[i].host);
		(void)adapter_progress(t->device.adapter[i], NULL);
	}
}

void signed_pair_sign(struct signed_pair *t, unsigned side, const struct sig_config *c,
		      const struct umr_klm *e, uint32_t n, uint64_t length)
{
	struct signed_pair_side *s = &t->side[side];
	struct indirect *k;

	hazard_enter();
	k = indirect_find(signed_pair_adapter(t, side), s->skey);
	CHECK(k && n <= SIGNED_PAIR_ENTRIES);
	spin_lock(&k->lock);
	klm_list_put(&k->list, 0, e, n);
	CHECK(!klm_list_settle(&k->list));
	k->length = length;
	k->has_bsf = true;
	k->reported = false;
	k->generation++;
	memset(k->link, 0, sizeof(k->link));
	sig_plan_make(&k->plan[SIG_GATHER], c, SIG_GATHER);
	sig_plan_make(&k->plan[SIG_SCATTER], c, SIG_SCATTER);
	for (unsigned i = 0; i < SIG_SIDES; i++)
		k->psv[i] = psv_number(s->psv[i]);
	spin_unlock(&k->lock);
	hazard_leave();
}

struct umr_klm signed_pair_klm(const struct signed_pair *t, unsigned side, uint64_t at,
			       uint32_t bytes)
{
	const struct signed_pair_side *s = &t->side[side];

	CHECK(at + bytes <= SIGNED_PAIR_BYTES);
	return (struct umr_klm){be32_of(bytes), be32_of(s->lkey),
				be64_of((uintptr_t)(s->memory + at))};
}

const struct cqe64 *signed_pair_wait(struct signed_pair *t, struct device_cq *cq)
{
	time_t end = time(NULL) + 10;
	const struct cqe64 *cqe;

	while (!(cqe = device_cq_poll(cq))) {
		signed_pair_progress(t);
		CHECK(time(NULL) < end);
	}
	return cqe;
}

uint8_t cqe_op(const struct cqe64 *cqe)
{
	return cqe->op_own >> 4;
}

void check_sig_err(const struct signed_pair *t, unsigned side, const struct cqe64 *cqe,
		   const struct sig_error *e, enum sig_report_style style)
{
	const struct cqe64_sig_err *c = (const struct cqe64_sig_err *)cqe;
	static const uint16_t bit[] = {[SIG_BAD_GUARD] = CQE_SIG_ERR_GUARD,
				       [SIG_BAD_APP_TAG] = CQE_SIG_ERR_APP_TAG,
				       [SIG_BAD_REF_TAG] = CQE_SIG_ERR_REF_TAG};
	struct sig_report r = sig_error_report(e, style);

	CHECK(cqe_op(cqe) == CQE_OP_SIG_ERR);
	CHECK(be16_get(c->syndrome) == bit[e->kind]);
	CHECK(c->sig_type == e->transaction && c->domain == (e->side == SIG_MEMORY));
	CHECK(be32_get(c->mkey) == t->side[side].skey);
	CHECK(be64_get(c->offset) == r.offset);
	CHECK(be32_get(c->expected_trans_sig) == r.expected >> 32);
	CHECK(be32_get(c->actual_trans_sig) == r.actual >> 32);
	CHECK(be32_get(c->expected_ref_tag) == (uint32_t)r.expected);
	CHECK(be32_get(c->actual_ref_tag) == (uint32_t)r.actual);
	CHECK((be32_get(c->sop_drop_qpn) & IB_QPN_MASK) == qp_number(t->side[side].q.qp));
}

struct sig_config crc32(uint8_t check)
{
	return (struct sig_config){
		.side[SIG_MEMORY] = {.type = SIG_CRC32, .block = BLOCK, .seed_ones = true},
		.check_mask = check,
		.data_bytes = UINT32_MAX,
	};
}

void key_up(struct signed_pair *t, unsigned side, uint8_t check)
{
	struct umr_klm e = signed_pair_klm(t, side, 0, UNIT * BLOCKS);
	struct sig_config c = crc32(check);

	signed_pair_sign(t, side, &c, &e, 1, UNIT * BLOCKS);
}

void fill(struct signed_pair *t, unsigned side, unsigned bad)
{
	struct sig_config c = crc32(0xf0);

	for (unsigned k = 0; k < BLOCKS; k++) {
		uint8_t *unit = t->side[side].memory + (size_t)k * UNIT;

		for (unsigned i = 0; i < BLOCK; i++)
			unit[i] = (uint8_t)(i + k * 7);
		model_signature(&c.side[SIG_MEMORY], k, unit, BLOCK, unit + BLOCK);
		if (bad & 1u << k)
			unit[BLOCK] ^= 1;
	}
}

const struct cqe64 *next(struct signed_pair *t, unsigned side)
{
	return signed_pair_wait(t, &t->side[side].q.cq);
}

bool idle(struct signed_pair *t)
{
	for (unsigned i = 0; i < 200; i++)
		signed_pair_progress(t);
	return !device_cq_poll(&t->side[0].q.cq) && !device_cq_poll(&t->side[1].q.cq);
}

void expect_error(struct signed_pair *t, unsigned side, uint64_t block)
{
	const struct cqe64_sig_err *c = (const struct cqe64_sig_err *)next(t, side);

	CHECK(c->op_own >> 4 == CQE_OP_SIG_ERR);
	CHECK(be16_get(c->syndrome) == CQE_SIG_ERR_GUARD);
	CHECK(be64_get(c->offset) == block * UNIT);
	CHECK(be32_get(c->mkey) == t->side[side].skey);
}

void start(struct signed_pair *t, bool pipelining, uint8_t check, unsigned bad)
{
	signed_pair_connect(t, IB_MTU_256);
	memset(t->side[1].memory, 0xee, SIGNED_PAIR_BYTES);
	key_up(t, 0, check);
	fill(t, 0, bad);
	if (pipelining)
		qp_set_drain_sigerr(t->side[0].q.qp, true);
	for (unsigned i = 0; i < 8; i++)
		device_recv(&t->side[1].q, t->side[1].memory + SIGNED_PAIR_BYTES / 2, 16,
			    t->side[1].lkey);
}
