/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A control request of the program, parsed and checked, as the methods see it.  It arrives in one
 * of two forms, which share the methods where they can:
 *
 *   ioctl    RDMA_VERBS_IOCTL: an object, a method and typed attributes (uverbs/ioctl.c).  What a
 *            method takes is data: struct attr_spec.
 *   command  a numbered struct in, a struct out, and the provider's private parts (UHW) of both;
 *            through write(2) or inside the ioctl method INVOKE_WRITE (uverbs/write.c).
 *
 * Methods run with the file's lock held and return 0 or a negative errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "driver/uverbs/core/event.h"
#include "driver/uverbs/core/file.h"
#include "driver/uverbs/core/object.h"

/* Bytes of the program, or a copy of at most 8 that came inside an attribute. */
struct ubuf {
	void *ptr;
	size_t len;
};

/* The address that lies off bytes behind an address of the program.  It computes in integers,
 * because the address may be null or wrap, which C does not define for pointers. */
static inline void *uaddr_at(const void *base, size_t off)
{
	return (void *)((uintptr_t)base + off);
}

/*
 * Reads a struct of which the program may know an older or a newer version: fields that it did not
 * send read as zero; fields that we do not know must be there and zero (-EOPNOTSUPP), as in the
 * kernel.
 */
int ubuf_read(const struct ubuf *b, void *dst, size_t size) must_check;
/* Writes what fits and zero-fills what the program expected beyond. */
int ubuf_write(const struct ubuf *b, const void *src, size_t size) must_check;

/* ---- ioctl attributes ---- */

enum attr_type {
	ATTR_PTR_IN,
	ATTR_PTR_OUT,
	ATTR_ENUM,    /* has a choice: the first has data as ATTR_PTR_IN has, others none */
	ATTR_IDR,     /* handle of an existing object */
	ATTR_IDR_NEW, /* the method answers with a handle */
	ATTR_HANDLE,  /* a handle that the method looks up itself */
	ATTR_NUMBER,  /* a descriptor that the method looks up itself */
	ATTR_FD,      /* event channel */
	ATTR_FD_NEW,
};

struct attr_spec {
	uint16_t id;
	uint8_t type;
	uint8_t optional;
	uint8_t zero_trailing; /* the program may send more bytes if they are zero */
	uint8_t object;	       /* ATTR_IDR: enum uobj_type; ATTR_FD: enum uchannel_kind */
	uint8_t choices;       /* ATTR_ENUM */
	uint16_t min;
	uint16_t max;
};

struct uattr {
	const struct attr_spec *spec;
	size_t user_index; /* place in the program's array */
	uint16_t flags;
	uint16_t len;
	uint8_t choice; /* ATTR_ENUM */
	uint64_t data;
	union {
		struct uobj *obj;
		struct uchannel *channel; /* a reference, dropped after the method */
	};
};

#define UREQ_ATTRS 20u /* the largest method has 17 */

/*
 * A handler answers this if what it needs may come within a second, and nothing has changed yet.
 * The command then runs again from its beginning, until the time is over: -ETIMEDOUT.  The file's
 * lock is free meanwhile, so objects may go.
 */
#define UREQ_AWAITS (-EINPROGRESS)

struct ureq {
	struct ufile *file;
	bool inherited; /* the caller is a forked child */
	/* commands; the UHW parts for both forms */
	struct ubuf core_in;
	struct ubuf core_out;
	struct ubuf uhw_in;
	struct ubuf uhw_out;
	/* ioctl */
	struct ib_uverbs_attr *user_attrs;
	struct uattr attrs[UREQ_ATTRS];
	uint32_t nattrs;
};

/* NULL if the program did not send it. */
struct uattr *ureq_attr(struct ureq *req, uint16_t id);
/* Return numbers; 0 where an optional attribute is absent. */
uint64_t ureq_u64(struct ureq *req, uint16_t id);
uint32_t ureq_u32(struct ureq *req, uint16_t id);
/* Reads a number of 32 bits that comes in 64; -EINVAL if it is larger. */
int ureq_const(struct ureq *req, uint16_t id, uint32_t *out) must_check;
/* -EINVAL if a bit outside of allowed is set, or if the flags came as neither 4 nor 8 bytes. */
int ureq_flags(struct ureq *req, uint16_t id, uint64_t allowed, uint32_t *out) must_check;
struct uobj *ureq_obj(struct ureq *req, uint16_t id);
uint64_t ureq_handle(struct ureq *req, uint16_t id); /* also ATTR_NUMBER */
struct uchannel *ureq_channel(struct ureq *req, uint16_t id);
/* Writes an answer; 0 if the program did not ask for that attribute. */
int ureq_put(struct ureq *req, uint16_t id, const void *src, size_t size) must_check;
int ureq_put_u32(struct ureq *req, uint16_t id, uint32_t v) must_check;
int ureq_put_u64(struct ureq *req, uint16_t id, uint64_t v) must_check;
/* Tells the program that an answer has been written; ureq_put does so by itself. */
int ureq_put_done(struct ureq *req, uint16_t id) must_check;
/* Answers with the handle of a new object, or the descriptor of a new channel. */
int ureq_put_handle(struct ureq *req, uint16_t id, int64_t handle) must_check;
struct ubuf ureq_buf(struct ureq *req, uint16_t id);

/* ---- what many families do ---- */

/* Destroys the object in attribute 0, and answers nothing. */
int method_destroy(struct ureq *req);
/* Refuses a method that the kernel knows but this device does not have. */
int method_refuse(struct ureq *req);
/* Destroys the object that a command names by its handle; events may be NULL. */
int ureq_destroy(struct ureq *req, enum uobj_type type, uint32_t handle,
		 struct uevents *events) must_check;

/* ---- refusals ---- */

/* Returns err.  why is a word for traces that says where it was refused. */
int uverbs_refused(const char *name, int err, const char *why) __attribute__((cold));
