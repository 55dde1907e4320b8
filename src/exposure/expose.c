// SPDX-License-Identifier: BSD-2-Clause
#include "exposure/expose.h"

#include "base/log.h"
#include "base/memory_file.h"
#include "reach/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Opens shared memory of a fixed size, so that a peer can map all of it safely. */
static struct hidden open_shared(const char *name, uint64_t bytes)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return HIDDEN_NONE;
	if (memory_file_resize(fd, bytes) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return hidden_keep(fd);
	close(fd);
	return HIDDEN_NONE;
}

int expose_open(struct expose *e, struct slot *slots, uint16_t slot, bool keys)
{
	int ret;

	*e = (struct expose){.slots = slots, .slot = slot};
	e->row_stack = calloc(OBJECT_ROWS, sizeof(*e->row_stack));
	if (!e->row_stack)
		return -ENOMEM;
	e->file = open_shared("softhca-exposure", sizeof(struct expose_mem));
	if (e->file.fd < 0) {
		ret = errno ? -errno : -ENOMEM;
		goto free_stack;
	}
	e->mem = sparse_map(sizeof(struct expose_mem), PROT_READ | PROT_WRITE, e->file.fd, 0);
	if (!e->mem) {
		ret = errno ? -errno : -ENOMEM;
		goto close_file;
	}
	e->keys = keys;
	e->mem->keys_open = keys;
	alive_place(&e->mem->alive);
	segment_table_open(&e->segments, e->mem->segments);
	for (unsigned i = 0; i < SLOT_REMOTE_SHARDS; i++)
		atomic_store(&slots[slot].remote_shard[i], 0);
	atomic_store(&slots[slot].expose_id, e->file.id);
	proc_file_keep();
	atomic_store(&slots[slot].expose_fd_plus_1, e->file.fd + 1);
	return 0;

close_file:
	hidden_close(&e->file);
free_stack:
	free(e->row_stack);
	e->row_stack = NULL;
	return ret;
}

void expose_close(struct expose *e)
{
	if (!e->mem)
		return;
	atomic_store(&e->slots[e->slot].expose_fd_plus_1, 0);
	proc_file_drop();
	segment_table_close(&e->segments);
	munmap(e->mem, sizeof(*e->mem));
	e->mem = NULL;
	e->keys = false;
	hidden_close(&e->file);
	free(e->row_stack);
	e->row_stack = NULL;
}

struct qp_block *expose_qp(struct expose *e, uint32_t qpn, enum ib_qp_type type)
{
	struct qp_block *b;
	uint32_t none = 0;

	if (!e->keys)
		return NULL;
	b = &e->mem->qps[qpn % EXPOSE_BLOCKS];
	if (!atomic_compare_exchange_strong(&b->qpn, &none, qpn))
		return NULL;
	atomic_store_explicit(&b->type, (uint32_t)type, memory_order_relaxed);
	return b;
}

void expose_qp_end(struct qp_block *b)
{
	atomic_store(&b->qpn, 0);
}

static void set_key(struct key_block *b, const struct key_block *k)
{
	uint32_t seq = atomic_load_explicit(&b->seq, memory_order_relaxed);

	atomic_store_explicit(&b->seq, seq + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&b->key, atomic_load_explicit(&k->key, memory_order_relaxed),
			      memory_order_relaxed);
	b->pdn = k->pdn;
	b->access = k->access;
	b->iova = k->iova;
	b->length = k->length;
	b->place = k->place;
	atomic_store_explicit(&b->seq, seq + 2, memory_order_release);
}

bool expose_key(struct expose *e, const struct key_block *k)
{
	struct key_block *b;
	bool free;

	if (!e->keys)
		return false;
	b = &e->mem->keys[(atomic_load_explicit(&k->key, memory_order_relaxed) >> 8) %
			  EXPOSE_BLOCKS];
	/* Threads register and deregister at the same time, and some of their keys have the same
	 * block. */
	spin_lock(&e->key_lock);
	free = !atomic_load_explicit(&b->key, memory_order_relaxed);
	if (free)
		set_key(b, k);
	spin_unlock(&e->key_lock);
	return free;
}

void expose_key_end(struct expose *e, uint32_t key)
{
	static const struct key_block none;
	struct key_block *b = &e->mem->keys[(key >> 8) % EXPOSE_BLOCKS];

	spin_lock(&e->key_lock);
	if (atomic_load_explicit(&b->key, memory_order_relaxed) == key)
		set_key(b, &none);
	spin_unlock(&e->key_lock);
}

uint64_t expose_revoke_ask(struct expose *e)
{
	return access_revoke_ask(&e->revoker);
}

bool expose_revoke_over(struct expose *e, uint64_t ticket)
{
	return !e->mem || access_revoke_over(&e->revoker, &e->mem->access, ticket);
}

void expose_revoke(struct expose *e)
{
	if (e->mem)
		access_revoke(&e->mem->access);
}

void expose_alive_begin(struct expose *e)
{
	int ret = e->mem ? alive_begin(&e->mem->alive) : 0;

	if (ret)
		log_info("peers do not reach this process by the kernel: error %d", -ret);
}

void expose_alive_end(struct expose *e)
{
	if (e->mem)
		alive_end(&e->mem->alive);
}

/* ---- the peer's side ---- */

static struct expose_mem *map_of_peer(int32_t pid, const struct slot *peer)
{
	int fd = segment_file_open(pid, atomic_load(&peer->expose_fd_plus_1) - 1,
				   atomic_load(&peer->expose_id));
	struct expose_mem *mem = NULL;
	int seals;

	if (fd < 0)
		return NULL;
	/* The seal says that the file keeps its size, so we may touch all of it with plain
	 * instructions. */
	seals = fcntl(fd, F_GET_SEALS);
	if (seals >= 0 && seals & F_SEAL_SHRINK && lseek(fd, 0, SEEK_END) == (off_t)sizeof(*mem))
		mem = segment_file_map(fd, 0, sizeof(*mem), true);
	close(fd);
	if (mem && !alive_is_near(&mem->alive)) {
		munmap(mem, sizeof(*mem));
		mem = NULL;
	}
	return mem;
}

/*
 * The holder of a remote shard: its slot plus one and, in the bits above, the low bits of the
 * slot's generation, so that the next process in the slot is another holder.
 */
#define HOLDER_SLOT_BITS 11u

static_assert(REGISTRY_SLOTS < 1u << HOLDER_SLOT_BITS, "a holder names its slot");

static uint32_t shard_holder(const struct slot *slots, uint16_t slot)
{
	return atomic_load(&slots[slot].alive) << HOLDER_SLOT_BITS | (slot + 1u);
}

static bool shard_is_held(const struct slot *slots, uint32_t holder)
{
	uint32_t slot_plus_1 = holder & ((1u << HOLDER_SLOT_BITS) - 1);

	return slot_plus_1 && slot_plus_1 <= REGISTRY_SLOTS &&
	       atomic_load(&slots[slot_plus_1 - 1].alive) &&
	       holder == shard_holder(slots, (uint16_t)(slot_plus_1 - 1));
}

unsigned remote_shard_take(struct remote *f, unsigned own)
{
	unsigned shard = 0;

	for (unsigned i = 0; own && i < SLOT_REMOTE_SHARDS && !shard; i++) {
		uint32_t holder = atomic_load(&f->slot->remote_shard[i]);

		if (!shard_is_held(f->slots, holder) &&
		    atomic_compare_exchange_strong(&f->slot->remote_shard[i], &holder, f->holder))
			shard = SLOT_THREAD_SHARDS + i;
	}
	atomic_store_explicit(&f->shards[own], (uint8_t)(shard + 1), memory_order_relaxed);
	return shard;
}

/* Called when nobody counts any more. */
static void remote_shards_give(struct remote *f)
{
	if (atomic_load(&f->slot->alive) != f->alive)
		return;
	for (unsigned own = 0; own < SLOT_THREAD_SHARDS; own++) {
		unsigned shard_plus_1 = atomic_load(&f->shards[own]);
		uint32_t mine = f->holder;

		if (shard_plus_1 > SLOT_THREAD_SHARDS)
			atomic_compare_exchange_strong(
				&f->slot->remote_shard[shard_plus_1 - 1 - SLOT_THREAD_SHARDS],
				&mine, 0);
	}
}

static _Atomic(uint64_t) remotes_opened;

struct remote *remote_open(struct slot *slots, uint16_t slot, uint16_t me)
{
	struct slot *s = &slots[slot];
	struct remote *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->number = atomic_fetch_add(&remotes_opened, 1) + 1;
	f->slots = slots;
	f->slot = s;
	f->holder = shard_holder(slots, me);
	/* Read this first: what we read of the slot from here on is that owner's or a later
	 * one's. */
	f->alive = atomic_load(&s->alive);
	f->pid = s->pid;
	f->mem = map_of_peer(f->pid, s);
	if (!f->mem) {
		free(f);
		return NULL;
	}
	segment_view_open(&f->segments, f->mem->segments, f->pid);
	f->keys = f->mem->keys_open;
	f->reach =
		(struct way_peer){.table = &f->mem->access, .alive = &f->mem->alive, .pid = f->pid};
	return f;
}

void remote_close(struct remote *f)
{
	remote_shards_give(f);
	segment_view_close(&f->segments);
	munmap(f->mem, sizeof(*f->mem));
	free(f);
}

/* ---- the lists of keys and queue pairs that peers reach by packets alone ---- */

/* If two numbers collide, the list has the first one. */
static bool note_take(struct expose_note *n, uint32_t number)
{
	uint32_t none = 0;

	return atomic_compare_exchange_strong(&n->number, &none, number) || none == number;
}

static void note_end(struct expose_note *n, uint32_t number)
{
	atomic_compare_exchange_strong(&n->number, &number, 0);
}

void expose_note_key(struct expose *e, const struct key_block *k)
{
	struct expose_note *n;

	if (!e->mem)
		return;
	n = &e->mem->other_keys[(k->key >> 8) % EXPOSE_BLOCKS];
	if (!note_take(n, k->key))
		return;
	atomic_store_explicit(&n->kind, k->place.why, memory_order_relaxed);
	atomic_store_explicit(&n->pdn, k->pdn, memory_order_relaxed);
	atomic_store_explicit(&n->access, k->access, memory_order_relaxed);
	atomic_store_explicit(&n->iova, k->iova, memory_order_relaxed);
	atomic_store_explicit(&n->length, k->length, memory_order_relaxed);
}

void expose_note_key_end(struct expose *e, uint32_t key)
{
	if (e->mem)
		note_end(&e->mem->other_keys[(key >> 8) % EXPOSE_BLOCKS], key);
}

void expose_note_qp(struct expose *e, uint32_t qpn, enum ib_qp_type type, uint32_t peer)
{
	struct expose_note *n;

	if (!e->mem)
		return;
	n = &e->mem->other_qps[qpn % EXPOSE_BLOCKS];
	if (!note_take(n, qpn))
		return;
	atomic_store_explicit(&n->kind, type, memory_order_relaxed);
	atomic_store_explicit(&n->peer, peer, memory_order_relaxed);
}

void expose_note_qp_end(struct expose *e, uint32_t qpn)
{
	if (e->mem)
		note_end(&e->mem->other_qps[qpn % EXPOSE_BLOCKS], qpn);
}

/* ---- what XRC and dynamically connected targets lay open besides a responder ---- */

bool expose_srq(struct expose *e, uint32_t srqn, uint32_t xrcdn, uint32_t pdn)
{
	uint64_t none = 0, word = srq_word_make(srqn, xrcdn, pdn);

	return e->keys && word &&
	       atomic_compare_exchange_strong(&e->mem->xrc_srqs[srqn % EXPOSE_BLOCKS], &none, word);
}

void expose_srq_end(struct expose *e, uint32_t srqn)
{
	atomic_store(&e->mem->xrc_srqs[srqn % EXPOSE_BLOCKS], 0);
}

struct qp_block *expose_dc(struct expose *e, uint32_t dctn, uint32_t dcin)
{
	struct qp_block *b;
	uint32_t none = 0;

	if (!e->keys)
		return NULL;
	b = &e->mem->dcs[expose_dc_place(dctn, dcin)];
	if (!atomic_compare_exchange_strong(&b->qpn, &none, dctn))
		return NULL;
	atomic_store_explicit(&b->type, (uint32_t)IB_QPT_DCT, memory_order_relaxed);
	return b;
}

/* ---- what a process lays open, for people to see: names, and a copy ---- */

static const char *name_of(const char *const *names, size_t n, unsigned value)
{
	return value < n ? names[value] : "unknown";
}

const char *key_way_name(enum key_way way)
{
	static const char *const names[] = {"packets", "kernel", "mapped"};

	return name_of(names, array_size(names), way);
}

const char *key_why_name(enum key_why why)
{
	static const char *const names[KEY_WHYS] = {
		[KEY_WHY_UNSAID] = "",
		[KEY_WHY_ASKED] = "--memory asks for it",
		[KEY_WHY_PRIVATE] = "private memory",
		[KEY_WHY_CLOSED] = "shared memory that peers cannot map",
		[KEY_WHY_SHARED] = "memory that is shared already",
		[KEY_WHY_ON_DEMAND] = "on-demand paging",
		[KEY_WHY_MAY_WAIT] = "faults may wait for another program",
		[KEY_WHY_UNMAPPED] = "unmapped since",
		[KEY_WHY_LOCAL] = "no right for peers to read or write",
		[KEY_WHY_WINDOW] = "a memory window",
		[KEY_WHY_LIST] = "a list of pieces of other keys, or with signatures",
		[KEY_WHY_DEVX] = "made by a DEVX command",
	};

	return name_of(names, KEY_WHYS, why);
}

const char *peer_found_name(enum peer_found found)
{
	static const char *const names[PEER_FOUNDS] = {
		[PEER_NOT_TRIED] = "not connected yet",
		[PEER_NOT_MAPPED] =
			"the peer exposes nothing, may not be mapped, or lives in other namespaces",
		[PEER_MAPPED] = "each request goes the way of its key",
		[PEER_NO_KERNEL] = "the system forbids process_vm_readv and writev",
		[PEER_NO_RSEQ] = "the process has no restartable sequences",
	};

	return name_of(names, PEER_FOUNDS, found);
}

const char *transport_name(enum ib_qp_type type)
{
	static const char *const names[] = {
		[IB_QPT_RC] = "RC",	  [IB_QPT_UC] = "UC",
		[IB_QPT_UD] = "UD",	  [IB_QPT_RAW_PACKET] = "raw packets",
		[IB_QPT_XRC_INI] = "XRC", [IB_QPT_XRC_TGT] = "XRC",
		[IB_QPT_DCI] = "DC",	  [IB_QPT_DCT] = "DC",
	};
	const char *name = name_of(names, array_size(names), type);

	return name ? name : "unknown";
}

/* Copies the pages that the file has into memory of zeros; the rest stays zero. */
static bool copy_pages(int fd, char *to, off_t bytes)
{
	off_t at = 0, end;

	while (at < bytes && (at = lseek(fd, at, SEEK_DATA)) >= 0) {
		end = lseek(fd, at, SEEK_HOLE);
		if (end < 0)
			return false;
		end = end < bytes ? end : bytes;
		while (at < end) {
			ssize_t n = pread(fd, to + at, (size_t)(end - at), at);

			if (n <= 0)
				return false;
			at += n;
		}
	}
	/* ENXIO: no data follows the last place. */
	return at >= 0 || errno == ENXIO;
}

int expose_snapshot_open(const struct slot *s)
{
	return segment_file_open(s->pid, atomic_load(&s->expose_fd_plus_1) - 1,
				 atomic_load(&s->expose_id));
}

bool expose_snapshot(int fd, struct expose_mem *to)
{
	return lseek(fd, 0, SEEK_END) == (off_t)sizeof(*to) &&
	       copy_pages(fd, (char *)to, (off_t)sizeof(*to));
}

bool expose_object_stands(int fd, uint32_t row, uint64_t serial)
{
	off_t at = (off_t)(offsetof(struct expose_mem, objects) + row * sizeof(struct object_row) +
			   offsetof(struct object_row, serial));
	uint64_t now;

	return pread(fd, &now, sizeof(now), at) == sizeof(now) && now == serial;
}
