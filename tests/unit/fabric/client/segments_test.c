// SPDX-License-Identifier: BSD-2-Clause
/* Memory that the daemon shares: what a client maps, and replies that do not hold together. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric/client/segments.h"
#include "test_subnet.h"

#define PORTS 3u
#define SLOTS registry_traffic_offset(REGISTRY_SLOTS)

static int fds[MSG_MAX_FDS];
static struct msg_hello_reply reply;

static int file_of(size_t bytes, void *out)
{
	int fd = memfd_create("segment", MFD_CLOEXEC);
	void *p;

	CHECK(fd >= 0 && !ftruncate(fd, (off_t)bytes));
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	memcpy(out, &p, sizeof(p));
	return fd;
}

/* What a daemon of three ports would send, and its own views of it. */
static struct registry *daemon_registry;
static struct subnet daemon_subnet;
static struct slot *daemon_slots;

static struct traffic *daemon_traffic(uint32_t slot)
{
	return (struct traffic *)((char *)daemon_slots + registry_traffic_offset(slot));
}

static void daemon_begin(void)
{
	const struct subnet_shape shape = {PORTS, PORTS, PORTS * SUBNET_BED_GIDS};
	size_t bytes = subnet_bytes(&shape);
	void *p;

	fds[HELLO_FD_REGISTRY] = file_of(sizeof(struct registry), &daemon_registry);
	daemon_registry->magic = REGISTRY_MAGIC;
	daemon_registry->version = REGISTRY_VERSION;
	fds[HELLO_FD_SUBNET] = file_of(bytes, &p);
	subnet_format(&daemon_subnet, p, &shape);
	for (uint32_t i = 0; i < PORTS; i++)
		test_subnet_port(&daemon_subnet, i, 0, false);
	fds[HELLO_FD_SLOTS] = file_of(SLOTS, &daemon_slots);
	reply = (struct msg_hello_reply){
		.slot = 7,
		.nports = 2,
		.rows = {1, 2},
		.registry_bytes = sizeof(struct registry),
		.subnet_bytes = bytes,
		.slots_bytes = SLOTS,
	};
}

/* Mappings of the daemon's files, those of daemon_begin among them. */
static unsigned count_mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned n = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:segment") != NULL;
	fclose(f);
	return n;
}

static void test_mapped(void)
{
	struct client_segments s = {0};
	unsigned before = count_mapped();

	CHECK(!client_segments_map(&s, &reply, fds));
	CHECK(s.slot == 7 && s.nports == 2 && s.rows[0] == 1 && s.rows[1] == 2);
	CHECK(s.registry->magic == REGISTRY_MAGIC && s.subnet.nports == PORTS);
	CHECK(count_mapped() == before + HELLO_FDS + 1);
	/* the same memory, not a copy */
	atomic_store(&s.slots[7].driver, 77);
	CHECK(atomic_load(&daemon_slots[7].driver) == 77);
	atomic_store(&s.traffic->used, 78);
	CHECK(atomic_load(&daemon_traffic(7)->used) == 78 &&
	      !atomic_load(&daemon_traffic(6)->used));
	CHECK(subnet_set_state(&daemon_subnet, 1, IB_PORT_DOWN));
	CHECK(!subnet_port_active(&s.subnet, 1) && subnet_port_active(&s.subnet, 2));
	CHECK(subnet_set_state(&daemon_subnet, 1, IB_PORT_ACTIVE));
	client_segments_unmap(&s);
	CHECK(count_mapped() == before && !s.slots && !s.traffic && !s.registry && !s.subnet.head);
	client_segments_unmap(&s);
	CHECK(count_mapped() == before);
}

/* Nothing stays mapped, wherever it fails. */
static void expect_refusal(const struct msg_hello_reply *r, int error)
{
	struct client_segments s = {0};
	unsigned before = count_mapped();

	CHECK(client_segments_map(&s, r, fds) == error);
	CHECK(count_mapped() == before && !s.slots && !s.registry && !s.subnet.head);
}

static void test_numbers_that_lie(void)
{
	struct msg_hello_reply r = reply;

	r.nports = SLOT_PORTS + 1;
	expect_refusal(&r, -EBADMSG);
	r = reply;
	r.slot = REGISTRY_SLOTS;
	expect_refusal(&r, -EBADMSG);
	r = reply;
	r.slots_bytes = SLOTS - 1;
	expect_refusal(&r, -EBADMSG);
	r = reply;
	r.registry_bytes++;
	expect_refusal(&r, -EBADMSG);
	r = reply;
	r.subnet_bytes = 16; /* less than the head says */
	expect_refusal(&r, -EBADMSG);
	r = reply;
	r.rows[1] = PORTS; /* found last, when all is mapped */
	expect_refusal(&r, -EBADMSG);
}

static void test_other_versions(void)
{
	daemon_registry->version++;
	expect_refusal(&reply, -EPROTO);
	daemon_registry->version--;
	daemon_registry->magic++;
	expect_refusal(&reply, -EPROTO);
	daemon_registry->magic--;
	daemon_subnet.head->version++;
	expect_refusal(&reply, -EPROTO);
	daemon_subnet.head->version--;
	daemon_subnet.head->magic++;
	expect_refusal(&reply, -EBADMSG);
	daemon_subnet.head->magic--;
}

/* A reply that came without one of its descriptors. */
static void test_missing_descriptors(void)
{
	for (int i = 0; i < HELLO_FDS; i++) {
		int fd = fds[i];

		fds[i] = -1;
		expect_refusal(&reply, -EBADF);
		fds[i] = fd;
	}
}

int main(void)
{
	daemon_begin();
	test_mapped();
	test_numbers_that_lie();
	test_other_versions();
	test_missing_descriptors();
	test_mapped();
	return 0;
}
