// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory of the target's that the initiator has not mapped yet, cannot map, or that is gone.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rseq.h"
#include "check.h"
#include "reach/access.h"
#include "exposed_pair.h"
#include "test_fault.h"
#include "test_served.h"

#define DEEP 16u

/* A deep queue of requests of this length to that key's memory. */
static void post_deep(struct exposed_pair *p, uint8_t opcode, uint32_t key, uint64_t va,
		      uint32_t len)
{
	for (unsigned i = 0; i < DEEP; i++) {
		struct device_wqe w;

		device_wqe_begin(&p->from, &w, opcode, i == DEEP - 1 ? WQE_CTRL_CE_ALWAYS : 0, 0);
		device_wqe_raddr(&w, va, key);
		device_wqe_data(&w, p->source, len, p->source_key);
		device_wqe_put(&w);
	}
	device_ring(&p->from);
}

/* Memory in a file of the target's. */
struct late_memory {
	uint8_t *data; /* as the target has mapped it */
	struct segment_ref ref;
	struct mkey *key;
	uint32_t number;
};

/* Registers l->data, which lies at that offset of the file l->ref. */
static void late_memory_open(struct exposed_pair *p, struct late_memory *l, uint64_t offset)
{
	const struct key_place place = {.way = KEY_MAPPED, .segment = l->ref, .offset = offset};

	l->number = device_mr(&p->target.device, 0, p->to->qp.pdn, l->data, 4096,
			      EXPOSED_PAIR_RIGHTS, &l->key);
	mkey_expose(p->target.device.adapter[0], l->key, &place);
}

/* In a file of its own. */
static void late_memory_up(struct exposed_pair *p, struct late_memory *l)
{
	int fd = memfd_create("late", MFD_CLOEXEC);

	CHECK(fd >= 0 && !ftruncate(fd, 8192));
	l->data = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
	CHECK(l->data != MAP_FAILED);
	CHECK(!segment_table_add(&exposed_pair_expose(p)->segments, hidden_keep(fd), 8192,
				 &l->ref));
	late_memory_open(p, l, 4096);
}

static void late_memory_down(struct exposed_pair *p, struct late_memory *l)
{
	mkey_destroy(p->target.device.adapter[0], l->key);
	munmap(l->data, 4096);
}

/* All of the queue is executed by the initiator alone, from its first request on. */
static void deep_alone(struct exposed_pair *p, const struct late_memory *l)
{
	static const uint32_t len[] = {100, 2500};

	for (unsigned i = 0; i < array_size(len); i++) {
		uint32_t before = exposed_pair_msn(p);

		memset(l->data, 0, 4096);
		post_deep(p, WQE_OP_RDMA_WRITE, l->number, (uintptr_t)l->data, len[i]);
		exposed_pair_sent(p, CQE_OP_REQ);
		CHECK(!memcmp(l->data, p->source, len[i]) && !l->data[len[i]]);
		CHECK(exposed_pair_msn(p) == before + DEEP);
	}
}

/*
 * Memory that was registered after the connection was made, in a part of a file where nothing was
 * before, or in a file of its own: the first request already goes the right way.
 */
static void test_not_mapped_yet(void)
{
	struct exposed_pair *p = exposed_pair_up(KEY_MAPPED);
	const uint64_t next_chunk = 1ull << SEGMENT_CHUNK_SHIFT;
	struct late_memory part = {.ref = p->file}, file;

	part.data = exposed_pair_map(p, next_chunk, 4096);
	late_memory_open(p, &part, next_chunk);
	deep_alone(p, &part);
	late_memory_down(p, &part);

	late_memory_up(p, &file);
	memset(file.data, 0x5a, 4096);
	post_deep(p, WQE_OP_RDMA_READ, file.number, (uintptr_t)file.data, 2500);
	exposed_pair_sent(p, CQE_OP_REQ);
	CHECK(p->source[0] == 0x5a && p->source[2499] == 0x5a && p->source[2500] != 0x5a);
	deep_alone(p, &file);
	late_memory_down(p, &file);
	exposed_pair_down(p);
}

/* A file that the initiator cannot map: packets, all the same. */
static void test_never_mapped(void)
{
	struct exposed_pair *p = exposed_pair_up(KEY_MAPPED);
	struct late_memory l;

	late_memory_up(p, &l);
	atomic_store(&exposed_pair_expose(p)->mem->segments[l.ref.row].fd, -1);
	post_deep(p, WQE_OP_RDMA_WRITE, l.number, (uintptr_t)l.data, 100);
	CHECK(!device_cq_poll(&p->from.cq));
	exposed_pair_progress(p);
	exposed_pair_sent(p, CQE_OP_REQ);
	CHECK(!memcmp(l.data, p->source, 100));
	late_memory_down(p, &l);
	exposed_pair_down(p);
}

/* Memory that is not there: packets say so. */
static void test_memory_gone(void)
{
	struct exposed_pair *p = exposed_pair_up(KEY_KERNEL);
	uint8_t *gone =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct key_place place = {.way = KEY_KERNEL, .addr = (uintptr_t)gone};
	struct mkey *key;

	test_fault_catch();
	CHECK(gone != MAP_FAILED && !mprotect(gone + 4096, 4096, PROT_NONE));
	p->target_key = device_mr(&p->target.device, 0, p->to->qp.pdn, gone, 8192,
				  EXPOSED_PAIR_RIGHTS, &key);
	mkey_expose(p->target.device.adapter[0], key, &place);
	for (unsigned i = 0; i < 2; i++) {
		struct device_wqe w;

		device_wqe_begin(&p->from, &w, WQE_OP_RDMA_WRITE, WQE_CTRL_CE_ALWAYS, 0);
		device_wqe_raddr(&w, (uintptr_t)gone + i * 4000, p->target_key);
		device_wqe_data(&w, p->source, 200, p->source_key);
		device_wqe_end(&w);
		if (i)
			exposed_pair_progress(p);
		exposed_pair_sent(p, i ? CQE_OP_REQ_ERR : CQE_OP_REQ);
	}
	CHECK(!memcmp(gone, p->source, 200));
	mkey_destroy(p->target.device.adapter[0], key);
	munmap(gone, 8192);
	exposed_pair_down(p);
}

/* ---- memory of the initiator's whose faults wait ---- */

static void nobody_is_in(void *user)
{
	struct exposed_pair *p = user;
	const struct access_table *t = &exposed_pair_expose(p)->mem->access;

	for (unsigned i = 0; i < ACCESS_SLOTS; i++)
		CHECK(!atomic_load(&t->slots[i].owner));
}

/* The initiator is not in the target's memory while it waits for its own. */
static void test_own_faults(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);
	struct test_served served;
	uint32_t key, msn;
	struct mkey *mr;

	if (!test_served_map(&served, EXPOSED_PAIR_BYTES, nobody_is_in, p))
		SKIP("userfaultfd: %s", strerror(errno));
	key = device_mr(&p->initiator.device, 0, p->from.pdn, served.at, EXPOSED_PAIR_BYTES,
			EXPOSED_PAIR_RIGHTS, &mr);
	for (unsigned read = 0; read < 2; read++) {
		struct device_wqe w;

		test_served_empty(&served);
		msn = exposed_pair_msn(p);
		memset(p->to->data, read ? 'r' : 'w', EXPOSED_PAIR_BYTES);
		device_wqe_begin(&p->from, &w, read ? WQE_OP_RDMA_READ : WQE_OP_RDMA_WRITE,
				 WQE_CTRL_CE_ALWAYS, 0);
		device_wqe_raddr(&w, (uintptr_t)p->to->data, p->target_key);
		device_wqe_data(&w, served.at, EXPOSED_PAIR_BYTES, key);
		device_wqe_end(&w);
		exposed_pair_sent(p, CQE_OP_REQ);
		CHECK(exposed_pair_msn(p) == msn + 1 && atomic_load(&served.faults) == 1);
		for (unsigned i = 0; i < EXPOSED_PAIR_BYTES; i++)
			CHECK(read ? served.at[i] == 'r' : !p->to->data[i]);
	}
	mkey_destroy(p->initiator.device.adapter[0], mr);
	test_served_unmap(&served);
	exposed_pair_down(p);
}

int main(void)
{
	if (!rseq_available())
		SKIP("the C library registers no restartable sequences");
	test_not_mapped_yet();
	test_never_mapped();
	test_memory_gone();
	test_own_faults(KEY_MAPPED);
	test_own_faults(KEY_KERNEL);
	return 0;
}
