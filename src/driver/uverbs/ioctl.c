// SPDX-License-Identifier: BSD-2-Clause
/*
 * RDMA_VERBS_IOCTL: the list of all families with the way from the number of a request to the row
 * of its family, and the parser.
 */
#include "driver/uverbs/uverbs.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>

#include "base/explain.h"
#include "base/log.h"
#include "base/trace.h"
#include "driver/devx/devx.h"
#include "driver/uverbs/core/inject.h"
#include "driver/uverbs/core/file.h"
#include "driver/uverbs/core/request.h"
#include "driver/uverbs/objects/objects.h"
#include "usermem/usermem.h"

/* ---- the families ---- */

const struct uverbs_family *const uverbs_families[] = {
	&ucontext_family, &udevice_family,	 &uah_family,	&ucq_family, &udm_family,
	&uflow_family,	  &umatcher_family,	 &umr_family,	&upd_family, &uqp_family,
	&uqp_attr_family, &usrq_family,		 &uuar_family,	&uwq_family, &uxrcd_family,
	&udevx_family,	  &udevx_channel_family, &uumem_family,
};

const size_t uverbs_families_count = array_size(uverbs_families);

static const struct method_spec *family_method(const struct uverbs_family *f, uint16_t object,
					       uint16_t method)
{
	for (size_t i = 0; i < f->nmethods; i++)
		if (f->methods[i].object == object && f->methods[i].method == method)
			return &f->methods[i];
	return NULL;
}

const struct method_spec *uverbs_method(uint16_t object, uint16_t method)
{
	for (size_t i = 0; i < uverbs_families_count; i++) {
		const struct method_spec *m = family_method(uverbs_families[i], object, method);

		if (m)
			return m;
	}
	return NULL;
}

static const struct command_spec *family_command(const struct uverbs_family *f, uint32_t number)
{
	for (size_t i = 0; i < f->ncommands; i++)
		if (f->commands[i].number == number)
			return &f->commands[i];
	return NULL;
}

const struct command_spec *uverbs_command(uint32_t number)
{
	for (size_t i = 0; i < uverbs_families_count; i++) {
		const struct command_spec *c = family_command(uverbs_families[i], number);

		if (c)
			return c;
	}
	return NULL;
}

/* ---- the parser ---- */

/*
 * Parser of RDMA_VERBS_IOCTL.  It copies the program's header and attributes once and looks only at
 * the copy.  Which errno answers which mistake is part of the ABI, because libibverbs probes with
 * it: EPROTONOSUPPORT means "this kernel has no such method or attribute" and nothing else.
 */

#define ATTRS_MAX \
	((UVERBS_PAGE - sizeof(struct ib_uverbs_ioctl_hdr)) / sizeof(struct ib_uverbs_attr))

static const struct attr_spec uhw_specs[] = {
	{UVERBS_ATTR_UHW_IN, ATTR_PTR_IN, .optional = 1, .max = UINT16_MAX},
	{UVERBS_ATTR_UHW_OUT, ATTR_PTR_OUT, .optional = 1, .max = UINT16_MAX},
};

static const struct attr_spec *find_spec(const struct method_spec *m, uint16_t id)
{
	for (uint32_t i = 0; i < m->nattrs; i++)
		if (m->attrs[i].id == id)
			return &m->attrs[i];
	/* Other methods may have attributes of their own with these numbers. */
	if (m->uhw)
		for (uint32_t i = 0; i < array_size(uhw_specs); i++)
			if (uhw_specs[i].id == id)
				return &uhw_specs[i];
	return NULL;
}

static bool tail_is_zero(struct uattr *a)
{
	size_t known = a->spec->max;
	struct ubuf tail = {uaddr_at((void *)(uintptr_t)a->data, known), a->len - known};
	uint8_t none;

	if (a->len <= sizeof(a->data))
		tail.ptr = (uint8_t *)&a->data + known;
	return ubuf_read(&tail, &none, 0) == 0;
}

/* Only the first choice has data. */
static int parse_choice(const struct uattr *a, const struct ib_uverbs_attr *in)
{
	if (a->choice >= a->spec->choices)
		return -EOPNOTSUPP;
	if (in->attr_data.enum_data.reserved)
		return -EINVAL;
	return a->choice && a->len ? -EINVAL : 0;
}

static int parse_data(struct uattr *a, const struct ib_uverbs_attr *in)
{
	const struct attr_spec *s = a->spec;
	int ret;

	if (s->type == ATTR_ENUM) {
		ret = parse_choice(a, in);
		if (ret < 0 || a->choice)
			return ret;
	}
	if (s->type == ATTR_PTR_IN && s->zero_trailing && a->len > s->max && !tail_is_zero(a))
		return -EOPNOTSUPP;
	if (a->len < s->min || (a->len > s->max && !s->zero_trailing))
		return -EINVAL;
	return s->type != ATTR_ENUM && in->attr_data.reserved ? -EINVAL : 0;
}

/* Handles are signed, and no handle was ever negative. */
static int parse_handle(struct ureq *req, struct uattr *a, const struct ib_uverbs_attr *in)
{
	const struct attr_spec *s = a->spec;
	int err = 0;

	if (in->attr_data.reserved || in->len)
		return -EINVAL;
	switch ((enum attr_type)s->type) {
	case ATTR_IDR:
		if (in->data_s64 < 0)
			return -EINVAL;
		a->obj = uobj_find(req->file, s->object, in->data, &err);
		return err;
	case ATTR_FD:
		return uchannel_find(req->file, s->object, in->data_s64, &a->channel);
	case ATTR_IDR_NEW:
	case ATTR_FD_NEW:
		return req->file->context ? 0 : -EINVAL;
	case ATTR_HANDLE:
		return in->data_s64 < 0 ? -EINVAL : 0;
	case ATTR_NUMBER:
		return in->data_s64 != (int)in->data_s64 ? -EINVAL : 0;
	default:
		return 0;
	}
}

static int parse_attr(struct ureq *req, const struct method_spec *m,
		      const struct ib_uverbs_attr *in, size_t index)
{
	const struct attr_spec *s = find_spec(m, in->attr_id);
	struct uattr *a;
	int ret;

	if (!s)
		return in->flags & UVERBS_ATTR_F_MANDATORY ? -EPROTONOSUPPORT : 0;
	if (ureq_attr(req, in->attr_id) || req->nattrs == UREQ_ATTRS)
		return -EINVAL;
	a = &req->attrs[req->nattrs];
	*a = (struct uattr){.spec = s,
			    .user_index = index,
			    .flags = in->flags,
			    .len = in->len,
			    .choice = in->attr_data.enum_data.elem_id,
			    .data = in->data};
	if (s->type == ATTR_PTR_IN || s->type == ATTR_PTR_OUT || s->type == ATTR_ENUM)
		ret = parse_data(a, in);
	else
		ret = parse_handle(req, a, in);
	if (ret == 0)
		req->nattrs++;
	return ret;
}

static void drop_channels(struct ureq *req)
{
	for (uint32_t i = 0; i < req->nattrs; i++)
		if (req->attrs[i].spec->type == ATTR_FD)
			cdev_put(uchannel_cdev(req->attrs[i].channel));
}

static int method_refused(const struct method_spec *m, int err, const char *why)
{
	return uverbs_refused(m->name, err, why);
}

static int parse_and_run(struct ureq *req, const struct method_spec *m,
			 const struct ib_uverbs_attr *attrs, uint32_t n)
{
	int ret;

	for (uint32_t i = 0; i < n; i++) {
		ret = parse_attr(req, m, &attrs[i], i);
		if (ret < 0)
			return method_refused(m, ret, "bad-attribute");
	}
	for (uint32_t i = 0; i < m->nattrs; i++)
		if (!m->attrs[i].optional && !ureq_attr(req, m->attrs[i].id))
			return method_refused(m, -EINVAL, "missing-attribute");
	if (!m->before_context && !req->file->context)
		return method_refused(m, -EINVAL, "no-context");
	ret = inject_call(req->file, m->name);
	if (ret < 0)
		return method_refused(m, ret, "injected");
	if (m->uhw) {
		req->uhw_in = ureq_buf(req, UVERBS_ATTR_UHW_IN);
		req->uhw_out = ureq_buf(req, UVERBS_ATTR_UHW_OUT);
	}
	ret = m->run(req);
	if (ret == 0 && m->uhw)
		ret = ureq_put_done(req, UVERBS_ATTR_UHW_OUT);
	/* Only the parser may answer this: the library would take the method for missing. */
	ret = ret == -EPROTONOSUPPORT ? -EINVAL : ret;
	/* With ENOSPC libibverbs asks what there is, see uverbs/write.c. */
	return ret < 0 && ret != -ENOSPC ? method_refused(m, ret, "handler") : ret;
}

static const struct method_spec *method_find(uint16_t object, uint16_t method)
{
	if (object == uverbs_invoke_write.object && method == uverbs_invoke_write.method)
		return &uverbs_invoke_write;
	return uverbs_method(object, method);
}

static int run_ioctl(struct ufile *f, unsigned long request, void *arg, bool inherited)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[ATTRS_MAX];
	} in;
	struct ureq req = {.file = f, .inherited = inherited};
	const struct method_spec *m;
	int ret;

	if (request != RDMA_VERBS_IOCTL)
		return -ENOTTY;
	/* Earlier notes have nothing to do with this request. */
	if (explaining())
		(void)explain_reason("");
	if (!usermem_copy(&in.hdr, arg, sizeof(in.hdr)))
		return -EFAULT;
	if (in.hdr.num_attrs > ATTRS_MAX ||
	    in.hdr.length != sizeof(in.hdr) + in.hdr.num_attrs * sizeof(in.attrs[0]))
		return -EINVAL;
	if (in.hdr.reserved1 || in.hdr.reserved2)
		return -EPROTONOSUPPORT;
	if (in.hdr.driver_id != RDMA_DRIVER_MLX5)
		return -EINVAL;
	m = method_find(in.hdr.object_id, in.hdr.method_id);
	if (!m) {
		trace(uverbs, unknown, in.hdr.object_id, in.hdr.method_id);
		log_info("uverbs: object 0x%x has no method 0x%x here", in.hdr.object_id,
			 in.hdr.method_id);
		return -EPROTONOSUPPORT;
	}
	req.user_attrs = ((struct ib_uverbs_ioctl_hdr *)arg)->attrs;
	if (in.hdr.num_attrs &&
	    !usermem_copy(in.attrs, req.user_attrs, in.hdr.num_attrs * sizeof(in.attrs[0])))
		return -EFAULT;
	/* A thread of the parent may have held the lock at the fork. */
	if (inherited && !m->inherited)
		return method_refused(m, -EIO, "inherited-by-fork");
	if (!inherited)
		pthread_mutex_lock(&f->lock);
	ret = parse_and_run(&req, m, in.attrs, in.hdr.num_attrs);
	drop_channels(&req);
	if (!inherited) {
		uclock_refresh(f);
		pthread_mutex_unlock(&f->lock);
	}
	return ret;
}

int uverbs_ioctl(struct ufile *f, unsigned long request, void *arg)
{
	return run_ioctl(f, request, arg, false);
}

int uverbs_ioctl_inherited(struct ufile *f, unsigned long request, void *arg)
{
	return run_ioctl(f, request, arg, true);
}
