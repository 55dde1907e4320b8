// SPDX-License-Identifier: BSD-2-Clause
/* See uverbs/core/request.h. */
#include "driver/uverbs/core/request.h"

#include <errno.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdint.h>
#include <string.h>

#include "base/explain.h"
#include "base/trace.h"
#include "usermem/usermem.h"

/* ---- buffers ---- */

int ubuf_read(const struct ubuf *b, void *dst, size_t size)
{
	size_t n = min_u64(b->len, size);

	memset(dst, 0, size);
	if (n && !usermem_copy(dst, b->ptr, n))
		return -EFAULT;
	for (size_t at = size; at < b->len;) {
		uint8_t rest[64];
		size_t part = min_u64(b->len - at, sizeof(rest));

		if (!usermem_copy(rest, uaddr_at(b->ptr, at), part))
			return -EOPNOTSUPP;
		for (size_t i = 0; i < part; i++)
			if (rest[i])
				return -EOPNOTSUPP;
		at += part;
	}
	return 0;
}

int ubuf_write(const struct ubuf *b, const void *src, size_t size)
{
	static const uint8_t zeros[64];
	size_t n = min_u64(b->len, size);

	if (n && !usermem_copy(b->ptr, src, n))
		return -EFAULT;
	while (n < b->len) {
		size_t part = min_u64(b->len - n, sizeof(zeros));

		if (!usermem_copy(uaddr_at(b->ptr, n), zeros, part))
			return -EFAULT;
		n += part;
	}
	return 0;
}

/* ---- attributes, as methods ask for them ---- */

struct uattr *ureq_attr(struct ureq *req, uint16_t id)
{
	for (uint32_t i = 0; i < req->nattrs; i++)
		if (req->attrs[i].spec->id == id)
			return &req->attrs[i];
	return NULL;
}

struct ubuf ureq_buf(struct ureq *req, uint16_t id)
{
	struct uattr *a = ureq_attr(req, id);

	if (!a)
		return (struct ubuf){0};
	/* Input of up to 8 bytes sits in the attribute itself. */
	if (a->spec->type == ATTR_PTR_IN && a->len <= sizeof(a->data))
		return (struct ubuf){&a->data, a->len};
	return (struct ubuf){(void *)(uintptr_t)a->data, a->len};
}

uint64_t ureq_u64(struct ureq *req, uint16_t id)
{
	struct uattr *a = ureq_attr(req, id);
	uint64_t v = 0;

	/* Specs of numbers have max <= 8: always inside the attribute. */
	if (a)
		memcpy(&v, &a->data, min_u64(a->len, sizeof(v)));
	return v;
}

uint32_t ureq_u32(struct ureq *req, uint16_t id)
{
	return (uint32_t)ureq_u64(req, id);
}

int ureq_flags(struct ureq *req, uint16_t id, uint64_t allowed, uint32_t *out)
{
	const struct uattr *a = ureq_attr(req, id);
	uint64_t v = ureq_u64(req, id);

	if (a && a->len != sizeof(uint32_t) && a->len != sizeof(uint64_t))
		return -EINVAL;
	if (v & ~allowed)
		return -EINVAL;
	*out = (uint32_t)v;
	return 0;
}

int ureq_const(struct ureq *req, uint16_t id, uint32_t *out)
{
	uint64_t v = ureq_u64(req, id);

	if (v > UINT32_MAX)
		return -EINVAL;
	*out = (uint32_t)v;
	return 0;
}

struct uobj *ureq_obj(struct ureq *req, uint16_t id)
{
	struct uattr *a = ureq_attr(req, id);

	return a ? a->obj : NULL;
}

uint64_t ureq_handle(struct ureq *req, uint16_t id)
{
	struct uattr *a = ureq_attr(req, id);

	return a ? a->data : UINT64_MAX;
}

struct uchannel *ureq_channel(struct ureq *req, uint16_t id)
{
	struct uattr *a = ureq_attr(req, id);

	return a ? a->channel : NULL;
}

int ureq_put(struct ureq *req, uint16_t id, const void *src, size_t size)
{
	struct ubuf b = ureq_buf(req, id);
	int ret = ubuf_write(&b, src, size);

	return ret < 0 ? ret : ureq_put_done(req, id);
}

int ureq_put_done(struct ureq *req, uint16_t id)
{
	const struct uattr *a = ureq_attr(req, id);
	uint16_t flags;

	if (!a)
		return 0;
	flags = a->flags | UVERBS_ATTR_F_VALID_OUTPUT;
	return usermem_copy(&req->user_attrs[a->user_index].flags, &flags, sizeof(flags)) ? 0
											  : -EFAULT;
}

int ureq_put_u32(struct ureq *req, uint16_t id, uint32_t v)
{
	return ureq_put(req, id, &v, sizeof(v));
}

int ureq_put_u64(struct ureq *req, uint16_t id, uint64_t v)
{
	return ureq_put(req, id, &v, sizeof(v));
}

int ureq_put_handle(struct ureq *req, uint16_t id, int64_t handle)
{
	struct uattr *a = ureq_attr(req, id);

	if (!a)
		return 0;
	return usermem_copy(&req->user_attrs[a->user_index].data, &handle, sizeof(handle))
		       ? 0
		       : -EFAULT;
}

/* ---- what many families do ---- */

int method_refuse(struct ureq *req)
{
	(void)req;
	return -EOPNOTSUPP;
}

int method_destroy(struct ureq *req)
{
	return uobj_destroy(req->attrs[0].obj, NULL);
}

int ureq_destroy(struct ureq *req, enum uobj_type type, uint32_t handle, struct uevents *events)
{
	int err;
	struct uobj *obj = uobj_find(req->file, type, handle, &err);

	return obj ? uobj_destroy(obj, events) : err;
}

/* ---- refusals ---- */

/* Libraries probe with operations that are refused, so this explains only refusals that somebody
 * gave a reason for. */
int uverbs_refused(const char *name, int err, const char *why)
{
	const char *reason;

	trace(uverbs, refused, name, trace_errno(err), why);
	if (!explaining())
		return err;
	reason = explain_reason(strcmp(why, "inherited-by-fork")
					? ""
					: "the device was opened before fork(2), and the child "
					  "cannot use it");
	if (*reason)
		explain_line((uintptr_t)name, "%s is refused (%s): %s", name, trace_errno(err),
			     reason);
	return err;
}
