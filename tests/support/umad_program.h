/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs with umad files on the ports of a test_mad, as the daemon sees them: by their sockets. */
#pragma once

#include <rdma/ib_user_mad.h>
#include <sys/types.h>

#include "fabric/daemon/umad/file.h"
#include "test_mad.h"

#define VENDOR_CLASS 0x32

struct program {
	struct umad_file *file;
	struct umad_page *page;
	uint64_t token;
	int fd;
};

struct plain {
	struct ib_user_mad_hdr header;
	uint8_t mad[MAD_BYTES];
};

/* The fabric of the programs. */
extern struct test_mad mad;
extern struct umad umad;
extern struct sm sm;

void programs_begin(void);
void programs_end(void);
struct program program_open(uint32_t row);
void program_close(struct program *p);
int program_register(struct program *p, unsigned class, uint64_t methods, uint32_t *id);
struct plain request_to(uint32_t id, unsigned lid, unsigned class, uint32_t tid);
void program_send(struct program *p, const void *bytes, size_t n);
/* Its length, or -1 with errno EAGAIN. */
ssize_t program_read(struct program *p, struct plain *m);
