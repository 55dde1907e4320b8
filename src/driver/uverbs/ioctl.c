// SPDX-License-Identifier: BSD-2-Clause
/*
 * Parser of RDMA_VERBS_IOCTL.  The program's header and attributes are copied once and only the
 * copy is looked at.  Which errno answers which mistake is part of the ABI, because libibverbs
 * probes with it: EPROTONOSUPPORT means "this kernel has no such method or attribute" and nothing
 * else.
 */
#include "driver/uverbs/uverbs.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>

#include "base/log.h"
#include "driver/uverbs/core/clock.h"
#include "usermem/usermem.h"

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
	/* Driver methods number their own attributes from 0x1000: there these are not UHW. */
	if (m->object < UVERBS_UDATA_DRIVER_DATA_FLAG && m->method < UVERBS_UDATA_DRIVER_DATA_FLAG)
		for (uint32_t i = 0; i < array_size(uhw_specs); i++)
			if (uhw_specs[i].id == id)
				return &uhw_specs[i];
	return NULL;
}

static int parse_data(struct ureq *req, struct uattr *a)
{
	const struct attr_spec *s = a->spec;

	if (a->len < s->min || (a->len > s->max && !s->zero_trailing))
		return -EINVAL;
	if (s->type == ATTR_PTR_IN && a->len > s->max && a->len > sizeof(a->data)) {
		struct ubuf b = {(void *)(uintptr_t)(a->data + s->max), a->len - s->max};
		uint8_t none;

		return ubuf_read(&b, &none, 0);
	}
	if (s == &uhw_specs[0])
		req->uhw_in = ureq_buf(req, s->id);
	else if (s == &uhw_specs[1])
		req->uhw_out = ureq_buf(req, s->id);
	return 0;
}

static int parse_attr(struct ureq *req, const struct method_spec *m,
		      const struct ib_uverbs_attr *in, size_t index)
{
	const struct attr_spec *s = find_spec(m, in->attr_id);
	struct uattr *a;
	int err = 0;

	if (!s)
		return in->flags & UVERBS_ATTR_F_MANDATORY ? -EPROTONOSUPPORT : 0;
	if (ureq_attr(req, in->attr_id) || req->nattrs == UREQ_ATTRS ||
	    in->attr_data.enum_data.reserved ||
	    (in->attr_data.enum_data.elem_id && s->type != ATTR_ENUM))
		return -EINVAL;
	a = &req->attrs[req->nattrs];
	*a = (struct uattr){.spec = s,
			    .user_index = index,
			    .len = in->len,
			    .choice = in->attr_data.enum_data.elem_id,
			    .data = in->data};

	switch ((enum attr_type)s->type) {
	case ATTR_PTR_IN:
	case ATTR_PTR_OUT:
	case ATTR_ENUM:
		req->nattrs++;
		return parse_data(req, a);
	case ATTR_IDR:
		if (in->len)
			return -EINVAL;
		a->obj = uobj_find(req->file, s->object, in->data, &err);
		break;
	case ATTR_FD:
		if (in->len)
			return -EINVAL;
		err = uchannel_find(req->file, s->object, in->data_s64, &a->channel);
		break;
	case ATTR_HANDLE:
	case ATTR_IDR_NEW:
	case ATTR_FD_NEW:
		if (in->len)
			return -EINVAL;
		break;
	}
	if (err == 0)
		req->nattrs++;
	return err;
}

static void drop_channels(struct ureq *req)
{
	for (uint32_t i = 0; i < req->nattrs; i++)
		if (req->attrs[i].spec->type == ATTR_FD)
			cdev_put(uchannel_cdev(req->attrs[i].channel));
}

static int parse_and_run(struct ureq *req, const struct method_spec *m,
			 const struct ib_uverbs_attr *attrs, uint32_t n)
{
	int ret;

	if (!m->before_context && !req->file->context)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		ret = parse_attr(req, m, &attrs[i], i);
		if (ret < 0)
			return ret;
	}
	for (uint32_t i = 0; i < m->nattrs; i++)
		if (!m->attrs[i].optional && !ureq_attr(req, m->attrs[i].id))
			return -EINVAL;
	ret = m->run(req);
	/* Reserved for the parser: the library would take the method for missing. */
	return ret == -EPROTONOSUPPORT ? -EINVAL : ret;
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
	if (!usermem_copy(&in.hdr, arg, sizeof(in.hdr)))
		return -EFAULT;
	if (in.hdr.num_attrs > ATTRS_MAX ||
	    in.hdr.length != sizeof(in.hdr) + in.hdr.num_attrs * sizeof(in.attrs[0]))
		return -EINVAL;
	if (in.hdr.reserved1 || in.hdr.reserved2)
		return -EPROTONOSUPPORT;
	if (in.hdr.driver_id != RDMA_DRIVER_MLX5)
		return -EINVAL;
	req.user_attrs = ((struct ib_uverbs_ioctl_hdr *)arg)->attrs;
	if (in.hdr.num_attrs &&
	    !usermem_copy(in.attrs, req.user_attrs, in.hdr.num_attrs * sizeof(in.attrs[0])))
		return -EFAULT;

	m = uverbs_method(in.hdr.object_id, in.hdr.method_id);
	if (!m) {
		log_info("uverbs: object 0x%x has no method 0x%x here", in.hdr.object_id,
			 in.hdr.method_id);
		return -EPROTONOSUPPORT;
	}
	/* A thread of the parent may have held the lock when the child came to be. */
	if (inherited && !m->inherited)
		return -EIO;
	if (!inherited)
		pthread_mutex_lock(&f->lock);
	ret = parse_and_run(&req, m, in.attrs, in.hdr.num_attrs);
	drop_channels(&req);
	if (!inherited) {
		uclock_refresh(f);
		pthread_mutex_unlock(&f->lock);
	}
	/* ENOSPC is libibverbs asking what there is, see uverbs/write.c. */
	if (ret < 0 && ret != -ENOSPC)
		log_debug("uverbs: %s: %s", m->name, strerror(-ret));
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
