// SPDX-License-Identifier: BSD-2-Clause
/*
 * A peer lays files open and takes them back: their memory is let go of.  More of them come and go than
 * a process keeps the addresses of; a new connection frees those, also to a peer that is known
 * already.
 */
#include <stdio.h>
#include <string.h>

#include "base/hazard.h"
#include "test_fabric.h"
#include "wire/inbox.h"

#define BYTES 8192u

static struct test_process a, b;

static void ignore_packet(void *user, const struct pkt *p)
{
	(void)user;
	(void)p;
}

static bool is_mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	bool is = false;

	CHECK(f);
	while (!is && fgets(line, sizeof(line), f))
		is = strstr(line, "/memfd:file");
	fclose(f);
	return is;
}

/* Lays a file open, has a map it, and takes it back: was it mapped? */
static bool come_and_go(void)
{
	struct segment_table *theirs = &wire_process_expose(b.host)->segments;
	int fd = memfd_create("file", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct segment_ref ref;
	struct remote *f;
	bool mapped;

	CHECK(fd >= 0 && !ftruncate(fd, BYTES));
	CHECK(!segment_table_add(theirs, hidden_keep(fd), BYTES, &ref));
	hazard_enter();
	f = wire_remote(a.wire, &a.path, test_fabric_qpn(1));
	CHECK(f);
	mapped = segment_view_map(&f->segments, ref, 0);
	hazard_leave();
	segment_table_drop(theirs, ref);
	return mapped;
}

/* The peer may be sending nothing for a long time. */
static void test_told(void)
{
	CHECK(!wire_process_let_go(a.host) && !is_mapped());
	CHECK(come_and_go() && is_mapped());
	wire_process_files_ended(b.host);
	CHECK(!inbox_empty(&a.fabric->slots[a.slot]) && wire_process_let_go(a.host) &&
	      !is_mapped());
	CHECK(!wire_process_let_go(a.host));
}

int main(void)
{
	struct test_fabric *fabric = test_fabric_create();
	unsigned files = 0;

	fabric->expose = true;
	test_process_up(&a, fabric, 0, ignore_packet, NULL);
	test_process_up(&b, fabric, 1, ignore_packet, NULL);
	wire_remote_connect(a.wire, &a.path, test_fabric_qpn(1));
	wire_remote_connect(b.wire, &b.path, test_fabric_qpn(0));
	test_told();
	for (unsigned i = 0; i < 3; i++) {
		for (files = 0; files <= 2 * SEGMENTS && come_and_go(); files++)
			;
		/* There is a limit, and it is reached anew each time. */
		CHECK(files >= SEGMENTS / 2 && files <= 2 * SEGMENTS);
		wire_remote_connect(a.wire, &a.path, test_fabric_qpn(1));
	}
	CHECK(come_and_go());
	test_process_down(&a);
	test_process_down(&b);
	return 0;
}
