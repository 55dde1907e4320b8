// SPDX-License-Identifier: BSD-2-Clause
/*
 * The small families of verbs objects, by the commands that make them: protection domains, address
 * handles and where they lead, XRC domains that files stand for.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <string.h>
#include <unistd.h>

#include "adapter_device.h"
#include "driver/uverbs/objects/objects.h"
#include "driver/uverbs/uverbs.h"
#include "test_fault.h"
#include "test_subnet.h"
#include "uverbs_file.h"

static struct test_device device;
static struct uverbs_file u;

/* The first eight bytes of each command that answers are the place of the answer. */
static int run_command(uint32_t number, const void *cmd, size_t bytes, void *resp,
		       size_t resp_bytes)
{
	struct {
		struct ib_uverbs_cmd_hdr head;
		uint64_t cmd[16];
	} in = {.head = {.command = number}};
	uint64_t at = (uintptr_t)resp;
	size_t all = sizeof(in.head) + bytes;
	ssize_t n;

	CHECK(bytes <= sizeof(in.cmd) && bytes % 4 == 0 && resp_bytes % 4 == 0);
	in.head.in_words = (uint16_t)(all / 4);
	in.head.out_words = (uint16_t)(resp_bytes / 4);
	memcpy(in.cmd, cmd, bytes);
	if (resp)
		memcpy(in.cmd, &at, sizeof(at));
	n = uverbs_write(&u.file, &in, all);
	CHECK(n < 0 || n == (ssize_t)all);
	return n < 0 ? (int)n : 0;
}

static unsigned many_objects(void)
{
	unsigned n = 0;

	for (uint32_t type = 0; type < UOBJ_TYPES; type++)
		for (uint32_t handle = 0; handle < 64; handle++) {
			int ret;

			n += uobj_find(&u.file, (enum uobj_type)type, handle, &ret) != NULL;
		}
	return n;
}

/* ---- protection domains ---- */

struct pd_answer {
	struct ib_uverbs_alloc_pd_resp core;
	struct mlx5_ib_alloc_pd_resp mlx5;
};

static int pd_make(struct pd_answer *out)
{
	const struct ib_uverbs_alloc_pd cmd = {0};

	return run_command(IB_USER_VERBS_CMD_ALLOC_PD, &cmd, sizeof(cmd), out, sizeof(*out));
}

static int pd_end(uint32_t handle)
{
	const struct ib_uverbs_dealloc_pd cmd = {.pd_handle = handle};

	return run_command(IB_USER_VERBS_CMD_DEALLOC_PD, &cmd, sizeof(cmd), NULL, 0);
}

static void test_pds(void)
{
	struct pd_answer a, b;

	CHECK(!pd_make(&a) && !pd_make(&b));
	CHECK(a.core.pd_handle != b.core.pd_handle && a.mlx5.pdn != b.mlx5.pdn);
	CHECK(!pd_end(a.core.pd_handle) && pd_end(a.core.pd_handle) == -ENOENT);
	CHECK(!pd_end(b.core.pd_handle) && !many_objects());
	/* an answer that cannot be given leaves nothing behind */
	CHECK(pd_make((struct pd_answer *)16) == -EFAULT && !many_objects());
}

/* ---- address handles ---- */

static struct ib_uverbs_ah_attr ah_attr(const uint8_t gid[16])
{
	struct ib_uverbs_ah_attr attr = {.is_global = 1, .port_num = 1};

	memcpy(attr.grh.dgid, gid, 16);
	return attr;
}

static void expect_mac(const uint8_t gid[16], const uint8_t mac[6])
{
	const struct ib_uverbs_ah_attr attr = ah_attr(gid);
	struct ib_ah out;

	CHECK(!uah_decode(&u.file, &attr, &out) && !uah_resolve(&u.file, &out));
	CHECK(!memcmp(out.dmac, mac, 6) && !memcmp(out.dgid.raw, gid, 16) && out.is_global);
}

static int resolved(const uint8_t gid[16])
{
	const struct ib_uverbs_ah_attr attr = ah_attr(gid);
	struct ib_ah out;

	CHECK(!uah_decode(&u.file, &attr, &out));
	return uah_resolve(&u.file, &out);
}

static void test_macs(void)
{
	static const uint8_t of_nobody[16] = {0xfe, 0x80, [15] = 77},
			     of_another[16] = {0x20, 0x01, [15] = 77},
			     ipv4[16] = {[10] = 0xff, 0xff, 10, 1, 2, 3};
	union ib_gid known = test_subnet_gid_of(&device.own_subnet, 1);
	uint32_t row = u.file.hca->port_row;

	/* RFC 1112, 6.4: the lower 23 bits; RFC 2464, 7: the last four bytes */
	expect_mac((const uint8_t[16]){0xff, 0x0e, [10] = 0xff, 0xff, 239, 0x81, 2, 3},
		   (const uint8_t[6]){0x01, 0x00, 0x5e, 0x01, 2, 3});
	expect_mac((const uint8_t[16]){0xff, 0x02, [12] = 1, 2, 3, 4},
		   (const uint8_t[6]){0x33, 0x33, 1, 2, 3, 4});
	/* RFC 4291, appendix A; RoCE v1 asks no neighbour */
	test_subnet_gid(&device.own_subnet, row, (uint8_t)(row + 1), GID_IB_ROCE_V1);
	expect_mac((const uint8_t[16]){0xfe, 0x80, [8] = 0x02, 1, 2, 0xff, 0xfe, 3, 4, 5},
		   (const uint8_t[6]){0x00, 1, 2, 3, 4, 5});
	expect_mac(known.raw, device.own_subnet.ports[1].mac);
	test_subnet_gid(&device.own_subnet, row, (uint8_t)(row + 1), GID_ROCE_V2);
	/* in the own network, in another one, and an address of the other kind */
	CHECK(resolved(of_nobody) == UREQ_AWAITS);
	CHECK(resolved(of_another) == -ENETUNREACH);
	CHECK(resolved(ipv4) == -EINVAL);
}

static void test_wrong_addresses(void)
{
	union ib_gid known = test_subnet_gid_of(&device.own_subnet, 1);
	struct ib_uverbs_ah_attr attr = ah_attr(known.raw);
	struct ib_ah out;

	attr.grh.flow_label = 0xfff12345;
	attr.sl = 3;
	CHECK(!uah_decode(&u.file, &attr, &out) && out.flow_label == 0x12345 && out.sl == 3);
	attr.port_num = 0;
	CHECK(uah_decode(&u.file, &attr, &out) == -EINVAL);
	attr.port_num = 2;
	CHECK(uah_decode(&u.file, &attr, &out) == -EINVAL);
	attr.port_num = 1;
	attr.grh.sgid_index = 1; /* empty */
	CHECK(uah_decode(&u.file, &attr, &out) == -EINVAL);
	attr.grh.sgid_index = 255;
	CHECK(uah_decode(&u.file, &attr, &out) == -EINVAL);
	attr.grh.sgid_index = 0;
	attr.is_global = 0; /* no address at all on Ethernet */
	CHECK(uah_decode(&u.file, &attr, &out) == -EINVAL);
}

static void test_ahs(void)
{
	struct {
		struct ib_uverbs_create_ah_resp core;
		struct mlx5_ib_create_ah_resp mlx5;
	} made;
	struct ib_uverbs_create_ah cmd = {
		.attr = ah_attr((const uint8_t[16]){0xff, 0x02, [15] = 9})};
	struct ib_uverbs_destroy_ah end;
	struct pd_answer pd;

	CHECK(!pd_make(&pd));
	cmd.pd_handle = pd.core.pd_handle + 1;
	CHECK(run_command(IB_USER_VERBS_CMD_CREATE_AH, &cmd, sizeof(cmd), &made, sizeof(made)) ==
	      -ENOENT);
	cmd.pd_handle = pd.core.pd_handle;
	CHECK(!run_command(IB_USER_VERBS_CMD_CREATE_AH, &cmd, sizeof(cmd), &made, sizeof(made)));
	CHECK(!memcmp(made.mlx5.dmac, (const uint8_t[6]){0x33, 0x33, 0, 0, 0, 9}, 6));
	CHECK(pd_end(pd.core.pd_handle) == -EBUSY);
	end = (struct ib_uverbs_destroy_ah){.ah_handle = made.core.ah_handle};
	CHECK(!run_command(IB_USER_VERBS_CMD_DESTROY_AH, &end, sizeof(end), NULL, 0));
	/* one that could not be told of holds its domain no longer */
	CHECK(run_command(IB_USER_VERBS_CMD_CREATE_AH, &cmd, sizeof(cmd), (void *)16,
			  sizeof(made)) == -EFAULT);
	CHECK(!pd_end(pd.core.pd_handle) && !many_objects());
}

struct lost_ah {
	struct ib_uverbs_create_ah cmd;
	int ret;
	_Atomic(bool) over;
};

static void *ah_of_nobody(void *arg)
{
	struct lost_ah *l = arg;
	struct ib_uverbs_create_ah_resp resp;

	l->ret = run_command(IB_USER_VERBS_CMD_CREATE_AH, &l->cmd, sizeof(l->cmd), &resp,
			     sizeof(resp));
	atomic_store(&l->over, true);
	return NULL;
}

/* While one thread waits for a neighbour, others use the file, and may take the domain away. */
static void test_wait(bool takes_away)
{
	struct lost_ah lost = {.cmd.attr = ah_attr((const uint8_t[16]){0xfe, 0x80, [15] = 77})};
	struct pd_answer pd, other;
	pthread_t thread;

	CHECK(!pd_make(&pd));
	lost.cmd.pd_handle = pd.core.pd_handle;
	CHECK(!pthread_create(&thread, NULL, ah_of_nobody, &lost));
	usleep(200000);
	CHECK(!pd_make(&other) && !pd_end(other.core.pd_handle));
	if (takes_away)
		CHECK(!pd_end(pd.core.pd_handle));
	CHECK(!atomic_load(&lost.over));
	pthread_join(thread, NULL);
	CHECK(lost.ret == (takes_away ? -ENOENT : -ETIMEDOUT));
	CHECK(takes_away || !pd_end(pd.core.pd_handle));
	CHECK(!many_objects());
}

/* ---- XRC domains ---- */

static int xrcd_open(int fd, int flags, uint32_t *handle)
{
	const struct ib_uverbs_open_xrcd cmd = {.fd = (uint32_t)fd, .oflags = (uint32_t)flags};
	struct ib_uverbs_open_xrcd_resp resp;
	int ret = run_command(IB_USER_VERBS_CMD_OPEN_XRCD, &cmd, sizeof(cmd), &resp, sizeof(resp));

	*handle = resp.xrcd_handle;
	return ret;
}

static int xrcd_close(uint32_t handle)
{
	const struct ib_uverbs_close_xrcd cmd = {.xrcd_handle = handle};

	return run_command(IB_USER_VERBS_CMD_CLOSE_XRCD, &cmd, sizeof(cmd), NULL, 0);
}

static void test_xrcds(void)
{
	int file = memfd_create("xrc", MFD_CLOEXEC), again;
	uint32_t a, b, c;

	CHECK(file >= 0 && (again = dup(file)) >= 0);
	/* without a file each is its own */
	CHECK(!xrcd_open(-1, 0, &a) && !xrcd_open(-1, 0, &b) && a != b);
	CHECK(!xrcd_close(a) && !xrcd_close(b) && xrcd_close(a) == -ENOENT);
	CHECK(!u.hca.xrc_domains);
	/* a file stands for one, whatever descriptor names it */
	CHECK(xrcd_open(9999, O_CREAT, &a) == -EBADF);
	CHECK(xrcd_open(file, 0, &a) == -EAGAIN);
	CHECK(!xrcd_open(file, O_CREAT, &a) && u.hca.xrc_domains);
	CHECK(xrcd_open(again, O_CREAT | O_EXCL, &b) == -EINVAL);
	CHECK(!xrcd_open(again, O_CREAT, &b) && !xrcd_open(file, 0, &c));
	/* until the last has closed it */
	CHECK(!xrcd_close(a) && !xrcd_close(c) && u.hca.xrc_domains);
	CHECK(!xrcd_open(file, 0, &a) && !xrcd_close(a));
	CHECK(!xrcd_close(b) && !u.hca.xrc_domains);
	CHECK(xrcd_open(file, 0, &a) == -EAGAIN && !many_objects());
	close(file);
	close(again);
}

int main(void)
{
	test_fault_catch();
	device_up(&device);
	uverbs_file_up(&u);
	u.process.subnet = device.subnet;
	u.hca.adapter = device.adapter[1];
	u.hca.wire = device.wire[1];
	u.hca.port_row = 1; /* the Ethernet port */
	u.hca.port = &device.subnet->ports[1];
	u.hca.node = subnet_node_of(device.subnet, 1);
	pthread_mutex_init(&u.hca.xrc_lock, NULL);
	memcpy(device.subnet->ports[1].mac, (const uint8_t[6]){2, 3, 4, 5, 6, 7}, 6);
	test_pds();
	test_macs();
	test_wrong_addresses();
	test_ahs();
	test_wait(false);
	test_wait(true);
	test_xrcds();
	uverbs_file_down(&u);
	device_down(&device);
	return 0;
}
