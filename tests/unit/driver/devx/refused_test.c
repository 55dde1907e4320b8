// SPDX-License-Identifier: BSD-2-Clause
/* A command that is refused says which field it was, its value and what would do. */
#include "base/explain.h"
#include "captured.h"
#include "prm/cmd_cq_eq.h"
#include "prm/cmd_mkey.h"
#include "prm/cmd_qp.h"
#include "raw_queues.h"

static struct queue q;

/* ---- commands that are performed as they stand ---- */

static uint16_t cq_whole(void)
{
	uint8_t *cqc = in + CREATE_CQ_CONTEXT;

	begin(PRM_OP_CREATE_CQ);
	prm_set(in, CREATE_CQ_UMEM, DEVX_UMEM_DPA + PROCESS);
	prm_set(in, CREATE_CQ_OFFSET, daddr(q.ring));
	prm_set(cqc, CQC_DBR_UMEM, DEVX_UMEM_DPA + PROCESS);
	prm_set(cqc, CQC_DBR_ADDR, daddr(q.record));
	prm_set(cqc, CQC_LOG_SIZE, 1);
	prm_set(cqc, CQC_UAR_PAGE, duar);
	prm_set(cqc, CQC_EQN, DEVX_EQN_FIRST);
	return CREATE_CQ_IN_BYTES;
}

static uint16_t qp_whole(void)
{
	uint8_t *qpc = in + CREATE_QP_CONTEXT;

	begin(PRM_OP_CREATE_QP);
	prm_set(qpc, QPC_PD, pdn);
	prm_set(qpc, QPC_UAR_PAGE, duar);
	prm_set(qpc, QPC_CQN_SEND, q.cqn);
	prm_set(qpc, QPC_CQN_RECV, q.cqn);
	prm_set(qpc, QPC_DBR_UMEM, DEVX_UMEM_DPA + PROCESS);
	prm_set(qpc, QPC_DBR_ADDR, daddr(q.record));
	prm_set(in, CREATE_QP_UMEM, DEVX_UMEM_DPA + PROCESS);
	prm_set(in, CREATE_QP_OFFSET, daddr(q.ring));
	return CREATE_QP_IN_BYTES;
}

static uint16_t rq_whole(void)
{
	rq_request(&q);
	return RQ_BYTES;
}

static uint16_t sq_whole(void)
{
	sq_request(&q);
	return SQ_BYTES;
}

static uint16_t rmp_whole(void)
{
	uint8_t *rmpc = in + CREATE_RMP_CONTEXT, *wq = rmpc + RMPC_WQ;

	begin(PRM_OP_CREATE_RMP);
	prm_set(rmpc, RMPC_STATE, RMPC_STATE_RDY);
	prm_set(wq, WQ_PD, pdn);
	prm_set(wq, WQ_LOG_STRIDE, 5);
	prm_set(wq, WQ_UMEM, DEVX_UMEM_DPA + PROCESS);
	prm_set(wq, WQ_OFFSET, daddr(q.ring));
	prm_set(wq, WQ_DBR_UMEM, DEVX_UMEM_DPA + PROCESS);
	prm_set(wq, WQ_DBR_ADDR, daddr(q.record));
	return CREATE_RMP_IN_BYTES;
}

static uint16_t mkey_whole(void)
{
	uint8_t *mkc = in + CREATE_MKEY_CONTEXT;

	begin(PRM_OP_CREATE_MKEY);
	prm_set(mkc, MKC_ACCESS_MODE_LOW, MKC_MODE_MTT);
	prm_set(mkc, MKC_PD, pdn);
	prm_set(mkc, MKC_QPN, 0xffffff);
	prm_set(mkc, MKC_START, HEAP);
	prm_set(mkc, MKC_LENGTH, 64);
	prm_set(in, CREATE_MKEY_UMEM, DEVX_UMEM_DPA + PROCESS);
	prm_set(in, CREATE_MKEY_OFFSET, HEAP);
	return CREATE_MKEY_IN_BYTES;
}

static uint16_t eq_whole(void)
{
	begin(PRM_OP_CREATE_EQ);
	prm_set(in + CREATE_EQ_CONTEXT, EQC_UAR_PAGE, duar);
	prm_set(in, CREATE_EQ_UMEM, DEVX_UMEM_DPA + PROCESS);
	prm_set(in, CREATE_EQ_OFFSET, HEAP);
	return CREATE_EQ_IN_BYTES;
}

/* ---- with one field changed ---- */

static const struct mistake {
	uint16_t (*whole)(void);
	uint32_t context; /* byte */
	struct prm_field field;
	uint64_t value;
	const char *line;
} mistakes[] = {
	{cq_whole, 0, CREATE_CQ_OFFSET, HEAP + 2,
	 "(BAD_PARAM): cq_umem_offset: 0x80 bytes at "
	 "0x10002 of DPA process 0x21: it has to begin at a multiple of 4"},
	{cq_whole, 0, CREATE_CQ_OFFSET, HEAP + HEAP_BYTES, "the heap does not have all of it"},
	{cq_whole, 0, CREATE_CQ_UMEM, 77, "of umem 0x4d: this context has none of that number"},
	{cq_whole, CREATE_CQ_CONTEXT, CQC_DBR_ADDR, 0, "dbr_addr: 0x8 bytes at 0x0"},
	{cq_whole, CREATE_CQ_CONTEXT, CQC_LOG_SIZE, 30, "log_cq_size is 30: 22 is the largest"},
	{cq_whole, CREATE_CQ_CONTEXT, CQC_UAR_PAGE, 0xfff0, "uar_page is 0xfff0: no UAR"},
	{cq_whole, CREATE_CQ_CONTEXT, CQC_EQN, 200, "c_eqn is 0xc8: no event queue"},
	{cq_whole, CREATE_CQ_CONTEXT, CQC_APU, 1, "c_eqn is 0x4: no DPA thread"},
	{cq_whole, CREATE_CQ_CONTEXT, CQC_PAGE_OFFSET, 1, "(BAD_OP): page_offset is 0x1"},
	{cq_whole, CREATE_CQ_CONTEXT, CQC_CQE_SIZE, 2, "cqe_sz is 0x2"},
	{qp_whole, CREATE_QP_CONTEXT, QPC_SERVICE, 0x99, "(BAD_OP): st is 0x99: the device has RC"},
	{qp_whole, CREATE_QP_CONTEXT, QPC_PD, 0x77, "pd is 0x77: no domain"},
	{qp_whole, CREATE_QP_CONTEXT, QPC_CQN_SEND, 0xffff, "cqn_snd is 0xffff"},
	{qp_whole, CREATE_QP_CONTEXT, QPC_CQN_RECV, 0xffff, "cqn_rcv is 0xffff"},
	{qp_whole, CREATE_QP_CONTEXT, QPC_RQ_TYPE, QPC_RQ_SRQ, "srqn_rmpn_xrqn is 0x0"},
	{qp_whole, CREATE_QP_CONTEXT, QPC_OFFLOAD, 1, "offload_type is 0x1: the device has 0"},
	{qp_whole, 0, CREATE_QP_OFFSET, 0, "wq_umem_offset: 0x50 bytes at 0x0"},
	{qp_whole, CREATE_QP_CONTEXT, QPC_DBR_ADDR, 1, "dbr_addr: 0x8 bytes at 0x1"},
	{rq_whole, RAW_CONTEXT, RQC_CQN, 0xffff, "cqn is 0xffff"},
	{rq_whole, RAW_CONTEXT, RQC_STATE, 1, "state is 0x1: it begins with 0"},
	{rq_whole, RAW_CONTEXT, RQC_SCATTER_FCS, 1, "(BAD_OP): scatter_fcs is 0x1"},
	{rq_whole, RAW_CONTEXT + RQC_WQ, WQ_TYPE, 2, "wq_type is 0x2"},
	{rq_whole, RAW_CONTEXT + RQC_WQ, WQ_LOG_STRIDE, 3, "log_wq_stride is 0x3: a receive has"},
	{rq_whole, RAW_CONTEXT + RQC_WQ, WQ_LOG_STRIDE, 10, "log_wq_stride is 10: 9 is"},
	{rq_whole, RAW_CONTEXT + RQC_WQ, WQ_LOG_SIZE, 20, "log_wq_sz is 20: 15 is the largest"},
	{rq_whole, RAW_CONTEXT + RQC_WQ, WQ_OFFSET, 3, "wq_umem_offset: 0x80 bytes at 0x3"},
	{sq_whole, RAW_CONTEXT, SQC_TIS, 0x77, "tis_num_0 is 0x77"},
	{sq_whole, RAW_CONTEXT, SQC_TIS_COUNT, 2, "tis_lst_sz is 0x2"},
	{sq_whole, RAW_CONTEXT, SQC_HAIRPIN, 1, "(BAD_OP): hairpin is 0x1"},
	{sq_whole, RAW_CONTEXT + SQC_WQ, WQ_LOG_STRIDE, 7, "log_wq_stride is 0x7: blocks"},
	{sq_whole, RAW_CONTEXT + SQC_WQ, WQ_UAR_PAGE, 0xfff0, "uar_page is 0xfff0"},
	{rmp_whole, CREATE_RMP_CONTEXT, RMPC_STATE, 0, "state is 0x0: it begins with 1"},
	{rmp_whole, CREATE_RMP_CONTEXT + RMPC_WQ, WQ_LOG_STRIDE, 4, "log_wq_stride is 0x4"},
	{rmp_whole, CREATE_RMP_CONTEXT + RMPC_WQ, WQ_LWM, 2, "lwm is 2: 1 is the largest"},
	{rmp_whole, CREATE_RMP_CONTEXT + RMPC_WQ, WQ_DBR_ADDR, 8, "dbr_addr: 0x4 bytes at 0x8"},
	{mkey_whole, CREATE_MKEY_CONTEXT, MKC_PD, 0x77, "pd is 0x77: no domain"},
	{mkey_whole, CREATE_MKEY_CONTEXT, MKC_CRYPTO, 1, "(BAD_OP): crypto_en is 0x1"},
	{mkey_whole, CREATE_MKEY_CONTEXT, MKC_UMR, 1, "umr_en is 0x1"},
	{mkey_whole, CREATE_MKEY_CONTEXT, MKC_QPN, 5, "qpn is 0x5"},
	{mkey_whole, CREATE_MKEY_CONTEXT, MKC_ACCESS_MODE_LOW, MKC_MODE_PA, "access_mode is 0x0"},
	{mkey_whole, 0, CREATE_MKEY_UMEM, 9, "mkey_umem_offset: 0x40 bytes at 0x10000"},
	{eq_whole, CREATE_EQ_CONTEXT, EQC_LOG_SIZE, 23, "log_eq_size is 23: 22 is the largest"},
	{eq_whole, CREATE_EQ_CONTEXT, EQC_UAR_PAGE, 0xfff0, "uar_page is 0xfff0"},
	{eq_whole, 0, CREATE_EQ_OFFSET, 0, "eq_umem_offset: 0x40 bytes at 0x0"},
	{eq_whole, 0, CREATE_EQ_VECTOR, 9999, "intr is 0x270f"},
};

static const char *refusal(uint16_t bytes)
{
	uint64_t handle;
	int ret;

	capture_begin();
	ret = create(bytes, &handle);
	explain_flush();
	CHECK(ret == -EREMOTEIO);
	return capture_end();
}

static void test_mistakes(void)
{
	for (size_t i = 0; i < array_size(mistakes); i++) {
		const struct mistake *m = &mistakes[i];
		const char *text;
		uint64_t handle;

		CHECK(!create(m->whole(), &handle) && !destroy(handle));
		(void)m->whole();
		prm_set(in + m->context, m->field, m->value);
		text = refusal((uint16_t)sizeof(commands.in));
		CHECK_SAY(captured_count(text, "explain: ") == 1 &&
				  captured_count(text, " is refused ") == 1 &&
				  captured_count(text, m->line) == 1,
			  "row %zu (%s): %s", i, m->line, text);
	}
}

/* A command that is too short; one refused as another was before; one that makes no object. */
static void test_others(void)
{
	const char *text;

	(void)cq_whole();
	text = refusal(CREATE_CQ_IN_BYTES - 4);
	CHECK(captured_count(text, "CREATE_CQ is refused (BAD_INPUT_LEN): its input has 268 "
				   "bytes, and 272 are needed"));
	for (unsigned i = 0; i < 5; i++) {
		(void)cq_whole();
		prm_set(in, CREATE_CQ_UMEM, 78);
		text = refusal(CREATE_CQ_IN_BYTES);
		CHECK(captured_count(text, "of umem 0x4e: this context has none") == 1);
		CHECK(captured_count(text, "1 more like it") == (i == 3));
	}
	/* A reason of something else is not this command's. */
	explain_because("another");
	(void)eq_whole();
	prm_set(in, CREATE_EQ_OFFSET, 4);
	text = refusal(CREATE_EQ_IN_BYTES);
	CHECK(!captured_count(text, "another") && captured_count(text, "eq_umem_offset"));
}

int main(void)
{
	int skipped = queues_up();

	if (skipped)
		return skipped;
	queue_begin(&q);
	explain_on = true;
	test_mistakes();
	test_others();
	explain_on = false;
	CHECK(!destroy(q.cq_handle));
	return queues_down();
}
