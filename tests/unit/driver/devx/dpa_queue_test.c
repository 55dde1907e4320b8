// SPDX-License-Identifier: BSD-2-Clause
/*
 * Completion queues of a DPA by the commands of DEVX: who is activated, where rings and records may
 * lie, regions without a page.  Thread and process are stand-ins; numbers in names are those of the
 * statements about Flex IO that hold because of the device.
 */
#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <string.h>

#include "adapter_device.h"
#include "check.h"
#include "driver/devx/devx.h"
#include "prm/cmd_cq_eq.h"
#include "prm/cmd.h"
#include "prm/cmd_mkey.h"
#include "prm/cqe.h"
#include "uverbs_file.h"

#define THREAD	    0x31u
#define PROCESS	    0x21u
#define HEAP	    0x10000u /* an address of the DPA's, not one of ours */
#define HEAP_BYTES  4096u
#define LOG_ENTRIES 3u
#define RECORD	    (HEAP + HEAP_BYTES - 8)
#define UAR_PAGE    5u

static struct test_device device;
static struct uverbs_file u;
static uint8_t in[512], out[1024];
static int activations;
static struct devx_obj *thread, *process;
static _Alignas(64) uint8_t heap[HEAP_BYTES];
static uint32_t duar;
static uint64_t duar_handle;

/* ---- stand-ins ---- */

static void fake_activate(struct devx_obj *obj)
{
	CHECK(obj == thread);
	activations++;
}

static void *fake_part(struct devx_obj *obj, uint64_t daddr, uint64_t bytes)
{
	CHECK(obj == process);
	return daddr >= HEAP && range_inside(daddr - HEAP, bytes, HEAP_BYTES)
		       ? heap + (daddr - HEAP)
		       : NULL;
}

static const struct devx_class fake_thread_class = {.activate = fake_activate};
static const struct devx_class fake_process_class = {.part = fake_part};

static struct devx_obj *publish_fake(const struct devx_class *class, uint32_t number)
{
	struct devx_obj *obj = calloc(1, sizeof(*obj));

	CHECK(obj);
	devx_obj_init(obj, class, number);
	CHECK(!uobj_publish(&u.file, &obj->uobj, &udevx_class));
	return obj;
}

/* ---- commands ---- */

static int create_object(uint16_t in_len, uint64_t *handle)
{
	struct ib_uverbs_attr attrs[] = {
		attr_handle(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0),
		attr_in(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, in, in_len),
		attr_out(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, out, CMD_OUT_BYTES),
	};
	int ret = uverbs_file_ioctl(&u, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE,
				    attrs, array_size(attrs));

	*handle = attrs[0].data;
	return ret;
}

static int destroy_object(uint64_t handle)
{
	struct ib_uverbs_attr attrs[] = {
		attr_handle(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, handle),
	};

	return uverbs_file_ioctl(&u, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
				 attrs, array_size(attrs));
}

static int query_cq(uint64_t handle, uint32_t cqn)
{
	struct ib_uverbs_attr attrs[] = {
		attr_handle(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, handle),
		attr_in(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, in, CMD_IN_BYTES),
		attr_out(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, out, QUERY_CQ_OUT_BYTES),
	};

	memset(in, 0, sizeof(in));
	prm_set(in, CMD_IN_OPCODE, PRM_OP_QUERY_CQ);
	prm_set(in, CMD_IN_NUMBER, cqn);
	return uverbs_file_ioctl(&u, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY, attrs,
				 array_size(attrs));
}

/* MODIFY_CQ with what stands in the context. */
static int modify_cq(uint64_t handle, uint32_t cqn, uint32_t select)
{
	struct ib_uverbs_attr attrs[] = {
		attr_handle(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, handle),
		attr_in(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, in, MODIFY_CQ_IN_BYTES),
		attr_out(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, out, CMD_OUT_BYTES),
	};

	prm_set(in, CMD_IN_OPCODE, PRM_OP_MODIFY_CQ);
	prm_set(in, CMD_IN_NUMBER, cqn);
	prm_set(in, MODIFY_CQ_SELECT, select);
	return uverbs_file_ioctl(&u, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, attrs,
				 array_size(attrs));
}

static uint8_t *context(void)
{
	return in + CREATE_CQ_CONTEXT;
}

/* CREATE_CQ of a queue in the heap of the process that activates the thread. */
static void cq_request(void)
{
	memset(in, 0, sizeof(in));
	memset(heap, 0xff, sizeof(heap));
	memset(heap + (RECORD - HEAP), 0, 8);
	activations = 0;
	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_CQ);
	prm_set(in, CREATE_CQ_UMEM, DEVX_UMEM_DPA + PROCESS);
	prm_set(in, CREATE_CQ_OFFSET, HEAP);
	prm_set(context(), CQC_DBR_UMEM, DEVX_UMEM_DPA + PROCESS);
	prm_set(context(), CQC_DBR_ADDR, RECORD);
	prm_set(context(), CQC_LOG_SIZE, LOG_ENTRIES);
	prm_set(context(), CQC_UAR_PAGE, duar);
	prm_set(context(), CQC_APU, 1);
	prm_set(context(), CQC_STATE, CQC_STATE_ARMED);
	prm_set(context(), CQC_EQN, THREAD);
}

static uint32_t create_cq(uint64_t *handle)
{
	CHECK(!create_object(CREATE_CQ_IN_BYTES, handle));
	return prm_get32(out, CMD_OUT_NUMBER);
}

static bool complete_one(uint32_t cqn)
{
	return cq_bell_empty(device.adapter[0], duar, cqn);
}

static void expect_refused(void)
{
	uint64_t handle;

	CHECK(create_object(CREATE_CQ_IN_BYTES, &handle) == -EREMOTEIO);
	CHECK(prm_get(out, CMD_OUT_STATUS) == CMD_STATUS_BAD_PARAM);
}

static void create_duar(void)
{
	memset(in, 0, sizeof(in));
	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_GENERAL_OBJECT);
	prm_set(in, GENERAL_IN_TYPE, GENERAL_DUAR);
	CHECK(!create_object(CMD_IN_BYTES, &duar_handle));
	duar = prm_get32(out, GENERAL_OUT_ID);
	CHECK(duar >= UVERBS_UARS && duar < 1u << 24);
}

/* ---- cases ---- */

static void test_136_in_dpa_memory(void)
{
	uint64_t handle;
	uint32_t cqn;

	cq_request();
	cqn = create_cq(&handle);
	CHECK(cqn && complete_one(cqn));
	/* the first entry, and nothing behind it */
	CHECK(!heap[63] && heap[64] == 0xff);
	CHECK(activations == 1);
	CHECK(complete_one(cqn) && !heap[127] && activations == 1);
	CHECK(cq_bell_arm(device.adapter[0], duar, cqn, 1) && activations == 2);
	/* what it uses stays */
	CHECK(destroy_object(thread->uobj.handle) == -EBUSY);
	CHECK(destroy_object(process->uobj.handle) == -EBUSY);
	CHECK(destroy_object(duar_handle) == -EBUSY);
	CHECK(!destroy_object(handle));
	CHECK(!complete_one(cqn) && !thread->uobj.users && !process->uobj.users);
}

static void test_144_states(void)
{
	static const struct {
		enum cqc_state given, found;
		int activations;
	} cases[] = {
		{CQC_STATE_ARMED, CQC_STATE_ARMED, 1},
		{CQC_STATE_FIRED, CQC_STATE_FIRED, 0},
		{CQC_STATE_ALWAYS, CQC_STATE_ALWAYS, 2},
	};
	uint64_t handle;
	uint32_t cqn;

	for (size_t i = 0; i < array_size(cases); i++) {
		cq_request();
		prm_set(context(), CQC_STATE, cases[i].given);
		cqn = create_cq(&handle);
		CHECK(!query_cq(handle, cqn));
		CHECK(prm_get(out + QUERY_CQ_CONTEXT, CQC_STATE) == cases[i].found);
		CHECK(prm_get(out + QUERY_CQ_CONTEXT, CQC_APU));
		CHECK(prm_get32(out + QUERY_CQ_CONTEXT, CQC_EQN) == THREAD);
		CHECK(complete_one(cqn) && complete_one(cqn));
		CHECK(activations == cases[i].activations);
		CHECK(!destroy_object(handle));
	}
}

static void test_147_148_collapsed_and_overrun(void)
{
	uint64_t handle;
	uint32_t cqn;

	cq_request();
	prm_set(context(), CQC_COLLAPSED, 1);
	prm_set(context(), CQC_OVERRUN_IGNORE, 1);
	cqn = create_cq(&handle);
	for (unsigned i = 0; i < 3u << LOG_ENTRIES; i++)
		CHECK(complete_one(cqn) && heap[63] == (i >> LOG_ENTRIES & 1) && heap[64] == 0xff);
	CHECK(!query_cq(handle, cqn));
	CHECK(prm_get(out + QUERY_CQ_CONTEXT, CQC_COLLAPSED));
	CHECK(prm_get(out + QUERY_CQ_CONTEXT, CQC_OVERRUN_IGNORE));
	CHECK(prm_get(out + QUERY_CQ_CONTEXT, CQC_STATUS) == CQC_STATUS_OK);
	CHECK(!destroy_object(handle));

	/* 149: one that does not ignore it */
	cq_request();
	cqn = create_cq(&handle);
	for (unsigned i = 0; i <= 1u << LOG_ENTRIES; i++)
		CHECK(complete_one(cqn));
	CHECK(heap[64u << LOG_ENTRIES] == 0xff && !heap[63]);
	CHECK(!query_cq(handle, cqn));
	CHECK(prm_get(out + QUERY_CQ_CONTEXT, CQC_STATUS) == CQC_STATUS_OVERFLOW);
	CHECK(!destroy_object(handle));
}

/* Queues that tell an event queue, or nobody, lie in the same memory. */
static void test_152_other_elements(void)
{
	static const struct {
		unsigned apu, element;
	} cases[] = {{0, 0}, {1, CQC_ELEMENT_EQ}, {1, CQC_ELEMENT_EMULATED_EQ}};
	uint64_t handle;
	uint32_t cqn;

	for (size_t i = 0; i < array_size(cases); i++) {
		cq_request();
		prm_set(context(), CQC_APU, cases[i].apu);
		prm_set(context(), CQC_ELEMENT, cases[i].element);
		/* a number of a thread is none of an event queue */
		expect_refused();
		prm_set(context(), CQC_EQN, DEVX_EQN_FIRST);
		cqn = create_cq(&handle);
		CHECK(complete_one(cqn) && !heap[63] && !activations);
		CHECK(!query_cq(handle, cqn));
		/* told, if only nobody has subscribed */
		CHECK(prm_get(out + QUERY_CQ_CONTEXT, CQC_STATE) == CQC_STATE_FIRED);
		CHECK(cq_bell_arm(device.adapter[0], duar, cqn, 1));
		CHECK(!destroy_object(handle));
	}
	cq_request();
	prm_set(context(), CQC_ELEMENT, 7);
	prm_set(context(), CQC_EQN, DEVX_EQN_FIRST);
	expect_refused();
}

static void test_153_in_host_memory(void)
{
	static _Alignas(4096) uint8_t memory[4096];
	uint64_t addr = (uintptr_t)memory, len = sizeof(memory), handle;
	uint32_t access = IB_ACCESS_LOCAL_WRITE, umem_id = 0, cqn;
	struct ib_uverbs_attr attrs[] = {
		attr_handle(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, 0),
		attr_in(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, &addr, sizeof(addr)),
		attr_in(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, &len, sizeof(len)),
		attr_in(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, &access, sizeof(access)),
		attr_out(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, &umem_id, sizeof(umem_id)),
	};

	CHECK(!uverbs_file_ioctl(&u, MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG, attrs,
				 array_size(attrs)));
	memset(memory, 0xff, sizeof(memory));
	cq_request();
	prm_set(in, CREATE_CQ_UMEM, umem_id);
	prm_set(in, CREATE_CQ_OFFSET, 1024);
	cqn = create_cq(&handle);
	CHECK(complete_one(cqn) && !memory[1024 + 63] && heap[63] == 0xff && activations == 1);
	CHECK(!destroy_object(handle));
	/* the same with the record of the host */
	cq_request();
	memset(memory, 0, 8);
	prm_set(context(), CQC_DBR_UMEM, umem_id);
	prm_set(context(), CQC_DBR_ADDR, 0);
	cqn = create_cq(&handle);
	CHECK(complete_one(cqn) && !heap[63] && activations == 1);
	CHECK(!destroy_object(handle));
	CHECK(!uobj_destroy(uobj_any(&u.file, attrs[0].data), NULL));
}

static void test_155_moderation(void)
{
	uint64_t handle;
	uint32_t cqn;

	cq_request();
	prm_set(context(), CQC_STATE, CQC_STATE_ALWAYS);
	cqn = create_cq(&handle);
	for (unsigned mode = 0; mode < 2; mode++) {
		const uint8_t *found = out + QUERY_CQ_CONTEXT;

		memset(in, 0, sizeof(in));
		prm_set(in + MODIFY_CQ_CONTEXT, CQC_MAX_COUNT, 3 + mode);
		prm_set(in + MODIFY_CQ_CONTEXT, CQC_PERIOD, 4095 - mode);
		prm_set(in + MODIFY_CQ_CONTEXT, CQC_PERIOD_MODE, mode);
		CHECK(!modify_cq(handle, cqn,
				 MODIFY_CQ_MAX_COUNT | MODIFY_CQ_PERIOD | MODIFY_CQ_PERIOD_MODE));
		CHECK(!query_cq(handle, cqn));
		CHECK(prm_get(found, CQC_MAX_COUNT) == 3 + mode);
		CHECK(prm_get(found, CQC_PERIOD) == 4095 - mode);
		CHECK(prm_get(found, CQC_PERIOD_MODE) == mode);
	}
	/* 156: by count, and the period is long */
	memset(in, 0, sizeof(in));
	prm_set(in + MODIFY_CQ_CONTEXT, CQC_MAX_COUNT, 4);
	CHECK(!modify_cq(handle, cqn, MODIFY_CQ_MAX_COUNT | MODIFY_CQ_PERIOD));
	for (int i = 1; i <= 8; i++)
		CHECK(complete_one(cqn) && activations == i / 4);
	/* the thread stays */
	memset(in, 0, sizeof(in));
	prm_set(in + MODIFY_CQ_CONTEXT, CQC_EQN, DEVX_EQN_FIRST);
	CHECK(modify_cq(handle, cqn, MODIFY_CQ_EQN) == -EREMOTEIO);
	CHECK(!destroy_object(handle));
}

static void test_158_compression(void)
{
	uint64_t handle;

	for (unsigned layout = 0; layout < 4; layout++) {
		for (unsigned format = 0; format < 8; format++) {
			cq_request();
			prm_set(context(), CQC_COMPRESSION, 1);
			prm_set(context(), CQC_LAYOUT, layout);
			prm_set(context(), CQC_MINI_FORMAT, format & 3);
			prm_set(context(), CQC_MINI_FORMAT_EXT, format >> 2);
			if (layout > CQC_LAYOUT_ENHANCED || format > CQE_MINI_L3L4) {
				expect_refused();
			} else if (format == CQE_MINI_FLOW_TAG) {
				CHECK(create_object(CREATE_CQ_IN_BYTES, &handle) == -EREMOTEIO);
				CHECK(prm_get(out, CMD_OUT_STATUS) == CMD_STATUS_BAD_OP);
			} else {
				CHECK(!create_object(CREATE_CQ_IN_BYTES, &handle));
				CHECK(!destroy_object(handle));
			}
		}
	}
	cq_request();
	prm_set(context(), CQC_COMPRESSION, 1);
	prm_set(context(), CQC_COLLAPSED, 1);
	expect_refused();
}

static void test_161_outside_the_heap(void)
{
	static const uint64_t rings[] = {0, HEAP - 64, HEAP + HEAP_BYTES - 64, HEAP + 2,
					 ~0ull - 63};
	static const uint64_t records[] = {0, HEAP - 4, HEAP + HEAP_BYTES - 4, RECORD + 1,
					   ~0ull - 7};

	for (size_t i = 0; i < array_size(rings); i++) {
		cq_request();
		prm_set(in, CREATE_CQ_OFFSET, rings[i]);
		expect_refused();
		cq_request();
		prm_set(context(), CQC_DBR_ADDR, records[i]);
		expect_refused();
	}
	/* no such process, thread or region */
	cq_request();
	prm_set(in, CREATE_CQ_UMEM, DEVX_UMEM_DPA + PROCESS + 1);
	expect_refused();
	cq_request();
	prm_set(in, CREATE_CQ_UMEM, DEVX_UMEM_DPA + THREAD);
	expect_refused();
	cq_request();
	prm_set(context(), CQC_EQN, PROCESS);
	expect_refused();
	cq_request();
	prm_set(context(), CQC_UAR_PAGE, duar + 1);
	expect_refused();
	CHECK(!thread->uobj.users && !process->uobj.users);
}

/* A page of registers is a region, too, but none that bells by value come from. */
static void test_231_regions(void)
{
	uint64_t handle, second;
	uint32_t cqn, first = duar;

	cq_request();
	prm_set(context(), CQC_UAR_PAGE, UAR_PAGE);
	cqn = create_cq(&handle);
	CHECK(!cq_bell_empty(device.adapter[0], UAR_PAGE, cqn) && !complete_one(cqn));
	CHECK(!destroy_object(handle));
	/* those of another one are not heard */
	second = duar_handle;
	create_duar();
	CHECK(duar != first);
	cq_request();
	cqn = create_cq(&handle);
	CHECK(!cq_bell_arm(device.adapter[0], first, cqn, 0) && complete_one(cqn));
	CHECK(!destroy_object(handle) && !destroy_object(second));
}

static void test_072_074_keys_of_dpa_memory(void)
{
	uint64_t pd, key;
	uint32_t pdn;

	memset(in, 0, sizeof(in));
	prm_set(in, CMD_IN_OPCODE, PRM_OP_ALLOC_PD);
	CHECK(!create_object(CMD_IN_BYTES, &pd));
	pdn = prm_get32(out, CMD_OUT_NUMBER);
	for (unsigned i = 0; i < 3; i++) {
		/* all, one byte more, one byte before */
		uint64_t start = i == 2 ? HEAP - 1 : HEAP, length = HEAP_BYTES + (i == 1);
		uint8_t *c = in + CREATE_MKEY_CONTEXT;

		memset(in, 0, sizeof(in));
		prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_MKEY);
		prm_set(in, CREATE_MKEY_UMEM, DEVX_UMEM_DPA + PROCESS);
		prm_set(in, CREATE_MKEY_OFFSET, start);
		prm_set(c, MKC_PD, pdn);
		prm_set(c, MKC_QPN, 0xffffff);
		prm_set(c, MKC_ACCESS_MODE_LOW, MKC_MODE_MTT);
		prm_set(c, MKC_LOCAL_READ, 1);
		prm_set(c, MKC_LOCAL_WRITE, 1);
		prm_set(c, MKC_START, start);
		prm_set(c, MKC_LENGTH, length);
		CHECK(create_object(CREATE_MKEY_IN_BYTES, &key) == (i ? -EREMOTEIO : 0));
		if (!i) {
			CHECK(destroy_object(process->uobj.handle) == -EBUSY);
			CHECK(!destroy_object(key));
		}
	}
	CHECK(!destroy_object(pd));
}

int main(void)
{
	device_up(&device);
	uverbs_file_up(&u);
	u.hca.adapter = device.adapter[0];
	thread = publish_fake(&fake_thread_class, THREAD);
	process = publish_fake(&fake_process_class, PROCESS);
	create_duar();
	test_136_in_dpa_memory();
	test_144_states();
	test_147_148_collapsed_and_overrun();
	test_152_other_elements();
	test_153_in_host_memory();
	test_155_moderation();
	test_158_compression();
	test_161_outside_the_heap();
	test_231_regions();
	test_072_074_keys_of_dpa_memory();
	CHECK(!destroy_object(duar_handle) && !destroy_object(thread->uobj.handle));
	CHECK(!destroy_object(process->uobj.handle));
	uverbs_file_down(&u);
	device_down(&device);
	return 0;
}
