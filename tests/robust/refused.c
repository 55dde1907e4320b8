// SPDX-License-Identifier: BSD-2-Clause
/*
 * refused DEVICE: calls that the kernel refuses, each with the errno that uverbs, ib_core and mlx5_ib give, and some that it
 * takes and a stricter reader would refuse.  Prints those that are answered otherwise.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs_device.h"

static struct device_port port;
static struct ibv_pd *pd, *empty;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_xrcd *xrcd;
static struct ibv_qp *rc, *ud;
static unsigned tried, wrong;

static void expect(const char *what, int got, int want)
{
	tried++;
	if (got == want)
		return;
	wrong++;
	printf("wrong: %s: %s, and the kernel gives %s\n", what, strerrorname_np(got),
	       strerrorname_np(want));
}

/* The errno of a call that gives an object, or 0. */
static int of(const void *object)
{
	return object ? 0 : errno;
}

/* Of one that gives -1 or an errno. */
static int ret_of(int ret)
{
	return ret < 0 ? errno : ret;
}

static struct ibv_qp *make_qp(enum ibv_qp_type type, struct ibv_srq *receives)
{
	struct ibv_qp_init_attr attr = {.qp_type = type,
					.send_cq = cq,
					.recv_cq = cq,
					.srq = receives,
					.cap = {4, receives ? 0 : 4, 1, receives ? 0 : 1, 0}};

	return ibv_create_qp(pd, &attr);
}

static struct ibv_srq *make_srq(uint32_t wrs)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = wrs, .max_sge = 1}};

	return ibv_create_srq(pd, &attr);
}

static struct ibv_srq *make_xrc_srq(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = cq,
	};

	return ibv_create_srq_ex(port.ctx, &attr);
}

/* ---- what is in use stays ---- */

static void in_use(void)
{
	static uint8_t memory[64];
	struct ibv_mr *mr = ibv_reg_mr(empty, memory, sizeof(memory), 0);
	struct ibv_qp *user = make_qp(IBV_QPT_RC, srq);
	struct ibv_srq *xrc = make_xrc_srq();

	if (!mr || !user || !xrc)
		device_die("users: %m");
	expect("dealloc_pd with an MR", ibv_dealloc_pd(empty), EBUSY);
	expect("dealloc_pd with a QP", ibv_dealloc_pd(pd), EBUSY);
	expect("destroy_cq of a QP", ibv_destroy_cq(cq), EBUSY);
	expect("destroy_srq of a QP", ibv_destroy_srq(srq), EBUSY);
	expect("close_xrcd with an SRQ", ibv_close_xrcd(xrcd), EBUSY);
	ibv_destroy_srq(xrc);
	ibv_destroy_qp(user);
	ibv_dereg_mr(mr);
	expect("dealloc_pd without users", ibv_dealloc_pd(empty), 0);
	empty = ibv_alloc_pd(port.ctx);
}

/* ---- completion queues, shared receive queues ---- */

/* ibv_create_srq(3): the limit is ibv_modify_srq's. */
static void limit_of_creation(void)
{
	struct ibv_srq_init_attr init = {
		.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 1u << 30}};
	struct ibv_srq *made = ibv_create_srq(pd, &init);
	struct ibv_srq_attr attr = {.srq_limit = 1};

	expect("create_srq with a limit above its size", of(made), 0);
	if (!made)
		return;
	if (ibv_query_srq(made, &attr))
		device_die("query_srq: %m");
	expect("query_srq of an SRQ made with a limit", attr.srq_limit ? EINVAL : 0, 0);
	ibv_destroy_srq(made);
}

static void overrun_ignored(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};
	struct ibv_cq_ex *made = ibv_create_cq_ex(port.ctx, &attr);

	expect("create_cq_ex that ignores overruns", of(made), 0);
	if (made)
		ibv_destroy_cq(ibv_cq_ex_to_cq(made));
}

static void queues(void)
{
	struct ibv_device_attr device;
	struct ibv_srq_attr limit = {.srq_limit = 1u << 30};
	struct ibv_srq_attr size = {.max_wr = 8};
	struct ibv_modify_cq_attr slow = {.attr_mask = IBV_CQ_ATTR_MODERATE,
					  .moderate = {.cq_period = 0x1000, .cq_count = 1}};

	if (ibv_query_device(port.ctx, &device))
		device_die("the device: %m");
	expect("create_cq of no entries", of(ibv_create_cq(port.ctx, 0, NULL, NULL, 0)), EINVAL);
	expect("create_cq of too many entries",
	       of(ibv_create_cq(port.ctx, device.max_cqe + 1, NULL, NULL, 0)), EINVAL);
	expect("create_cq of a vector that is not there",
	       of(ibv_create_cq(port.ctx, 4, NULL, NULL, port.ctx->num_comp_vectors)), EINVAL);
	expect("resize_cq to nothing", ret_of(ibv_resize_cq(cq, 0)), EINVAL);
	expect("resize_cq to too many entries", ret_of(ibv_resize_cq(cq, device.max_cqe + 1)),
	       EINVAL);
	expect("modify_cq by too long a period", ret_of(ibv_modify_cq(cq, &slow)), EINVAL);
	expect("create_srq of too many entries", of(make_srq((uint32_t)device.max_srq_wr + 1)),
	       EINVAL);
	expect("modify_srq to a limit above its size",
	       ret_of(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT)), EINVAL);
	expect("modify_srq to another size", ret_of(ibv_modify_srq(srq, &size, IBV_SRQ_MAX_WR)),
	       EINVAL);
	limit_of_creation();
	overrun_ignored();
}

/* ---- steering ---- */

static int create_flow(struct ibv_qp *raw, const void *spec, size_t bytes, uint8_t at)
{
	struct {
		struct ibv_flow_attr attr;
		uint8_t spec[sizeof(struct ibv_flow_spec)]; /* right behind it */
	} rule = {
		.attr = {.type = IBV_FLOW_ATTR_NORMAL,
			 .size = (uint16_t)(sizeof(rule.attr) + bytes),
			 .num_of_specs = 1,
			 .port = at},
	};
	struct ibv_flow *made;
	int err;

	memcpy(rule.spec, spec, bytes);
	made = ibv_create_flow(raw, &rule.attr);
	err = of(made);
	if (made)
		ibv_destroy_flow(made);
	return err;
}

/* Filters of each layer, of which the one of IPv4 is shorter than the kernel's. */
static void flow_rules(void)
{
	static struct ibv_flow_spec_eth eth = {IBV_FLOW_SPEC_ETH, sizeof(eth), {{2}}, {{0xff}}};
	static struct ibv_flow_spec_ipv4 ipv4 = {
		IBV_FLOW_SPEC_IPV4, sizeof(ipv4), {.dst_ip = 1}, {.dst_ip = UINT32_MAX}};
	static struct ibv_flow_spec_ipv4_ext whole = {
		IBV_FLOW_SPEC_IPV4_EXT, sizeof(whole), {.proto = 17}, {.proto = 0xff}};
	static struct ibv_flow_spec_ipv6 ipv6 = {
		IBV_FLOW_SPEC_IPV6, sizeof(ipv6), {.next_hdr = 17}, {.next_hdr = 0xff}};
	static struct ibv_flow_spec_tcp_udp udp = {
		IBV_FLOW_SPEC_UDP, sizeof(udp), {.dst_port = 1}, {.dst_port = 0xffff}};
	struct ibv_qp *raw;

	if (!port.ethernet)
		return;
	raw = make_qp(IBV_QPT_RAW_PACKET, NULL);
	if (!raw)
		device_die("a raw packet QP: %m");
	expect("create_flow by MAC", create_flow(raw, &eth, sizeof(eth), 1), 0);
	expect("create_flow at port 0", create_flow(raw, &eth, sizeof(eth), 0), 0);
	expect("create_flow at port 200", create_flow(raw, &eth, sizeof(eth), 200), EINVAL);
	expect("create_flow by IPv4", create_flow(raw, &ipv4, sizeof(ipv4), 1), 0);
	expect("create_flow by all of IPv4", create_flow(raw, &whole, sizeof(whole), 1), 0);
	expect("create_flow by IPv6", create_flow(raw, &ipv6, sizeof(ipv6), 1), 0);
	expect("create_flow by UDP", create_flow(raw, &udp, sizeof(udp), 1), 0);
	ibv_destroy_qp(raw);
}

/* ---- queue pairs ---- */

static void queue_pairs(void)
{
	struct ibv_srq *xrc = make_xrc_srq();
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

	expect("create_qp on an SRQ of XRC", of(make_qp(IBV_QPT_RC, xrc)), EINVAL);
	ibv_destroy_srq(xrc);
	attr.port_num = 0;
	expect("modify_qp to port 0", ret_of(ibv_modify_qp(rc, &attr, init)), EINVAL);
	attr.port_num = 9;
	expect("modify_qp to port 9", ret_of(ibv_modify_qp(rc, &attr, init)), EINVAL);
	attr.port_num = 1;
	attr.pkey_index = 0x7fff;
	expect("modify_qp to no P_Key", ret_of(ibv_modify_qp(rc, &attr, init)), EINVAL);
	attr.pkey_index = 0;
	attr.qp_state = (enum ibv_qp_state)8;
	expect("modify_qp to no state", ret_of(ibv_modify_qp(rc, &attr, init)), EINVAL);
	attr.qp_state = IBV_QPS_INIT;
	expect("modify_qp with an unknown attribute",
	       ret_of(ibv_modify_qp(rc, &attr, init | 1 << 22)), EOPNOTSUPP);
}

/* The device has no packet pacing, and says so. */
static void pacing(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .rate_limit = 1000};
	const struct ibv_packet_pacing_caps none = {0};
	struct ibv_device_attr_ex device;
	struct ibv_qp *raw;

	expect("query_device_ex", ret_of(ibv_query_device_ex(port.ctx, NULL, &device)), 0);
	expect("packet_pacing_caps",
	       memcmp(&device.packet_pacing_caps, &none, sizeof(none)) ? EINVAL : 0, 0);
	expect("modify_qp of RC to a rate",
	       ret_of(ibv_modify_qp(rc, &attr,
				    IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
					    IBV_QP_ACCESS_FLAGS | IBV_QP_RATE_LIMIT)),
	       EINVAL);
	if (!port.ethernet)
		return;
	raw = make_qp(IBV_QPT_RAW_PACKET, NULL);
	if (!raw || ibv_modify_qp(raw, &attr, IBV_QP_STATE | IBV_QP_PORT))
		device_die("a raw packet QP: %m");
	attr.qp_state = IBV_QPS_RTR;
	expect("modify_qp to RTR", ret_of(ibv_modify_qp(raw, &attr, IBV_QP_STATE)), 0);
	attr.qp_state = IBV_QPS_RTS;
	expect("modify_qp to a rate",
	       ret_of(ibv_modify_qp(raw, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT)), EOPNOTSUPP);
	attr.rate_limit = 0;
	expect("modify_qp to no rate",
	       ret_of(ibv_modify_qp(raw, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT)), 0);
	ibv_destroy_qp(raw);
}

/* A Q_Key of a privileged range, of a program that has no such right. */
static void privileged(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x80010000};
	const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	uid_t was = geteuid();

	if (was == 0 && seteuid(65534))
		return;
	expect("modify_qp to a privileged Q_Key", ret_of(ibv_modify_qp(ud, &attr, init)), EPERM);
	if (seteuid(was))
		device_die("seteuid: %m");
}

/* ---- memory ---- */

static void memory_regions(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	if (memory == MAP_FAILED || mprotect(memory + page, page, PROT_READ))
		device_die("memory: %m");
	expect("reg_mr with remote write and no local write",
	       of(ibv_reg_mr(pd, memory, page, IBV_ACCESS_REMOTE_WRITE)), EINVAL);
	expect("reg_mr with remote atomic and no local write",
	       of(ibv_reg_mr(pd, memory, page, IBV_ACCESS_REMOTE_ATOMIC)), EINVAL);
	expect("reg_mr with an unknown right",
	       of(ibv_reg_mr(pd, memory, page, IBV_ACCESS_LOCAL_WRITE | 1 << 18)), EINVAL);
	expect("reg_mr at an address of another page offset",
	       of(ibv_reg_mr_iova(pd, memory, page, 8, IBV_ACCESS_LOCAL_WRITE)), EINVAL);
	expect("reg_mr beyond the address space",
	       of(ibv_reg_mr(pd, memory, SIZE_MAX - page, IBV_ACCESS_LOCAL_WRITE)), EINVAL);
	expect("reg_mr for writing of memory for reading",
	       of(ibv_reg_mr(pd, memory + page, page, IBV_ACCESS_LOCAL_WRITE)), EFAULT);
	expect("reg_mr of no bytes where a page begins",
	       of(ibv_reg_mr(pd, memory, 0, IBV_ACCESS_LOCAL_WRITE)), EINVAL);
	expect("the same on demand",
	       of(ibv_reg_mr(pd, memory, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND)),
	       EINVAL);
	munmap(memory + page, page);
	expect("reg_mr of memory that is not mapped",
	       of(ibv_reg_mr(pd, memory, 2 * page, IBV_ACCESS_LOCAL_WRITE)), EFAULT);
	mr = ibv_reg_mr(pd, memory, page, IBV_ACCESS_LOCAL_WRITE);
	expect("reg_mr", of(mr), 0);
	expect("dereg_mr", mr ? ibv_dereg_mr(mr) : 0, 0);
	munmap(memory, page);
}

/* ---- addresses and groups ---- */

static int create_ah(struct ibv_ah_attr attr)
{
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);
	int err = of(ah);

	if (ah)
		ibv_destroy_ah(ah);
	return err;
}

static void addresses(void)
{
	struct device_address self = {.gid = port.gid, .lid = port.attr.lid};
	struct ibv_ah_attr good = device_ah_attr(&port, &self), attr;

	/* on InfiniBand the library asks nobody */
	if (!port.ethernet)
		return;
	expect("create_ah", create_ah(good), 0);
	attr = good;
	attr.grh.sgid_index = 200;
	expect("create_ah with an empty sgid_index", create_ah(attr), EINVAL);
	attr = good;
	attr.is_global = 0;
	expect("create_ah without a GRH", create_ah(attr), EINVAL);
	attr = good;
	attr.static_rate = 1;
	expect("create_ah with no rate", create_ah(attr), EINVAL);
}

static void groups(void)
{
	const union ibv_gid gid = {.raw = {0xff, 0x0e, [10] = 0xff, 0xff, 239, 1, 2, 3}};
	const union ibv_gid one = {.raw = {0xfe, 0x80, [15] = 1}};
	uint16_t lid = port.ethernet ? 0 : 0xc003;

	expect("attach_mcast of an RC QP", ret_of(ibv_attach_mcast(rc, &gid, lid)), EINVAL);
	expect("attach_mcast to an address of one port", ret_of(ibv_attach_mcast(ud, &one, lid)),
	       EINVAL);
	if (!port.ethernet)
		expect("attach_mcast by a LID of one port", ret_of(ibv_attach_mcast(ud, &gid, 5)),
		       EINVAL);
	expect("detach_mcast of a QP that is not attached", ret_of(ibv_detach_mcast(ud, &gid, lid)),
	       EINVAL);
	expect("attach_mcast", ret_of(ibv_attach_mcast(ud, &gid, lid)), 0);
	expect("attach_mcast again", ret_of(ibv_attach_mcast(ud, &gid, lid)), 0);
	expect("detach_mcast by another LID", ret_of(ibv_detach_mcast(ud, &gid, lid + 1)), EINVAL);
	expect("destroy_qp of a member", ibv_destroy_qp(ud), EBUSY);
	expect("detach_mcast", ret_of(ibv_detach_mcast(ud, &gid, lid)), 0);
	expect("detach_mcast again", ret_of(ibv_detach_mcast(ud, &gid, lid)), EINVAL);
}

/* ---- domains and ports ---- */

static int open_xrcd(int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};
	struct ibv_xrcd *made = ibv_open_xrcd(port.ctx, &attr);
	int err = of(made);

	if (made)
		ibv_close_xrcd(made);
	return err;
}

static void others(const char *file)
{
	struct ibv_port_attr attr;
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	expect("open_xrcd of no descriptor", open_xrcd(1000000, O_CREAT), EBADF);
	expect("open_xrcd of a domain that is not there", open_xrcd(fd, 0), EAGAIN);
	expect("open_xrcd", open_xrcd(fd, O_CREAT | O_EXCL), 0);
	expect("query_port of port 0", ret_of(ibv_query_port(port.ctx, 0, &attr)), EINVAL);
	expect("query_port of port 200", ret_of(ibv_query_port(port.ctx, 200, &attr)), EINVAL);
	close(fd);
}

int main(int argc, char **argv)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	if (argc != 2)
		device_die("usage: refused DEVICE");
	setvbuf(stdout, NULL, _IOLBF, 0);
	device_port_open(&port, argv[1], -1);
	pd = ibv_alloc_pd(port.ctx);
	empty = ibv_alloc_pd(port.ctx);
	cq = ibv_create_cq(port.ctx, 16, NULL, NULL, 0);
	xrcd = ibv_open_xrcd(port.ctx, &domain);
	srq = make_srq(4);
	rc = make_qp(IBV_QPT_RC, NULL);
	ud = make_qp(IBV_QPT_UD, NULL);
	if (!pd || !empty || !cq || !xrcd || !srq || !rc || !ud)
		device_die("objects: %m");
	in_use();
	queues();
	flow_rules();
	queue_pairs();
	pacing();
	privileged();
	memory_regions();
	addresses();
	groups();
	others(argv[0]);
	printf("%u calls, %u answered otherwise\n", tried, wrong);
	return wrong != 0;
}
