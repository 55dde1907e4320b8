// SPDX-License-Identifier: BSD-2-Clause
/* XRC domains and the target QPs in them. */
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* ---- target QPs of a domain ---- */

/* A target without memory for its number is not made, nor a domain without memory for its inode. */
#define HASH_NONFATAL_OOM 1
#include <utlist.h>

#include "driver/uverbs/objects/xrc.h"

/* Upcall: passes an event of the QP to each of its handles. */
static void target_async(void *user, enum ib_event event)
{
	struct xrc_target *t = user;

	spin_lock(&t->lock);
	for (struct uqp *h = t->handles; h; h = h->next_handle)
		uobj_async(&h->uobj, event);
	spin_unlock(&t->lock);
}

static void add_handle(struct xrc_target *t, struct uqp *handle)
{
	handle->target = t;
	handle->qp = t->qp;
	spin_lock(&t->lock);
	DL_PREPEND2(t->handles, handle, prev_handle, next_handle);
	spin_unlock(&t->lock);
}

/* Returns true if it was the last one. */
static bool remove_handle(struct xrc_target *t, struct uqp *handle)
{
	bool last;

	spin_lock(&t->lock);
	DL_DELETE2(t->handles, handle, prev_handle, next_handle);
	last = !t->handles;
	spin_unlock(&t->lock);
	return last;
}

int xrc_target_create(struct uqp *handle, struct hca *hca, struct uxrcd *xrcd,
		      struct qp_create_attr *attr)
{
	struct xrc_target *t = calloc(1, sizeof(*t));
	bool listed;
	int ret;

	if (!t)
		return -ENOMEM;
	t->domain = xrcd->domain;
	attr->xrcdn = t->domain->xrcdn;
	attr->async = target_async;
	attr->user = t;
	ret = qp_create(hca->adapter, attr, &t->qp);
	if (ret < 0) {
		free(t);
		return ret;
	}
	t->qpn = qp_number(t->qp);
	pthread_mutex_lock(&hca->xrc_lock);
	HASH_ADD(hh, t->domain->targets, qpn, sizeof(t->qpn), t);
	listed = t->hh.tbl != NULL;
	if (listed)
		add_handle(t, handle);
	pthread_mutex_unlock(&hca->xrc_lock);
	if (listed)
		return 0;
	qp_destroy(t->qp);
	free(t);
	return -ENOMEM;
}

int xrc_target_open(struct uqp *handle, struct hca *hca, struct uxrcd *xrcd, uint32_t qpn)
{
	struct xrc_target *t;

	pthread_mutex_lock(&hca->xrc_lock);
	HASH_FIND(hh, xrcd->domain->targets, &qpn, sizeof(qpn), t);
	if (t)
		add_handle(t, handle);
	pthread_mutex_unlock(&hca->xrc_lock);
	return t ? 0 : -EINVAL;
}

void xrc_target_close(struct uqp *handle, struct hca *hca)
{
	struct xrc_target *t = handle->target;
	bool last;

	pthread_mutex_lock(&hca->xrc_lock);
	last = remove_handle(t, handle);
	if (last)
		HASH_DEL(t->domain->targets, t);
	pthread_mutex_unlock(&hca->xrc_lock);
	if (!last)
		return;
	qp_destroy(t->qp);
	free(t);
}

/* ---- opening and closing of domains ---- */

#define NO_FD UINT32_MAX

static unsigned __int128 inode_of(const struct stat *file)
{
	return (unsigned __int128)file->st_dev << 64 | file->st_ino;
}

static struct xrc_domain *xrc_domain_find(struct hca *hca, const struct stat *file)
{
	const unsigned __int128 inode = inode_of(file);
	struct xrc_domain *d;

	HASH_FIND(hh, hca->xrc_domains, &inode, sizeof(inode), d);
	return d;
}

static struct xrc_domain *xrc_domain_create(struct hca *hca, int fd, const struct stat *file)
{
	struct xrc_domain *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->pin = MAP_FAILED;
	if (file) {
		d->shared = true;
		d->inode = inode_of(file);
		HASH_ADD(hh, hca->xrc_domains, inode, sizeof(d->inode), d);
		if (!d->hh.tbl) {
			free(d);
			return NULL;
		}
		/* A mapping, because the program could close a descriptor of ours.  What cannot be
		 * mapped is a device or a directory, and those stay. */
		d->pin = mmap(NULL, UVERBS_PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	d->xrcdn = xrcd_alloc(hca->adapter);
	return d;
}

/* Errors are those of the kernel's ib_uverbs_open_xrcd. */
static int xrc_domain_open(struct hca *hca, const struct ib_uverbs_open_xrcd *cmd,
			   struct xrc_domain **out)
{
	struct stat file;
	bool by_inode = cmd->fd != NO_FD;
	struct xrc_domain *d = NULL;
	int ret = 0;

	if (by_inode && fstat((int)cmd->fd, &file) < 0)
		return -EBADF;
	pthread_mutex_lock(&hca->xrc_lock);
	if (by_inode) {
		d = xrc_domain_find(hca, &file);
		if (!d && !(cmd->oflags & O_CREAT))
			ret = -EAGAIN;
		else if (d && cmd->oflags & O_EXCL)
			ret = -EINVAL;
	}
	if (!ret && !d) {
		d = xrc_domain_create(hca, (int)cmd->fd, by_inode ? &file : NULL);
		if (!d)
			ret = -ENOMEM;
	}
	if (!ret) {
		d->openers++;
		*out = d;
	}
	pthread_mutex_unlock(&hca->xrc_lock);
	return ret;
}

static void xrc_domain_close(struct hca *hca, struct xrc_domain *d)
{
	bool last;

	pthread_mutex_lock(&hca->xrc_lock);
	last = !--d->openers;
	if (last && d->shared)
		HASH_DEL(hca->xrc_domains, d);
	pthread_mutex_unlock(&hca->xrc_lock);
	if (!last)
		return;
	if (d->pin != MAP_FAILED)
		munmap(d->pin, UVERBS_PAGE);
	xrcd_free(hca->adapter, d->xrcdn);
	free(d);
}

static void uxrcd_free(struct uobj *obj)
{
	xrc_domain_close(obj->file->hca, container_of(obj, struct uxrcd, uobj)->domain);
}

static const struct uobj_class uxrcd_class = {
	.type = UOBJ_XRCD,
	.free = uxrcd_free,
};

static int cmd_open_xrcd(struct ureq *req)
{
	struct hca *hca = req->file->hca;
	struct ib_uverbs_open_xrcd cmd;
	struct ib_uverbs_open_xrcd_resp resp;
	struct uxrcd *xrcd;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return -ENOMEM;
	ret = xrc_domain_open(hca, &cmd, &xrcd->domain);
	if (ret < 0)
		goto free_xrcd;
	ret = uobj_publish(req->file, &xrcd->uobj, &uxrcd_class);
	if (ret < 0)
		goto close_domain;
	resp.xrcd_handle = xrcd->uobj.handle;
	ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0)
		(void)uobj_destroy(&xrcd->uobj, NULL);
	return ret;

close_domain:
	xrc_domain_close(hca, xrcd->domain);
free_xrcd:
	free(xrcd);
	return ret;
}

uint32_t uxrcd_number(const struct uxrcd *xrcd)
{
	return xrcd->domain->xrcdn;
}

static int cmd_close_xrcd(struct ureq *req)
{
	struct ib_uverbs_close_xrcd cmd;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	return ret < 0 ? ret : ureq_destroy(req, UOBJ_XRCD, cmd.xrcd_handle, NULL);
}

/* ---- what requests reach this family ---- */

static const struct attr_spec xrcd_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_XRCD_HANDLE, IDR(UOBJ_XRCD)},
};

static const struct method_spec methods[] = {
	METHOD(UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY, method_destroy, xrcd_destroy_attrs),
};

static const struct command_spec commands[] = {
	CMD_RESP_UHW(OPEN_XRCD, cmd_open_xrcd, ib_uverbs_open_xrcd, ib_uverbs_open_xrcd_resp),
	CMD(CLOSE_XRCD, cmd_close_xrcd, ib_uverbs_close_xrcd),
};

const struct uverbs_family uxrcd_family = {METHODS(methods), COMMANDS(commands)};
