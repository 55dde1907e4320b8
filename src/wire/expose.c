// SPDX-License-Identifier: BSD-2-Clause
#include "wire/expose.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u

static void *map_shared(int fd, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Opens shared memory of a fixed size, so that a peer can map all of it safely. */
static struct hidden open_shared(const char *name, uint64_t bytes)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return HIDDEN_NONE;
	if (ftruncate(fd, (off_t)bytes) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return hidden_keep(fd);
	close(fd);
	return HIDDEN_NONE;
}

int expose_open(struct expose *e, struct slot *slots, uint16_t slot)
{
	int ret;

	*e = (struct expose){.slots = slots, .slot = slot};
	e->file = open_shared("softhca-exposure", sizeof(struct expose_mem));
	e->arena_file = open_shared("softhca-arena", EXPOSE_ARENA_BYTES);
	if (e->file.fd < 0 || e->arena_file.fd < 0)
		goto fail;
	e->mem = map_shared(e->file.fd, sizeof(struct expose_mem));
	if (!e->mem)
		goto fail;
	for (unsigned i = 0; i < SLOT_REMOTE_SHARDS; i++)
		atomic_store(&slots[slot].remote_shard[i], 0);
	atomic_store(&slots[slot].arena_id, e->arena_file.id);
	atomic_store(&slots[slot].expose_id, e->file.id);
	atomic_store(&slots[slot].arena_fd_plus_1, e->arena_file.fd + 1);
	atomic_store(&slots[slot].expose_fd_plus_1, e->file.fd + 1);
	return 0;

fail:
	ret = errno ? -errno : -ENOMEM;
	hidden_close(&e->file);
	hidden_close(&e->arena_file);
	e->mem = NULL;
	return ret;
}

void expose_close(struct expose *e)
{
	if (!e->mem)
		return;
	atomic_store(&e->slots[e->slot].expose_fd_plus_1, 0);
	munmap(e->mem, sizeof(*e->mem));
	e->mem = NULL;
	hidden_close(&e->file);
	hidden_close(&e->arena_file);
}

struct qp_block *expose_qp(struct expose *e, uint32_t qpn)
{
	struct qp_block *b;
	uint32_t none = 0;

	if (!e->mem)
		return NULL;
	b = &e->mem->qps[qpn % EXPOSE_BLOCKS];
	return atomic_compare_exchange_strong(&b->qpn, &none, qpn) ? b : NULL;
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
	b->offset = k->offset;
	atomic_store_explicit(&b->seq, seq + 2, memory_order_release);
}

bool expose_key(struct expose *e, const struct key_block *k)
{
	struct key_block *b;

	if (!e->mem)
		return false;
	b = &e->mem->keys[(atomic_load_explicit(&k->key, memory_order_relaxed) >> 8) %
			  EXPOSE_BLOCKS];
	if (atomic_load_explicit(&b->key, memory_order_relaxed))
		return false;
	set_key(b, k);
	return true;
}

void expose_key_end(struct expose *e, uint32_t key)
{
	static const struct key_block none;
	struct key_block *b = &e->mem->keys[(key >> 8) % EXPOSE_BLOCKS];

	if (atomic_load_explicit(&b->key, memory_order_relaxed) == key)
		set_key(b, &none);
}

int64_t expose_arena_take(struct expose *e, uint64_t bytes)
{
	uint64_t at = atomic_load(&e->arena_used);

	if (bytes > EXPOSE_ARENA_BYTES)
		return -ENOSPC;
	bytes = align_up(bytes, PAGE);
	do {
		if (!e->mem || !range_inside(at, bytes, EXPOSE_ARENA_BYTES))
			return -ENOSPC;
	} while (!atomic_compare_exchange_weak(&e->arena_used, &at, at + bytes));
	return (int64_t)at;
}

/* ---- the other side ---- */

static void *map_of_peer(int32_t pid, int32_t fd_plus_1, uint64_t id, size_t bytes)
{
	char path[64];
	void *p;
	int fd;

	if (fd_plus_1 <= 0)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, (int)fd_plus_1 - 1);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	/*
	 * The peer may have closed its descriptor and opened something else under that number.  Or
	 * the peer is gone and another process has its PID, or the PID names another process in our
	 * PID namespace.
	 */
	p = hidden_id(fd) == id && lseek(fd, 0, SEEK_END) == (off_t)bytes &&
			    fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK
		    ? map_shared(fd, bytes)
		    : NULL;
	close(fd);
	return p;
}

/* Takes a shard that is free, or was that of a dead process or of our slot's last process. */
static void remote_shard_take(struct remote *f, const struct slot *slots, uint16_t me)
{
	for (unsigned i = 0; i < SLOT_REMOTE_SHARDS && !f->shard; i++) {
		uint32_t holder = atomic_load(&f->slot->remote_shard[i]);

		if (holder && holder != me + 1u && holder <= REGISTRY_SLOTS &&
		    atomic_load(&slots[holder - 1].alive))
			continue;
		if (atomic_compare_exchange_strong(&f->slot->remote_shard[i], &holder, me + 1u))
			f->shard = SLOT_THREAD_SHARDS + i;
	}
}

static void remote_shard_give(const struct remote *f)
{
	uint32_t mine = f->me + 1u;

	if (f->shard && atomic_load(&f->slot->alive) == f->alive)
		atomic_compare_exchange_strong(
			&f->slot->remote_shard[f->shard - SLOT_THREAD_SHARDS], &mine, 0);
}

struct remote *remote_open(struct slot *slots, uint16_t slot, uint16_t me)
{
	struct slot *s = &slots[slot];
	struct remote *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->slot = s;
	f->me = me;
	/* First: what is read of the slot from here on is that owner's or a later one's. */
	f->alive = atomic_load(&s->alive);
	f->pid = s->pid;
	f->mem = map_of_peer(f->pid, atomic_load(&s->expose_fd_plus_1), atomic_load(&s->expose_id),
			     sizeof(*f->mem));
	f->arena = map_of_peer(f->pid, atomic_load(&s->arena_fd_plus_1), atomic_load(&s->arena_id),
			       EXPOSE_ARENA_BYTES);
	if (f->mem && f->arena) {
		remote_shard_take(f, slots, me);
		return f;
	}
	remote_close(f);
	return NULL;
}

void remote_close(struct remote *f)
{
	remote_shard_give(f);
	if (f->mem)
		munmap(f->mem, sizeof(*f->mem));
	if (f->arena)
		munmap(f->arena, EXPOSE_ARENA_BYTES);
	free(f);
}

bool remote_key(const struct remote *f, uint32_t key, struct key_block *out)
{
	const struct key_block *b = &f->mem->keys[(key >> 8) % EXPOSE_BLOCKS];
	uint32_t seq = atomic_load_explicit(&b->seq, memory_order_acquire);

	if (seq & 1 || atomic_load_explicit(&b->key, memory_order_relaxed) != key)
		return false;
	out->pdn = b->pdn;
	out->access = b->access;
	out->iova = b->iova;
	out->length = b->length;
	out->offset = b->offset;
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&b->seq, memory_order_relaxed) == seq &&
	       range_inside(out->offset, out->length, EXPOSE_ARENA_BYTES);
}
