// SPDX-License-Identifier: BSD-2-Clause
/*
 * liar DEVICE noise|waits: opens the device and writes into what it exposes to those who look:
 *
 *   noise   numbers that mean nothing, among them many that almost do
 *   waits   an object at an address where whoever reads it waits for ever
 *
 * It says "done", or why it cannot, and waits until it is killed.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exposure/expose.h"
#include "verbs_device.h"

#define FDS 65536

/* What this process exposes, found as its descriptors name it. */
static struct expose_mem *exposure_find(void)
{
	for (int fd = FDS; fd >= 0; fd--) {
		char path[64], name[64] = "";
		int at;
		void *p;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, name, sizeof(name) - 1) < 0 || !strstr(name, "softhca-exposure"))
			continue;
		at = open(path, O_RDWR | O_CLOEXEC);
		p = at < 0 ? MAP_FAILED
			   : mmap(NULL, sizeof(struct expose_mem), PROT_READ | PROT_WRITE,
				  MAP_SHARED, at, 0);
		if (p == MAP_FAILED)
			device_die("%s: %m", path);
		return p;
	}
	device_die("this process exposes nothing");
}

static uint64_t random_next(void)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

static void noise_fill(void *p, size_t bytes)
{
	for (size_t i = 0; i + 8 <= bytes; i += 8) {
		uint64_t value = random_next();

		memcpy((char *)p + i, &value, sizeof(value));
	}
}

static void noise_rows(struct expose_mem *m)
{
	static uint64_t here[OBJECT_MAX_BYTES / 8];

	noise_fill(here, sizeof(here));
	for (uint32_t i = 0; i < OBJECT_ROWS; i++) {
		struct object_row *row = &m->objects[i];

		noise_fill(&row->about, sizeof(row->about));
		row->about.kind %= OBJECT_KINDS + 1;
		row->about.at = i % 2 ? (uintptr_t)here : random_next();
		row->about.port = i % 3;
		if (i % 5)
			row->about.number = (uint32_t)here[0];
		memset(row->why, i % 2 ? 0x1b : 0xff, sizeof(row->why));
		atomic_store(&row->failures, i);
		atomic_store(&row->serial, i + 1);
	}
	m->forms[OBJECT_QP].figures[FIGURE_NUMBER] = (struct object_place){0, 4};
	m->forms[OBJECT_CQ].figures[FIGURE_NUMBER] = (struct object_place){0, 4};
	m->forms[OBJECT_CQ].figures[FIGURE_RECORD] = (struct object_place){OBJECT_MAX_BYTES, 8};
	m->forms[OBJECT_SRQ].figures[FIGURE_RECORD] = (struct object_place){UINT16_MAX, 8};
}

static void noise_make(struct expose_mem *m)
{
	noise_fill(m->forms, sizeof(m->forms));
	noise_fill(m->found, sizeof(m->found));
	noise_fill(m->segments, sizeof(m->segments));
	for (uint32_t i = 0; i < EXPOSE_BLOCKS; i++) {
		noise_fill(&m->qps[i], sizeof(m->qps[i]));
		m->qps[i].qpn = m->qps[i].qpn << 16 | i;
		noise_fill(&m->keys[i], sizeof(m->keys[i]));
		m->keys[i].seq = m->keys[i].seq & ~1u;
		m->keys[i].place.way = (enum key_way)(i % 4);
		noise_fill(&m->other_qps[i], sizeof(m->other_qps[i]));
		noise_fill(&m->other_keys[i], sizeof(m->other_keys[i]));
	}
	noise_rows(m);
}

/* Memory whose faults nobody serves; NULL: the system has none for us. */
static void *memory_waiting(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *p = mmap(NULL, OBJECT_MAX_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	range.range.start = (uintptr_t)p;
	range.range.len = OBJECT_MAX_BYTES;
	return fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range) ? NULL
											   : p;
}

static void row_waiting(struct expose_mem *m, void *memory)
{
	struct object_row *row = &m->objects[OBJECT_ROWS / 2];

	row->about =
		(struct object_about){.at = (uintptr_t)memory, .kind = OBJECT_CQ, .number = 0x777};
	atomic_store(&row->serial, UINT32_MAX);
}

int main(int argc, char **argv)
{
	struct device_port port;
	struct expose_mem *m;
	void *memory = memory_waiting();

	if (argc != 3)
		return 2;
	device_port_open(&port, argv[1], -1);
	if (!ibv_create_cq(port.ctx, 1, NULL, NULL, 0))
		device_die("ibv_create_cq: %m");
	m = exposure_find();
	if (!strcmp(argv[2], "noise"))
		noise_make(m);
	else if (memory)
		row_waiting(m, memory);
	puts(memory || argv[2][0] == 'n' ? "done" : "userfaultfd is forbidden here");
	fflush(stdout);
	for (;;)
		pause();
}
