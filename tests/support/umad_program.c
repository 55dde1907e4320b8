// SPDX-License-Identifier: BSD-2-Clause
#include "umad_program.h"

#include <endian.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

struct test_mad mad;
struct umad umad;
struct sm sm = {.mode = SM_EXTERNAL};

void programs_begin(void)
{
	test_mad_open(&mad);
	test_net_raise(&mad.t);
	sm.fabric = &mad.mad;
	umad_open(&umad, &mad.mad, &sm);
}

void programs_end(void)
{
	umad_close(&umad);
	test_mad_close(&mad);
}

struct program program_open(uint32_t row)
{
	struct program p;
	int fds[2];

	CHECK(!umad_file_open(&umad, row, &p.token, fds));
	p.fd = fds[UMAD_OPEN_FD_SOCKET];
	p.file = umad_file_find(&umad, p.token);
	CHECK(p.file && p.file->row == row);
	p.page = mmap(NULL, sizeof(*p.page), PROT_READ | PROT_WRITE, MAP_SHARED,
		      fds[UMAD_OPEN_FD_PAGE], 0);
	CHECK(p.page != MAP_FAILED && p.page->magic == UMAD_MAGIC);
	CHECK(ftruncate(fds[UMAD_OPEN_FD_PAGE], 0) < 0); /* it would be a signal for the daemon */
	close(fds[UMAD_OPEN_FD_PAGE]);
	return p;
}

void program_close(struct program *p)
{
	munmap(p->page, sizeof(*p->page));
	close(p->fd);
	test_mad_run(&mad, 0);
	CHECK(!umad_file_find(&umad, p->token));
}

int program_register(struct program *p, unsigned class, uint64_t methods, uint32_t *id)
{
	const struct msg_umad_register r = {
		.methods = {methods},
		.qpn = class != MAD_CLASS_SMP_DIRECTED && class != MAD_CLASS_SMP_LID,
		.class = (uint8_t) class,
		.class_version = 1,
		.oui = mad_class_is_vendor2(class) ? 0x1234 : 0,
		.rmpp_version = mad_class_has_rmpp(class),
		.second = 1,
	};

	return umad_file_register(p->file, &r, id);
}

struct plain request_to(uint32_t id, unsigned lid, unsigned class, uint32_t tid)
{
	struct plain m = {.header = {.id = id, .lid = htobe16((uint16_t)lid), .timeout_ms = 100}};

	m.header.qpn = htobe32(1);
	m.mad[MAD_AT_BASE_VERSION] = 1;
	m.mad[MAD_AT_CLASS] = (uint8_t) class;
	m.mad[MAD_AT_CLASS_VERSION] = 1;
	m.mad[MAD_AT_METHOD] = MAD_GET;
	mad_put32(m.mad, MAD_AT_TID, 0xdeadbeef);
	mad_put32(m.mad, MAD_AT_TID + 4, tid);
	if (mad_class_is_vendor2(class))
		mad_put16(m.mad, MAD_AT_OUI + 1, 0x1234);
	return m;
}

/* As the driver does it. */
void program_send(struct program *p, const void *bytes, size_t n)
{
	const struct plain *m = bytes;
	uint32_t tid = mad_get32(m->mad, MAD_AT_TID + 4);

	p->page->in_flight[umad_in_flight_at(tid, m->mad[MAD_AT_CLASS])]++;
	p->page->sends++;
	CHECK(send(p->fd, bytes, n, MSG_DONTWAIT) == (ssize_t)n);
}

ssize_t program_read(struct program *p, struct plain *m)
{
	memset(m, 0xee, sizeof(*m));
	return recv(p->fd, m, sizeof(*m), MSG_DONTWAIT);
}
