// SPDX-License-Identifier: BSD-2-Clause
#include "doorbell_device.h"

#include <endian.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

void doorbell_queue_serve(struct doorbell_user *u)
{
	struct doorbell_queue *q = container_of(u, struct doorbell_queue, user);

	atomic_fetch_add(&q->served, 1);
	atomic_store(&q->done, atomic_load(&q->posted));
}

void doorbell_device_named(void *user, uint32_t qpn, uint16_t pi)
{
	struct doorbell_device *r = user;

	r->named = qpn;
	r->named_pi = pi;
	if (qpn < DOORBELL_DEVICE_QUEUES)
		doorbell_queue_serve(&r->queues[qpn].user);
}

static void on_kick(void *user)
{
	sem_post(&((struct doorbell_device *)user)->kicked);
}

uint8_t *doorbell_device_map(int fd)
{
	uint8_t *p = mmap(NULL, UAR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

void doorbell_device_open(struct doorbell_device *r, bool hooks, unsigned queues)
{
	struct doorbell_page_attr attr;

	*r = (struct doorbell_device){.hooks = hooks, .fd = memfd_create("page", MFD_CLOEXEC)};
	sem_init(&r->kicked, 0, 0);
	CHECK(r->fd >= 0 && !ftruncate(r->fd, UAR_BYTES));
	r->device = doorbell_device_map(r->fd);
	r->program = doorbell_device_map(r->fd);
	r->engine = (struct doorbell_engine){.kick = on_kick, .user = r};
	doorbell_start(&r->engine);
	attr = (struct doorbell_page_attr){
		.regs = r->device,
		.hooks = &r->hooks,
		.ring = doorbell_device_named,
		.user = r,
	};
	CHECK(doorbell_page_create(&attr, &r->page) == 0);
	doorbell_mapped(r->device, (uintptr_t)r->program);
	for (unsigned i = 0; i < queues; i++) {
		doorbell_user_init(&r->queues[i].user, DOORBELL_SQ, r->device,
				   doorbell_queue_serve);
		doorbell_live(&r->queues[i].user, true);
	}
}

void doorbell_device_close(struct doorbell_device *r)
{
	for (unsigned i = 0; i < DOORBELL_DEVICE_QUEUES; i++)
		doorbell_user_release(&r->queues[i].user);
	doorbell_page_destroy(r->page);
	doorbell_forget(r->device, UAR_BYTES);
	doorbell_stop();
	CHECK(!doorbell_any_watched() && !doorbell_any_direct());
	munmap(r->program, UAR_BYTES);
	munmap(r->device, UAR_BYTES);
	close(r->fd);
}

void doorbell_device_post(struct doorbell_device *r, uint8_t *page, unsigned queue, unsigned half)
{
	uint64_t head = htobe64((uint64_t)0x0a << 32 | (uint64_t)queue << 8 | 2);

	atomic_fetch_add(&r->queues[queue].posted, 1);
	atomic_store((_Atomic(uint64_t) *)(void *)(page + UAR_SQ + half * UAR_SQ_HALF), head);
}

bool doorbell_device_done(const struct doorbell_device *r)
{
	for (unsigned i = 0; i < DOORBELL_DEVICE_QUEUES; i++)
		if (atomic_load(&r->queues[i].done) != atomic_load(&r->queues[i].posted))
			return false;
	return true;
}
