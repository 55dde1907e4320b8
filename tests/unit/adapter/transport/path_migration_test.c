// SPDX-License-Identifier: BSD-2-Clause
/*
 * Automatic path migration: both ends ask for it and arm each other; when nothing arrives on the primary
 * path, when the program asks, or when the peer has migrated, the alternate path takes over.  Both
 * queue pairs are in one process or in two, where peers open their responders to each other, on
 * InfiniBand, where paths differ by their LIDs, and on Ethernet, where they differ by their GIDs.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "adapter/qp/path.h"
#include "adapter/qp/qp.h"
#include "check.h"
#include "signed_pair.h"

#define WORD_BYTES  8u
#define FIRST_TIMER 8u /* ack timeout of the primary path, 1 ms */
#define OTHER_TIMER 9u /* of the alternate path */
#define RETRIES	    2u
#define TO_RTR                                                                     \
	(IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN | \
	 IB_QP_ALT_PATH | IB_QP_PKEY_INDEX)
#define TO_RTR_RC (IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER)
#define TO_RTS_RC (IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC)

enum way { WAY_ONE_PROCESS, WAY_TWO_PROCESSES, WAY_EXPOSED, WAY_ETHERNET, WAYS };

static struct signed_pair pair;
static enum way way;
static const uint16_t lids[2] = {16, 18}; /* LMC 1 */

/* ---- the wire: packets of a broken path are lost ---- */

#define NONE_BROKEN (-1)
#define BOTH_BROKEN 2

static int broken = NONE_BROKEN; /* 0: the primary path's packets are lost, 1: the alternate's */
static unsigned sent[2][2];	 /* [path][MigReq], since count_begin */
static uint16_t second_pkey;	 /* 0: both paths have the same */
static bool outside; /* packets do not say who sent them, as those from outside the fabric */

enum wire_verdict __real_wire_xmit(struct wire *w, const struct pkt *p);
enum wire_verdict __wrap_wire_xmit(struct wire *w, const struct pkt *p);

static int path_of(const struct pkt *p)
{
	return way == WAY_ETHERNET ? p->path->dgid.raw[15] & 1 : p->path->dlid & 1;
}

enum wire_verdict __wrap_wire_xmit(struct wire *w, const struct pkt *p)
{
	struct pkt nameless = *p;

	sent[path_of(p)][!p->migreq_clear]++;
	if (path_of(p) == broken || broken == BOTH_BROKEN)
		return WIRE_SENT;
	nameless.sqpn = PKT_SQPN_UNKNOWN;
	return __real_wire_xmit(w, outside ? &nameless : p);
}

/* ---- the pair ---- */

static struct qp *qp_of(unsigned side)
{
	return pair.side[side].q.qp;
}

static unsigned device_of(unsigned side)
{
	return way == WAY_ETHERNET ? 1 : way == WAY_ONE_PROCESS ? 0 : side;
}

/* The path from a side to the other: 0 the primary path, 1 the alternate path. */
static struct ib_ah address(unsigned side, unsigned path)
{
	struct ib_ah ah = {.port_num = 1, .src_path_bits = (uint8_t)path};

	if (way == WAY_ETHERNET) {
		ah.is_global = 1;
		ah.hop_limit = 64;
		ah.sgid_index = (uint8_t)path;
		ah.dgid = (union ib_gid){.raw = {0xfe, 0x80, [15] = (uint8_t)(2 + path)}};
		return ah;
	}
	ah.dlid = (uint16_t)(lids[way == WAY_ONE_PROCESS ? 0 : !side] + path);
	return ah;
}

static struct qp_attr attributes(unsigned side)
{
	return (struct qp_attr){
		.path_mtu = IB_MTU_1024,
		.rq_psn = 0xfffff0,
		.sq_psn = 0xfffff0,
		.dest_qpn = qp_number(qp_of(!side)),
		.access = DEVICE_ALL_ACCESS & ~(uint32_t)IB_ACCESS_LOCAL_WRITE,
		.ah = address(side, 0),
		.alt_ah = address(side, 1),
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.port_num = 1,
		.alt_port_num = 1,
		.timeout = FIRST_TIMER,
		.alt_timeout = OTHER_TIMER,
		.retry_cnt = RETRIES,
		.rnr_retry = 7,
		.alt_pkey_index = second_pkey ? 1 : 0,
	};
}

static int modify(unsigned side, uint32_t mask, struct qp_attr attr)
{
	return qp_modify(qp_of(side), &attr, mask);
}

static void ready(unsigned side)
{
	bool rc = pair.type == IB_QPT_RC;
	struct qp_attr attr = attributes(side);

	attr.state = IB_QPS_INIT;
	CHECK(!modify(side, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS,
		      attr));
	attr.state = IB_QPS_RTR;
	CHECK(!modify(side, TO_RTR | (rc ? TO_RTR_RC : 0), attr));
	attr.state = IB_QPS_RTS;
	CHECK(!modify(side, IB_QP_STATE | IB_QP_SQ_PSN | (rc ? TO_RTS_RC : 0), attr));
}

static void lmc_set(uint32_t row, uint16_t lid)
{
	uint32_t owner;

	CHECK(!subnet_set_lid(pair.device.subnet, row, lid, 1, &owner));
}

static void pair_up_of(enum way as, enum ib_qp_type type)
{
	way = as;
	broken = NONE_BROKEN;
	memset(&pair, 0, sizeof(pair));
	if (way == WAY_ONE_PROCESS || way == WAY_ETHERNET)
		signed_pair_up_of(&pair, type);
	else if (way == WAY_TWO_PROCESSES)
		signed_pair_up(&pair, true);
	else
		signed_pair_up_exposed(&pair);
	for (unsigned i = 0; way == WAY_ETHERNET && i < 2; i++) {
		const struct subnet_gid_entry other = {address(0, 1).dgid, GID_ROCE_V2};
		struct signed_pair_side *s = &pair.side[i];
		uint32_t owner;

		device_qp_down(&s->q);
		device_qp_up(&pair.device, 1, &s->q, type);
		mkey_destroy(pair.device.adapter[0], s->region);
		s->lkey = device_mr(&pair.device, 1, s->q.pdn, s->memory, SIGNED_PAIR_BYTES,
				    DEVICE_ALL_ACCESS, &s->region);
		CHECK(!subnet_set_gid(pair.device.subnet, 1, 1, &other, &owner));
	}
	if (way == WAY_ONE_PROCESS)
		lmc_set(0, lids[0]);
	for (unsigned i = 0; (way == WAY_TWO_PROCESSES || way == WAY_EXPOSED) && i < 2; i++)
		lmc_set(i, lids[i]);
	for (unsigned i = 0; second_pkey && i < 2; i++)
		atomic_store(&pair.device.subnet->ports[device_of(i)].pkeys[1], second_pkey);
	for (unsigned i = 0; i < 2; i++) {
		memset(pair.side[i].memory, 0, 2 * WORD_BYTES);
		ready(i);
	}
}

static void pair_down(void)
{
	if (way == WAY_ETHERNET)
		for (unsigned i = 0; i < 2; i++) {
			struct signed_pair_side *s = &pair.side[i];

			device_qp_down(&s->q);
			mkey_destroy(pair.device.adapter[1], s->region);
			device_qp_up(&pair.device, 0, &s->q, pair.type);
			s->lkey = device_mr(&pair.device, 0, s->q.pdn, s->memory, SIGNED_PAIR_BYTES,
					    DEVICE_ALL_ACCESS, &s->region);
		}
	signed_pair_down(&pair);
}

/* ---- what happens ---- */

static void expect_state(unsigned side, enum ib_mig_state state)
{
	struct qp_attr now;

	qp_query(qp_of(side), &now);
	CHECK_SAY(now.path_mig_state == state, "side %u: %u, not %u", side, now.path_mig_state,
		  state);
}

static void expect_states(enum ib_mig_state a, enum ib_mig_state b)
{
	expect_state(0, a);
	expect_state(1, b);
}

static int events(unsigned side, enum ib_event event)
{
	return pair.side[side].q.async[event];
}

static void expect_migrated(unsigned side, int times)
{
	const struct ib_ah want = address(side, 1);
	struct qp_attr now;

	expect_state(side, IB_MIG_MIGRATED);
	CHECK_SAY(events(side, IB_EVENT_PATH_MIG) == times, "%d events of side %u",
		  events(side, IB_EVENT_PATH_MIG), side);
	qp_query(qp_of(side), &now);
	CHECK(now.ah.dlid == want.dlid && now.ah.src_path_bits == want.src_path_bits &&
	      now.ah.sgid_index == want.sgid_index &&
	      !memcmp(&now.ah.dgid, &want.dgid, sizeof(want.dgid)));
	CHECK(now.timeout == OTHER_TIMER && now.port_num == 1 &&
	      now.pkey_index == now.alt_pkey_index);
}

static void count_begin(void)
{
	memset(sent, 0, sizeof(sent));
}

static void progress(unsigned rounds)
{
	while (rounds--) {
		signed_pair_progress(&pair);
		if (way == WAY_ETHERNET)
			(void)adapter_progress(pair.device.adapter[1], NULL);
	}
}

/* The side's next completion; its opcode. */
static uint8_t completion(unsigned side)
{
	const struct cqe64 *c = NULL;

	while (!c) {
		progress(1);
		c = device_cq_poll(&pair.side[side].q.cq);
	}
	return cqe_op(c);
}

/* Posts a request for the second word of the peer's memory, from or to our first. */
static void post(unsigned side, uint8_t opcode)
{
	struct signed_pair_side *s = &pair.side[side], *peer = &pair.side[!side];
	struct device_wqe w;

	device_wqe_begin(&s->q, &w, opcode, WQE_CTRL_CE_ALWAYS, 0);
	if (opcode != WQE_OP_SEND)
		device_wqe_raddr(&w, (uintptr_t)peer->memory + WORD_BYTES, peer->lkey);
	if (opcode == WQE_OP_ATOMIC_FA)
		device_wqe_atomic(&w, 1, 0);
	device_wqe_data(&w, s->memory, WORD_BYTES, s->lkey);
	device_wqe_end(&w);
}

static void post_receive(unsigned side)
{
	struct signed_pair_side *s = &pair.side[side];

	device_recv(&s->q, s->memory + WORD_BYTES, WORD_BYTES, s->lkey);
}

static uint64_t *word(unsigned side, unsigned which)
{
	return (uint64_t *)(void *)(pair.side[side].memory + which * WORD_BYTES);
}

/* A message from the side to the other, and the completions of both. */
static void message(unsigned side)
{
	static uint64_t value = 0x0123456789abcdef;

	*word(side, 0) = ++value;
	post_receive(!side);
	post(side, WQE_OP_SEND);
	CHECK(completion(side) == CQE_OP_REQ);
	CHECK(completion(!side) == CQE_OP_RESP_SEND);
	CHECK(*word(!side, 1) == value);
}

/* True if the peer may execute requests at this side without packets. */
static bool is_open(unsigned side)
{
	const struct responder *r = &qp_of(side)->resp;

	return r->remote ? qp_word_is_open(qp_word_load(&r->shared->word)) : r->bypass_ok;
}

static void rearm(unsigned side)
{
	CHECK(!modify(side, IB_QP_PATH_MIG_STATE,
		      (struct qp_attr){.path_mig_state = IB_MIG_REARM}));
	expect_state(side, IB_MIG_REARM);
}

static void arm(void)
{
	rearm(0);
	rearm(1);
	message(0);
	if (pair.type != IB_QPT_RC)
		message(1);
	progress(4);
	expect_states(IB_MIG_ARMED, IB_MIG_ARMED);
}

/* ---- tests ---- */

/* What a program may set, and what it may not, in each state. */
static void test_rules(void)
{
	static const struct {
		enum ib_mig_state from;
		uint32_t set;
		int error;
		enum ib_mig_state to;
	} rules[] = {
		{IB_MIG_MIGRATED, IB_MIG_MIGRATED, 0, IB_MIG_MIGRATED},
		{IB_MIG_MIGRATED, IB_MIG_REARM, 0, IB_MIG_REARM},
		{IB_MIG_MIGRATED, IB_MIG_ARMED, -EINVAL, IB_MIG_MIGRATED},
		{IB_MIG_MIGRATED, 3, -EINVAL, IB_MIG_MIGRATED},
		{IB_MIG_REARM, IB_MIG_MIGRATED, -EINVAL, IB_MIG_REARM},
		{IB_MIG_REARM, IB_MIG_REARM, 0, IB_MIG_REARM},
		{IB_MIG_REARM, IB_MIG_ARMED, -EINVAL, IB_MIG_REARM},
		{IB_MIG_ARMED, IB_MIG_MIGRATED, 0, IB_MIG_MIGRATED},
		{IB_MIG_ARMED, IB_MIG_REARM, -EINVAL, IB_MIG_ARMED},
		{IB_MIG_ARMED, IB_MIG_ARMED, -EINVAL, IB_MIG_ARMED},
		{IB_MIG_ARMED, 3, -EINVAL, IB_MIG_ARMED},
	};

	for (size_t i = 0; i < array_size(rules); i++) {
		int ret;

		pair_up_of(WAY_ONE_PROCESS, IB_QPT_RC);
		if (rules[i].from == IB_MIG_ARMED)
			arm();
		else if (rules[i].from == IB_MIG_REARM)
			rearm(0);
		ret = modify(0, IB_QP_PATH_MIG_STATE,
			     (struct qp_attr){.path_mig_state = rules[i].set});
		CHECK_SAY(ret == rules[i].error, "rule %zu: %d", i, ret);
		expect_state(0, rules[i].to);
		CHECK(events(0, IB_EVENT_PATH_MIG) ==
		      (rules[i].from != rules[i].to && rules[i].to == IB_MIG_MIGRATED));
		pair_down();
	}
}

static void test_bad_paths(void)
{
	struct qp_attr attr;

	pair_up_of(WAY_ONE_PROCESS, IB_QPT_RC);
	attr = attributes(0);
	attr.alt_port_num = 2;
	CHECK(modify(0, IB_QP_ALT_PATH, attr) == -EINVAL);
	attr = attributes(0);
	attr.alt_pkey_index = SUBNET_MAX_PKEYS;
	CHECK(modify(0, IB_QP_ALT_PATH, attr) == -EINVAL);
	attr = attributes(0);
	attr.alt_ah.port_num = 2;
	CHECK(modify(0, IB_QP_ALT_PATH, attr) == -EINVAL);
	attr = attributes(0);
	attr.alt_timeout = 32;
	CHECK(modify(0, IB_QP_ALT_PATH, attr) == -EINVAL);
	attr = attributes(0);
	attr.alt_ah.dlid = 77;
	CHECK(!modify(0, IB_QP_ALT_PATH, attr));
	qp_query(qp_of(0), &attr);
	CHECK(attr.alt_ah.dlid == 77 && attr.alt_timeout == OTHER_TIMER && attr.alt_port_num == 1);
	pair_down();
}

/* All requests arrive over the alternate path when the primary one is broken. */
static void test_failure(enum way as)
{
	static const uint8_t opcodes[] = {WQE_OP_RDMA_WRITE, WQE_OP_RDMA_READ, WQE_OP_ATOMIC_FA,
					  WQE_OP_SEND};

	for (size_t i = 0; i < array_size(opcodes); i++) {
		pair_up_of(as, IB_QPT_RC);
		count_begin();
		message(0);
		CHECK(!sent[0][0] && !sent[1][0] && !sent[1][1]);
		arm();
		count_begin();
		message(0);
		CHECK(sent[0][0] && !sent[0][1] && !sent[1][0] && !sent[1][1]);
		broken = 0;
		count_begin();
		*word(1, 1) = 41;
		*word(0, 0) = 43;
		if (opcodes[i] == WQE_OP_SEND)
			post_receive(1);
		post(0, opcodes[i]);
		CHECK(completion(0) == CQE_OP_REQ);
		/* As often as retry_cnt says, and then along the other path, where the peer answers. */
		CHECK_SAY(sent[0][0] == 1 + RETRIES && !sent[0][1] && !sent[1][0] && sent[1][1],
			  "%u %u %u %u", sent[0][0], sent[0][1], sent[1][0], sent[1][1]);
		if (opcodes[i] == WQE_OP_SEND)
			CHECK(completion(1) == CQE_OP_RESP_SEND);
		if (opcodes[i] == WQE_OP_RDMA_READ || opcodes[i] == WQE_OP_ATOMIC_FA)
			CHECK(*word(0, 0) == 41);
		if (opcodes[i] == WQE_OP_ATOMIC_FA)
			CHECK(*word(1, 1) == 42);
		if (opcodes[i] == WQE_OP_RDMA_WRITE || opcodes[i] == WQE_OP_SEND)
			CHECK(*word(1, 1) == 43);
		expect_migrated(0, 1);
		expect_migrated(1, 1);
		message(0);
		message(1);
		CHECK(!events(0, IB_EVENT_PATH_MIG_ERR) && !events(1, IB_EVENT_PATH_MIG_ERR));
		pair_down();
	}
}

/* The first packet along the alternate path is a request that is refused, and the refusal goes back
 * along that path. */
static void test_refusal(enum way as)
{
	pair_up_of(as, IB_QPT_RC);
	arm();
	broken = 0;
	pair.side[1].lkey ^= 0x100;
	post(0, WQE_OP_RDMA_WRITE);
	pair.side[1].lkey ^= 0x100;
	CHECK(completion(0) == CQE_OP_REQ_ERR);
	CHECK(events(0, IB_EVENT_PATH_MIG) == 1 && events(1, IB_EVENT_PATH_MIG) == 1);
	CHECK(events(1, IB_EVENT_QP_ACCESS_ERR) == 1);
	pair_down();
}

/* The alternate path may have no timeout: then nothing is repeated there. */
static void test_no_timeout(enum way as)
{
	struct qp_attr attr;

	pair_up_of(as, IB_QPT_RC);
	attr = attributes(0);
	attr.alt_timeout = 0;
	CHECK(!modify(0, IB_QP_ALT_PATH, attr));
	arm();
	broken = BOTH_BROKEN;
	count_begin();
	post(0, WQE_OP_RDMA_WRITE);
	for (unsigned i = 0; i < 30; i++) {
		usleep(1000);
		progress(32); /* who polls looks at the clock once in so many times */
	}
	expect_state(0, IB_MIG_MIGRATED);
	CHECK(!device_cq_poll(&pair.side[0].q.cq) && sent[1][1] == 1);
	pair_down();
}

/*
 * The program lets side 1 migrate, and side 0 follows at the first packet, also of a request that
 * goes without packets otherwise, and whether a request armed it or an answer.
 */
static void test_forced(enum way as, enum ib_qp_type type, uint8_t opcode, unsigned first)
{
	pair_up_of(as, type);
	message(1);
	CHECK(is_open(0));
	rearm(0);
	CHECK(!is_open(0));
	rearm(1);
	message(first);
	if (type != IB_QPT_RC)
		message(!first);
	progress(4);
	expect_states(IB_MIG_ARMED, IB_MIG_ARMED);
	broken = 0;
	CHECK(!modify(1, IB_QP_PATH_MIG_STATE,
		      (struct qp_attr){.path_mig_state = IB_MIG_MIGRATED}));
	expect_migrated(1, 1);
	expect_state(0, IB_MIG_ARMED);
	if (opcode == WQE_OP_SEND)
		post_receive(0);
	post(1, opcode);
	CHECK(completion(1) == CQE_OP_REQ);
	if (opcode == WQE_OP_SEND)
		CHECK(completion(0) == CQE_OP_RESP_SEND);
	progress(4);
	expect_migrated(0, 1);
	message(0);
	message(1);
	pair_down();
}

/* After a migration another path is loaded, and the connection migrates once more. */
static void test_again(enum way as)
{
	pair_up_of(as, IB_QPT_RC);
	arm();
	broken = 0;
	message(0);
	expect_migrated(0, 1);
	expect_migrated(1, 1);
	for (unsigned i = 0; i < 2; i++) {
		struct qp_attr attr = attributes(i);

		attr.alt_ah = attr.ah;
		attr.alt_timeout = FIRST_TIMER;
		attr.path_mig_state = IB_MIG_REARM;
		CHECK(!modify(i, IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE, attr));
	}
	message(0);
	progress(4);
	expect_states(IB_MIG_ARMED, IB_MIG_ARMED);
	broken = 1;
	message(1);
	progress(4);
	expect_states(IB_MIG_MIGRATED, IB_MIG_MIGRATED);
	CHECK(events(0, IB_EVENT_PATH_MIG) == 2 && events(1, IB_EVENT_PATH_MIG) == 2);
	message(0);
	pair_down();
}

/* A peer that migrates to another path than ours is refused, and its requests fail. */
static void test_refused(enum way as)
{
	struct qp_attr attr;

	pair_up_of(as, IB_QPT_RC);
	attr = attributes(1);
	attr.alt_ah = attr.ah;
	CHECK(!modify(1, IB_QP_ALT_PATH, attr));
	arm();
	broken = 0;
	post(0, WQE_OP_RDMA_WRITE);
	CHECK(completion(0) == CQE_OP_REQ_ERR);
	CHECK(events(0, IB_EVENT_PATH_MIG) == 1 && !events(1, IB_EVENT_PATH_MIG));
	CHECK(events(1, IB_EVENT_PATH_MIG_ERR) == 1);
	expect_state(1, IB_MIG_ARMED);
	pair_down();
}

/* A queue pair that is not armed fails as ever, and one that has no alternate path fails there. */
static void test_unarmed(enum way as)
{
	pair_up_of(as, IB_QPT_RC);
	rearm(0);
	message(0);
	expect_state(0, IB_MIG_REARM);
	broken = 0;
	post(0, WQE_OP_RDMA_WRITE);
	CHECK(completion(0) == CQE_OP_REQ_ERR);
	CHECK(!events(0, IB_EVENT_PATH_MIG));
	CHECK(!modify(0, IB_QP_STATE, (struct qp_attr){.state = IB_QPS_RESET}));
	expect_state(0, IB_MIG_MIGRATED);
	pair_down();
}

/* The peer of an armed queue pair is a stranger's packet away from nothing. */
static void test_stranger(void)
{
	struct path path;
	struct pkt p;

	pair_up_of(WAY_TWO_PROCESSES, IB_QPT_RC);
	arm();
	path = qp_of(0)->path;
	path.route = NULL;
	path.dlid++;
	path.slid++;
	p = (struct pkt){
		.opcode = BTH_RC | BTH_SEND_ONLY,
		.pkey = qp_of(0)->pkey,
		.sqpn = qp_of(0)->qpn + 1,
		.dqpn = qp_of(1)->qpn,
		.psn = qp_of(0)->req.psn,
		.npkts = 1,
		.path = &path,
	};
	CHECK(wire_xmit(pair.device.wire[0], &p) == WIRE_SENT);
	progress(4);
	expect_states(IB_MIG_ARMED, IB_MIG_ARMED);
	CHECK(!events(1, IB_EVENT_PATH_MIG_ERR));
	pair_down();
}

/* The alternate path has a P_Key of its own. */
static void test_pkeys(enum way as)
{
	second_pkey = 0x8123;
	pair_up_of(as, IB_QPT_RC);
	arm();
	broken = 0;
	count_begin();
	message(0);
	expect_migrated(0, 1);
	expect_migrated(1, 1);
	CHECK(sent[1][1] <= 2); /* a request and its answer, at once */
	CHECK(qp_of(0)->pkey == second_pkey && qp_of(1)->pkey == second_pkey);
	message(1);
	second_pkey = 0;
	pair_down();
}

int main(void)
{
	alarm(120); /* nothing may hang */
	test_rules();
	test_bad_paths();
	test_stranger();
	outside = true;
	test_failure(WAY_ETHERNET);
	outside = false;
	for (enum way as = 0; as < WAYS; as++) {
		test_failure(as);
		test_refusal(as);
		test_no_timeout(as);
		for (unsigned first = 0; first < 2; first++) {
			test_forced(as, IB_QPT_RC, WQE_OP_SEND, first);
			test_forced(as, IB_QPT_RC, WQE_OP_RDMA_WRITE, first);
		}
		test_again(as);
		test_refused(as);
		test_unarmed(as);
		test_pkeys(as);
	}
	test_forced(WAY_ONE_PROCESS, IB_QPT_UC, WQE_OP_SEND, 0);
	test_forced(WAY_ETHERNET, IB_QPT_UC, WQE_OP_RDMA_WRITE, 1);
	return 0;
}
