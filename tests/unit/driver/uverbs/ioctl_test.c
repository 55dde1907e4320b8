/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parser of ioctl requests: which errno answers which mistake, on a file without a device;
 * handles of objects that are not there or of another type; a forked child.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "driver/uverbs/uverbs.h"
#include "uverbs_file.h"

static struct uverbs_file u;

static void test_headers(void)
{
	const struct ib_uverbs_ioctl_hdr good = {
		.length = sizeof(good),
		.object_id = UVERBS_OBJECT_DEVICE,
		.method_id = UVERBS_METHOD_INFO_HANDLES,
		.driver_id = RDMA_DRIVER_MLX5,
	};
	struct ib_uverbs_ioctl_hdr h = good;

	/* the header is good, but attributes are missing */
	CHECK(uverbs_ioctl(&u.file, RDMA_VERBS_IOCTL, &h) == -EINVAL);
	CHECK(uverbs_ioctl(&u.file, RDMA_VERBS_IOCTL + 1, &h) == -ENOTTY);
	h.length++;
	CHECK(uverbs_ioctl(&u.file, RDMA_VERBS_IOCTL, &h) == -EINVAL);
	h = good;
	h.num_attrs = UINT16_MAX;
	CHECK(uverbs_ioctl(&u.file, RDMA_VERBS_IOCTL, &h) == -EINVAL);
	h = good;
	h.reserved1 = 1;
	CHECK(uverbs_ioctl(&u.file, RDMA_VERBS_IOCTL, &h) == -EPROTONOSUPPORT);
	h = good;
	h.driver_id = RDMA_DRIVER_MLX4;
	CHECK(uverbs_ioctl(&u.file, RDMA_VERBS_IOCTL, &h) == -EINVAL);
	/* the errno that says "this kernel has no such method" */
	h = good;
	h.method_id = 0x777;
	CHECK(uverbs_ioctl(&u.file, RDMA_VERBS_IOCTL, &h) == -EPROTONOSUPPORT);
	h = good;
	h.object_id = 0x7777;
	CHECK(uverbs_ioctl(&u.file, RDMA_VERBS_IOCTL, &h) == -EPROTONOSUPPORT);
}

static const uint64_t pds = UVERBS_OBJECT_PD;
static uint32_t handles[4], total;

static int info_handles(struct ib_uverbs_attr *more, uint16_t n)
{
	struct ib_uverbs_attr attrs[8] = {
		attr_in(UVERBS_ATTR_INFO_OBJECT_ID, &pds, sizeof(pds)),
		attr_out(UVERBS_ATTR_INFO_HANDLES_LIST, handles, sizeof(handles)),
		attr_out(UVERBS_ATTR_INFO_TOTAL_HANDLES, &total, sizeof(total)),
	};
	int ret;

	total = 99;
	if (n)
		memcpy(attrs + 3, more, n * sizeof(*more));
	ret = uverbs_file_ioctl(&u, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES, attrs,
				(uint16_t)(3 + n));
	if (ret == 0)
		CHECK(attrs[2].flags & UVERBS_ATTR_F_VALID_OUTPUT &&
		      !(attrs[0].flags & UVERBS_ATTR_F_VALID_OUTPUT));
	return ret;
}

static void test_attributes(void)
{
	struct ib_uverbs_attr unknown = attr_in(0x55, &pds, 8);
	struct ib_uverbs_attr again = attr_in(UVERBS_ATTR_INFO_OBJECT_ID, &pds, 8);
	struct ib_uverbs_attr one = attr_in(UVERBS_ATTR_INFO_OBJECT_ID, &pds, 8);

	CHECK(!info_handles(NULL, 0) && total == 0);
	/* an attribute that we do not know fails the request only if it is mandatory */
	CHECK(info_handles(&unknown, 1) == -EPROTONOSUPPORT);
	unknown.flags = 0;
	CHECK(!info_handles(&unknown, 1));
	CHECK(info_handles(&again, 1) == -EINVAL);
	CHECK(uverbs_file_ioctl(&u, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES, &one, 1) ==
	      -EINVAL);
	one.len = 9;
	CHECK(uverbs_file_ioctl(&u, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES, &one, 1) ==
	      -EINVAL);
	/* before GET_CONTEXT */
	u.file.context = false;
	CHECK(info_handles(NULL, 0) == -EINVAL);
	u.file.context = true;
}

static void destroy_nothing(struct uobj *obj)
{
	(void)obj;
}

static const struct uobj_class pd_class = {.type = UOBJ_PD, .free = destroy_nothing};
static const struct uobj_class mw_class = {.type = UOBJ_MW, .free = destroy_nothing};

static int pd_destroy(uint64_t handle)
{
	struct ib_uverbs_attr a = attr_handle(UVERBS_ATTR_DESTROY_PD_HANDLE, handle);

	return uverbs_file_ioctl(&u, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, &a, 1);
}

static void test_objects(void)
{
	struct uobj *pd = calloc(1, sizeof(*pd)), *mw = calloc(1, sizeof(*mw));

	CHECK(pd && mw && !uobj_publish(&u.file, mw, &mw_class));
	CHECK(!uobj_publish(&u.file, pd, &pd_class));
	CHECK(!info_handles(NULL, 0) && total == 1 && handles[0] == pd->handle);
	CHECK(pd_destroy(mw->handle) == -EINVAL);
	CHECK(pd_destroy(77) == -ENOENT && pd_destroy(pd->handle | 1ull << 40) == -ENOENT);
	CHECK(pd_destroy(UINT64_MAX) == -EINVAL);
	pd->users = 1;
	CHECK(pd_destroy(pd->handle) == -EBUSY);
	pd->users = 0;
	CHECK(!pd_destroy(pd->handle));
	CHECK(!info_handles(NULL, 0) && total == 0);
	CHECK(!uobj_destroy(mw, NULL));
}

/* A child of fork(2) on its parent's file may look at the port, and no more; it takes no lock. */
static void test_inherited(void)
{
	static struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[2];
	} q;
	struct ib_uverbs_query_port_resp_ex resp;
	const uint64_t port = 1;

	q.hdr = (struct ib_uverbs_ioctl_hdr){
		.length = sizeof(q),
		.object_id = UVERBS_OBJECT_DEVICE,
		.method_id = UVERBS_METHOD_QUERY_PORT,
		.driver_id = RDMA_DRIVER_MLX5,
		.num_attrs = 2,
	};
	q.attrs[0] = attr_in(UVERBS_ATTR_QUERY_PORT_PORT_NUM, &port, sizeof(port));
	q.attrs[1] = attr_out(UVERBS_ATTR_QUERY_PORT_RESP, &resp, sizeof(resp));
	CHECK(!pthread_mutex_lock(&u.file.lock));
	CHECK(!uverbs_ioctl_inherited(&u.file, RDMA_VERBS_IOCTL, &q));
	q.hdr.method_id = UVERBS_METHOD_INFO_HANDLES;
	CHECK(uverbs_ioctl_inherited(&u.file, RDMA_VERBS_IOCTL, &q) == -EIO);
	pthread_mutex_unlock(&u.file.lock);
}

int main(void)
{
	uverbs_file_up(&u);
	test_headers();
	test_attributes();
	test_objects();
	test_inherited();
	uverbs_file_down(&u);
	return 0;
}
