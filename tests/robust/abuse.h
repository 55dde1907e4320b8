/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of abuse.c share: calls with one mistake each, and the errno of the kernel. */
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#define ATTRS 16

extern int fd, failures;
extern uint8_t *nowhere; /* a page that is not there; the one before it is */

void expect(const char *what, long ret, int want);

struct call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[ATTRS];
};

struct call call(uint16_t object, uint16_t method, uint16_t n);
/* Mandatory attributes: data elsewhere; a value in the attribute itself. */
void attr(struct call *c, unsigned i, uint16_t id, uint16_t len, const void *data);
void attr_value(struct call *c, unsigned i, uint16_t id, uint16_t len, uint64_t value);
void expect_call(const char *what, struct call *c, int want);

struct message {
	struct ib_uverbs_cmd_hdr hdr;
	union {
		struct ib_uverbs_alloc_pd alloc_pd;
		struct ib_uverbs_dealloc_pd dealloc_pd;
		struct ib_uverbs_reg_mr reg_mr;
		uint8_t bytes[256];
	};
};

/* A message of that many bytes behind its header, which then says so. */
void expect_write(const char *what, struct message *m, size_t body, int want);

void abuse_before_context(void);
void abuse_ioctl(void);
void abuse_write(void);
