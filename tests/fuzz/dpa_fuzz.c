// SPDX-License-Identifier: BSD-2-Clause
/*
 * The private commands of the DPA: objects and operations at any length, with wrong numbers, of other contexts, in
 * any order, while device code runs.  The whole driver is in this process, over a fabric in memory; when the
 * files are closed no object, number, thread or descriptor is left.  The room in front of and behind each heap
 * is never touched.
 */
#include <dirent.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adapter/core/device.h"
#include "dpa_mailbox.h"
#include "driver/cdev.h"
#include "driver/devx/eq.h"
#include "driver/doorbell/doorbell.h"
#include "driver/emulation/function.h"
#include "driver/runtime/process.h"
#include "memory.h"
#include "prm/cmd_dpa.h"
#include "prm/cmd_cq_eq.h"
#include "prm/cmd.h"
#include "registry/emulation.h"
#include "small_image.h"
#include "wire/inbox.h"

#define MAILBOX 0x140u
#define ANSWER	(64u << 10)
#define ATTRS	6u
#define READERS 4u

static struct process *process;
static int first_fd, core_fd;
static size_t threads_at_first;
static uint8_t *answer;

static struct {
	int fd[CONTEXTS];
	pthread_t reader[READERS];
	unsigned readers;
	bool has_core;
} now;

/* ---- calls ---- */

struct call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[ATTRS];
};

static void call_begin(struct call *c, uint16_t object, uint16_t method)
{
	memset(c, 0, sizeof(*c));
	c->hdr.object_id = object;
	c->hdr.method_id = method;
	c->hdr.driver_id = RDMA_DRIVER_MLX5;
}

static struct ib_uverbs_attr *call_attr(struct call *c, uint16_t id, uint64_t data, size_t bytes)
{
	struct ib_uverbs_attr *a = &c->attrs[c->hdr.num_attrs++];

	*a = (struct ib_uverbs_attr){.attr_id = id,
				     .len = (uint16_t)bytes,
				     .flags = UVERBS_ATTR_F_MANDATORY,
				     .data = data};
	return a;
}

static void call_in(struct call *c, uint16_t id, const void *from, size_t bytes)
{
	struct ib_uverbs_attr *a = call_attr(c, id, (uintptr_t)from, bytes);

	if (bytes <= sizeof(a->data)) {
		a->data = 0;
		memcpy(&a->data, from, bytes);
	}
}

static int call_run(struct call *c, int fd)
{
	c->hdr.length = (uint16_t)(sizeof(c->hdr) + c->hdr.num_attrs * sizeof(c->attrs[0]));
	return cdev_ioctl(fd, RDMA_VERBS_IOCTL, c);
}

static void context_open(unsigned i)
{
	const struct mlx5_ib_alloc_ucontext_req_v2 uhw = {
		.total_num_bfregs = 16,
		.num_low_latency_bfregs = 4,
		.flags = MLX5_IB_ALLOC_UCTX_DEVX,
		.max_cqe_version = 1,
		.lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR,
	};
	struct call c;

	now.fd[i] = cdev_open(i < 2 ? "uverbs0" : "uverbs1", 0);
	MUST(now.fd[i] >= 0);
	call_begin(&c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
	call_attr(&c, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, (uintptr_t)answer, 4);
	call_attr(&c, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, (uintptr_t)answer + 8, 8);
	call_in(&c, UVERBS_ATTR_UHW_IN, &uhw, sizeof(uhw));
	call_attr(&c, UVERBS_ATTR_UHW_OUT, (uintptr_t)answer + 16, 72);
	MUST(!call_run(&c, now.fd[i]));
}

/* Code that is run is one of the functions; a core file does not go to a descriptor of the fuzzer's. */
static void mailbox_tame(uint8_t *in, size_t bytes)
{
	uint32_t op = prm_get32(in, CMD_IN_OP_MOD);

	/* Events are not written to a descriptor of the fuzzer's either. */
	if (bytes >= CREATE_EQ_IN_BYTES && prm_get32(in, CMD_IN_OPCODE) == PRM_OP_CREATE_EQ)
		prm_set(in, CREATE_EQ_VECTOR, prm_get32(in, CREATE_EQ_VECTOR) ? UINT32_MAX : 0);
	if (bytes < DPA_IN_FIXED)
		return;
	if (prm_get32(in, CMD_IN_OPCODE) == PRM_OP_CREATE_GENERAL_OBJECT) {
		if (prm_get32(in, GENERAL_IN_TYPE) == GENERAL_DPA_THREAD)
			prm_set(in, DPA_THREAD_FUNCTION,
				dpa_address_tame(prm_get(in, DPA_THREAD_FUNCTION)));
		return;
	}
	if (op == DPA_OP_CORE) {
		static const uint32_t other[] = {UINT32_MAX, 1 << 20};
		uint32_t choice = prm_get32(in, DPA_IN_FILE) % 4;

		prm_set(in, DPA_IN_FILE,
			choice < 2 ? other[choice] : (uint32_t)(choice == 2 ? core_fd : now.fd[0]));
		/* One takes as long as a thousand of the others. */
		if (now.has_core)
			prm_set(in, CMD_IN_OP_MOD, DPA_OP_STATE);
		now.has_core = true;
	} else if (op == DPA_OP_CALL || op == DPA_OP_ON_ERROR || op == DPA_OP_CMDQ_ADD) {
		prm_set(in, DPA_IN_ADDR, dpa_address_tame(prm_get(in, DPA_IN_ADDR)));
		if (op == DPA_OP_CALL)
			prm_set(in, DPA_IN_UNPACK, dpa_address_tame(prm_get(in, DPA_IN_UNPACK)));
	} else if (op == DPA_OP_STREAM_READ) {
		prm_set(in, DPA_IN_WAIT, 0);
	}
}

/* Words of the input over the mailbox; its length. */
static size_t mailbox_finish(struct input *in, uint8_t *box, size_t bytes)
{
	uint16_t length = in_u16(in);
	uint8_t words = in_u8(in) % 16;

	for (; words && in->left; words--) {
		size_t at = 4u * in_u8(in);
		uint32_t word = in_u32(in);

		if (at >= 4 && at + sizeof(word) <= MAILBOX)
			memcpy(box + at, &word, sizeof(word));
	}
	bytes = length ? length % MAILBOX : bytes;
	mailbox_tame(box, bytes);
	return bytes;
}

/* ---- steps ---- */

static int general_command(int fd, const uint8_t *box, size_t bytes, size_t out_bytes)
{
	struct call c;

	call_begin(&c, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER);
	call_in(&c, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, box, bytes);
	call_attr(&c, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, (uintptr_t)answer, out_bytes);
	return call_run(&c, fd);
}

static void heap_look(int fd, uint32_t number)
{
	uint8_t box[DPA_IN_FIXED] = {0};

	prm_set(box, CMD_IN_OPCODE, PRM_OP_DPA);
	prm_set(box, CMD_IN_OP_MOD, DPA_OP_HEAP);
	prm_set(box, DPA_IN_PROCESS, number);
	if (general_command(fd, box, sizeof(box), DPA_OUT_BYTES))
		return;
	dpa_known.heap[(dpa_known.count[KIND_PROCESS] - 1) % DPA_NUMBERS] =
		prm_get(answer, DPA_OUT_HEAP_BASE);
	dpa_known.heap_bytes = prm_get(answer, DPA_OUT_HEAP_SIZE);
}

/* Where its code is. */
static void process_look(int fd, uint32_t number)
{
	uint8_t box[DPA_IN_FIXED + 8] = {0};
	uint64_t *code = &dpa_known.code[(dpa_known.count[KIND_PROCESS] - 1) % DPA_NUMBERS];

	prm_set(box, CMD_IN_OPCODE, PRM_OP_DPA);
	prm_set(box, CMD_IN_OP_MOD, DPA_OP_SYMBOL);
	prm_set(box, DPA_IN_PROCESS, number);
	prm_set(box, DPA_IN_BYTES, sizeof("add"));
	memcpy(box + DPA_IN_TAIL, "add", sizeof("add"));
	*code = general_command(fd, box, sizeof(box), DPA_OUT_BYTES)
			? 0
			: prm_get(answer, DPA_OUT_ADDR);
}

/* Where the answer to a creation has it. */
static uint32_t number_of(enum dpa_kind kind)
{
	switch (kind) {
	case KIND_CQ:
	case KIND_PD:
	case KIND_MKEY:
	case KIND_TIS:
	case KIND_QP:
	case KIND_RMP:
	case KIND_RQ:
	case KIND_SQ:
	case KIND_TIR:
		return prm_get32(answer, CMD_OUT_NUMBER);
	case KIND_EQ:
		return prm_get32(answer, CREATE_EQ_OUT_EQN);
	default:
		return prm_get32(answer, GENERAL_OUT_ID);
	}
}

static void step_create(struct input *in, int fd, uint8_t what)
{
	enum dpa_kind kind = what % KIND_COUNT;
	uint8_t box[MAILBOX] = {0}, first = in_u8(in), second = in_u8(in);
	size_t bytes = dpa_object_fill(box, kind, first, second);
	struct call c;

	bytes = mailbox_finish(in, box, bytes);
	call_begin(&c, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE);
	call_attr(&c, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0, 0);
	call_in(&c, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, box, bytes);
	call_attr(&c, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, (uintptr_t)answer, CMD_OUT_BYTES);
	if (call_run(&c, fd))
		return;
	/* the answer has the handle in the attribute itself */
	dpa_number_note(kind, number_of(kind), (uint32_t)c.attrs[0].data);
	if (kind == KIND_PROCESS) {
		uint32_t number = prm_get32(answer, GENERAL_OUT_ID);

		process_look(fd, number);
		heap_look(fd, number);
	}
}

static void step_general(struct input *in, int fd, uint8_t op)
{
	uint8_t box[MAILBOX] = {0}, who = in_u8(in), function = in_u8(in), memory = in_u8(in);
	uint8_t source = in_u8(in);
	uint16_t out_bytes = in_u16(in);
	size_t bytes = DPA_IN_FIXED;
	bool is_stream = op >= DPA_OP_STREAM_READ && op <= DPA_OP_STREAM_CLOSE;
	bool runs = op == DPA_OP_CALL || op == DPA_OP_ON_ERROR || op == DPA_OP_CMDQ_ADD;

	prm_set(box, CMD_IN_OPCODE, PRM_OP_DPA);
	prm_set(box, CMD_IN_OP_MOD, op);
	prm_set(box, DPA_IN_PROCESS,
		dpa_number(op >= DPA_OP_CMDQ_ADD ? KIND_CMDQ : KIND_PROCESS, who));
	prm_set(box, DPA_IN_ADDR, runs ? dpa_function(function) : dpa_memory(memory));
	prm_set(box, DPA_IN_BYTES, memory);
	prm_set(box, DPA_IN_SOURCE, source & 0x80 ? dpa_place(source) : (uintptr_t)dpa_known.image);
	if (is_stream) {
		prm_set(box, DPA_IN_STREAM, dpa_number(KIND_STREAM, memory));
		prm_set(box, DPA_IN_LEVEL, source);
	}
	if (op == DPA_OP_CALL) {
		prm_set(box, DPA_IN_BYTES, 16);
		prm_set(box, DPA_IN_UNPACK, source & 1 ? dpa_function(source) : 0);
		bytes += 16;
	} else if (op == DPA_OP_SYMBOL) {
		size_t n = strlen(small_names[function % SMALL_FUNCTIONS]) + 1;

		prm_set(box, DPA_IN_BYTES, n);
		memcpy(box + DPA_IN_TAIL, small_names[function % SMALL_FUNCTIONS], n);
		bytes += n;
	}
	bytes = mailbox_finish(in, box, bytes);
	if (!out_bytes)
		out_bytes = DPA_OUT_BYTES + (is_stream ? DPA_STREAM_READ_BYTES : 4096);
	if (!general_command(fd, box, bytes, out_bytes) && op == DPA_OP_ALLOC)
		dpa_known.memory[dpa_known.blocks++ % DPA_NUMBERS] = prm_get(answer, DPA_OUT_ADDR);
}

static void step_modify(struct input *in, int fd, uint8_t handle)
{
	uint8_t box[MAILBOX] = {0};
	size_t bytes = DPA_THREAD_RUN_BYTES;
	struct call c;

	prm_set(box, CMD_IN_OPCODE, PRM_OP_MODIFY_GENERAL_OBJECT);
	prm_set(box, GENERAL_IN_TYPE, GENERAL_DPA_THREAD);
	prm_set(box, GENERAL_IN_ID, dpa_number(KIND_THREAD, in_u8(in)));
	bytes = mailbox_finish(in, box, bytes);
	call_begin(&c, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY);
	call_attr(&c, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, handle, 0);
	call_in(&c, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, box, bytes);
	call_attr(&c, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, (uintptr_t)answer, CMD_OUT_BYTES);
	(void)call_run(&c, fd);
}

/* The state of a queue, and what else its owner may change. */
static void step_change(struct input *in, int fd, uint8_t what)
{
	uint8_t box[MAILBOX] = {0}, choice = in_u8(in);
	enum dpa_kind kind;
	size_t bytes = dpa_change_fill(box, what % CHANGE_COUNT, choice, &kind);
	struct call c;

	bytes = mailbox_finish(in, box, bytes);
	call_begin(&c, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY);
	call_attr(&c, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, dpa_handle(kind, choice), 0);
	call_in(&c, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, box, bytes);
	call_attr(&c, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, (uintptr_t)answer, CMD_OUT_BYTES);
	(void)call_run(&c, fd);
}

/* A work request, copied to a block as the host copies: only if the block is there. */
static void step_post(struct input *in, int fd, uint8_t block)
{
	uint8_t box[DPA_IN_FIXED] = {0}, wqe[DPA_WQE_BYTES], at = in_u8(in);

	dpa_wqe_fill(wqe, in);
	prm_set(box, CMD_IN_OPCODE, PRM_OP_DPA);
	prm_set(box, CMD_IN_OP_MOD, DPA_OP_COPY);
	prm_set(box, DPA_IN_PROCESS, dpa_number(KIND_PROCESS, 0));
	prm_set(box, DPA_IN_ADDR, dpa_memory(block) + (size_t)at % 64 * DPA_WQE_BYTES);
	prm_set(box, DPA_IN_BYTES, sizeof(wqe));
	prm_set(box, DPA_IN_SOURCE, (uintptr_t)wqe);
	(void)general_command(fd, box, sizeof(box), DPA_OUT_BYTES);
}

static void step_destroy(int fd, uint8_t handle)
{
	struct call c;

	call_begin(&c, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY);
	call_attr(&c, MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, handle, 0);
	(void)call_run(&c, fd);
}

static void step_complete(struct input *in)
{
	uint8_t choice = in_u8(in);

	for (unsigned i = 0; i < process->nhcas; i++)
		(void)cq_bell_empty(process->hcas[i].adapter, dpa_number(KIND_DUAR, choice),
				    dpa_number(KIND_CQ, choice));
}

/* By the numbers and regions that there are, and others, on either device. */
static void step_ring(struct input *in, uint8_t what)
{
	struct adapter *a = process->hcas[what >> 7 ? 1 : 0].adapter;
	uint8_t choice = in_u8(in);
	uint32_t region = dpa_number(KIND_DUAR, choice);
	uint32_t cqn = dpa_number(KIND_CQ, choice >> 3);
	uint32_t value = in_u32(in);

	switch (what % 6) {
	case 0:
	case 1:
		db_bell_ring(region, cqn, dpa_number(KIND_DOORBELL, choice >> 5), what & 1);
		break;
	case 2:
		(void)cq_bell_arm(a, region, cqn, value);
		break;
	case 3:
		(void)cq_bell_empty(a, region, cqn);
		break;
	case 4:
		eq_bell(region, dpa_number(KIND_EQ, choice >> 5), value);
		break;
	case 5:
		/* some numbers are of queues that there are */
		(void)qp_bell(a, region,
			      value & 0x80000000u ? value >> 16
			      : choice & 1	  ? dpa_number(KIND_QP, choice >> 3)
						  : dpa_number(KIND_SQ, choice >> 3),
			      (uint16_t)value);
		break;
	}
}

/* Into what all processes of the host share of the function: a doorbell, or, behind the BAR, any of its words. */
static void step_driver(struct input *in, uint8_t what)
{
	struct emulation *e = fuzz_function();
	uint32_t value = in_u32(in);

	if (what & 0x80) {
		size_t words = (sizeof(*e) - EMULATION_BAR_BYTES) / sizeof(value);

		memcpy((uint8_t *)e + offsetof(struct emulation, rung) +
			       what % words * sizeof(value),
		       &value, sizeof(value));
	} else {
		atomic_store(&e->doorbell[what], value);
		atomic_fetch_or(&e->rung, UINT64_C(1) << what % EMULATION_QUEUES);
	}
	inbox_raise_emulated(process->slot);
}

/* ---- a stream that is waited for: closing its process ends that ---- */

struct reader {
	int fd;
	uint8_t box[DPA_IN_FIXED];
};

static void *reader_main(void *arg)
{
	struct reader *r = arg;
	uint8_t *room = malloc(DPA_OUT_BYTES + DPA_STREAM_READ_BYTES);
	struct call c;

	MUST(room);
	call_begin(&c, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER);
	call_in(&c, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, r->box, sizeof(r->box));
	call_attr(&c, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, (uintptr_t)room,
		  DPA_OUT_BYTES + DPA_STREAM_READ_BYTES);
	while (!call_run(&c, r->fd) && !prm_get(room, DPA_OUT_OVER) && prm_get(room, DPA_OUT_TEXT))
		;
	free(room);
	free(r);
	return NULL;
}

static void step_read(struct input *in, int fd)
{
	struct reader *r = calloc(1, sizeof(*r));
	uint8_t choice = in_u8(in);

	MUST(r);
	r->fd = fd;
	prm_set(r->box, CMD_IN_OPCODE, PRM_OP_DPA);
	prm_set(r->box, CMD_IN_OP_MOD, DPA_OP_STREAM_READ);
	prm_set(r->box, DPA_IN_PROCESS, dpa_number(KIND_PROCESS, choice));
	prm_set(r->box, DPA_IN_STREAM, dpa_number(KIND_STREAM, choice >> 4));
	prm_set(r->box, DPA_IN_WAIT, 1);
	if (now.readers == READERS) {
		free(r);
		return;
	}
	MUST(!pthread_create(&now.reader[now.readers++], NULL, reader_main, r));
}

/* Destroying all objects ends what waits, as libmlx5 does before it closes; then the descriptors can go. */
static void all_destroy(unsigned context)
{
	for (unsigned round = 0; round < 4; round++)
		for (unsigned handle = 0; handle < 256; handle++)
			step_destroy(now.fd[context], (uint8_t)handle);
}

static void readers_end(void)
{
	for (unsigned i = 0; i < CONTEXTS && now.readers; i++)
		all_destroy(i);
	for (; now.readers; now.readers--)
		MUST(!pthread_join(now.reader[now.readers - 1], NULL));
}

static void context_close(unsigned i)
{
	cdev_close(now.fd[i]);
	close(now.fd[i]);
}

/* ---- the target ---- */

static size_t threads_count(void)
{
	DIR *dir = opendir("/proc/self/task");
	size_t n = 0;

	MUST(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

void target_init(void)
{
	small_image_make(dpa_known.image);
	answer = malloc(ANSWER);
	core_fd = memfd_create("core", MFD_CLOEXEC);
	MUST(answer && core_fd >= 0 && !process_get(&process));
	(void)doorbell_arm();
	fuzz_catch_faults(dpa_is_heap_guard);
	(void)fuzz_function();
	first_fd = fuzz_lowest_fd();
}

static void step(struct input *in)
{
	enum dpa_step what = in_u8(in) % STEP_COUNT;
	unsigned context = in_u8(in) % CONTEXTS;
	int fd = now.fd[context];
	uint8_t which = in_u8(in);

	switch (what) {
	case STEP_CREATE:
		step_create(in, fd, which);
		break;
	case STEP_GENERAL:
		step_general(in, fd, which);
		break;
	case STEP_MODIFY:
		step_modify(in, fd, which);
		break;
	case STEP_DESTROY:
		step_destroy(fd, which);
		break;
	case STEP_COMPLETE:
		step_complete(in);
		break;
	case STEP_READ:
		step_read(in, fd);
		break;
	case STEP_REOPEN:
		readers_end();
		context_close(context);
		context_open(context);
		break;
	case STEP_RING:
		step_ring(in, which);
		break;
	case STEP_DRIVER:
		step_driver(in, which);
		break;
	case STEP_CHANGE:
		step_change(in, fd, which);
		break;
	case STEP_POST:
		step_post(in, fd, which);
		break;
	case STEP_COUNT:
		break;
	}
}

/* Threads leave the list of the kernel a moment after they were joined. */
static void threads_must_be_gone(void)
{
	for (unsigned i = 0; i < 10000 && threads_count() > threads_at_first; i++)
		usleep(1000);
	MUST(threads_count() <= threads_at_first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	memset(&now, 0, sizeof(now));
	dpa_known_forget();
	for (unsigned i = 0; i < CONTEXTS; i++)
		context_open(i);
	if (!threads_at_first)
		threads_at_first =
			threads_count() + 2; /* the engine's and the guard's come when they like */
	while (in.left)
		step(&in);
	readers_end();
	for (unsigned i = 0; i < CONTEXTS; i++)
		context_close(i);
	MUST(!ftruncate(core_fd, 0));
	threads_must_be_gone();
	fuzz_no_fds_from(first_fd);
	for (unsigned i = 0; i < process->nhcas; i++) {
		struct adapter *a = process->hcas[i].adapter;

		MUST(a->mkeys.capacity - a->mkeys.count <= 1 /* the null key */);
		MUST(a->qps.capacity == a->qps.count);
	}
	return 0;
}
