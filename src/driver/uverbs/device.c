// SPDX-License-Identifier: BSD-2-Clause
/* What the device and its port say of themselves. */
#include <errno.h>
#include <net/if.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <string.h>

#include "adapter/ste/icm.h"
#include "base/endian.h"
#include "driver/uverbs/core/file.h"
#include "driver/uverbs/uverbs.h"
#include "fabric/client/client.h"
#include "prm/model.h"
#include "prm/smp.h"
#include "usermem/usermem.h"

#define ACK_DELAY      16u /* 4.096 us << 16; what mlx5 firmware reports */
#define ATOMIC_CAP_HCA 1u  /* atomic among this device's QPs */
#define PD_MAX	       (1u << 23)

/* enum ib_odp_general_cap_bits and ib_odp_transport_cap_bits; in no UAPI header. */
enum { ODP_SUPPORT = 1 << 0, ODP_IMPLICIT = 1 << 1 };
enum {
	ODP_SEND = 1 << 0,
	ODP_RECV = 1 << 1,
	ODP_WRITE = 1 << 2,
	ODP_READ = 1 << 3,
	ODP_ATOMIC = 1 << 4,
	ODP_SRQ_RECV = 1 << 5,
};
/* As cards report them: nothing for UC, and only sending for UD. */
#define ODP_RELIABLE (ODP_SEND | ODP_RECV | ODP_WRITE | ODP_READ | ODP_ATOMIC | ODP_SRQ_RECV)

#define SPEED_FDR 16u
#define SPEED_NDR 128u
enum { LINK_LAYER_IB = 1, LINK_LAYER_ETHERNET = 2 };

uint64_t udevice_cap_flags(bool ethernet)
{
	const uint64_t both = IB_UVERBS_DEVICE_BAD_PKEY_CNTR | IB_UVERBS_DEVICE_BAD_QKEY_CNTR |
			      IB_UVERBS_DEVICE_AUTO_PATH_MIG | IB_UVERBS_DEVICE_CHANGE_PHY_PORT |
			      IB_UVERBS_DEVICE_PORT_ACTIVE_EVENT | IB_UVERBS_DEVICE_SYS_IMAGE_GUID |
			      IB_UVERBS_DEVICE_RC_RNR_NAK_GEN | IB_UVERBS_DEVICE_MEM_WINDOW |
			      IB_UVERBS_DEVICE_MEM_WINDOW_TYPE_2B | IB_UVERBS_DEVICE_XRC |
			      IB_UVERBS_DEVICE_MEM_MGT_EXTENSIONS |
			      IB_UVERBS_DEVICE_PCI_WRITE_END_PADDING;

	return both |
	       (ethernet ? IB_UVERBS_DEVICE_RAW_IP_CSUM | IB_UVERBS_DEVICE_MANAGED_FLOW_STEERING
			 : 0);
}

static void fill_device(const struct ufile *f, struct ib_uverbs_query_device_resp *d)
{
	const struct subnet_port *port = ufile_port(f);
	uint32_t index = f->process->registry->model;
	const struct model *model = model_at(index);

	*d = (struct ib_uverbs_query_device_resp){
		/* as sysfs shows it */
		.fw_ver =
			(uint64_t)model->fw_major << 32 | MODEL_FW_MINOR << 16 | MODEL_FW_SUBMINOR,
		.node_guid = be64_of(f->hca->node->guid).raw,
		.sys_image_guid = be64_of(f->hca->node->system_guid).raw,
		.max_mr_size = UINT64_MAX,
		.page_size_cap = ~(uint64_t)(UVERBS_PAGE - 1),
		.vendor_id = MODEL_VENDOR_IEEE,
		.vendor_part_id = model->device,
		.hw_ver = model->hw_rev,
		.max_qp = ADAPTER_MAX_QP,
		.max_qp_wr = ADAPTER_MAX_QP_WR,
		.device_cap_flags = (uint32_t)udevice_cap_flags(port->ethernet),
		.max_sge = ADAPTER_MAX_SGE,
		.max_sge_rd = ADAPTER_MAX_SGE,
		.max_cq = ADAPTER_MAX_CQ,
		.max_cqe = ADAPTER_MAX_CQE,
		.max_mr = ADAPTER_MAX_MR,
		.max_mw = ADAPTER_MAX_MR,
		.max_pd = PD_MAX,
		.max_qp_rd_atom = ADAPTER_MAX_RD_ATOMIC,
		.max_res_rd_atom = ADAPTER_MAX_QP * ADAPTER_MAX_RD_ATOMIC,
		.max_qp_init_rd_atom = ADAPTER_MAX_RD_ATOMIC,
		.atomic_cap = ATOMIC_CAP_HCA,
		.max_ah = INT32_MAX,
		.max_srq = ADAPTER_MAX_SRQ,
		.max_srq_wr = ADAPTER_MAX_SRQ_WR,
		.max_srq_sge = ADAPTER_MAX_SRQ_SGE,
		.max_pkeys = SUBNET_IB_PKEYS,
		.local_ca_ack_delay = ACK_DELAY,
		.phys_port_cnt = (uint8_t)f->hca->node->nports,
		.max_mcast_grp = ADAPTER_MAX_MCAST_GROUPS,
		.max_mcast_qp_attach = ADAPTER_MAX_MCAST_QPS,
		.max_total_mcast_qp_attach = ADAPTER_MAX_MCAST_GROUPS * ADAPTER_MAX_MCAST_QPS,
	};
}

static int cmd_query_device(struct ureq *req)
{
	struct ib_uverbs_query_device_resp resp;

	fill_device(req->file, &resp);
	return ubuf_write(&req->core_out, &resp, sizeof(resp));
}

/* Fills in what Ethernet queues can do. */
static void fill_ethernet(struct ib_uverbs_ex_query_device_resp *d,
			  struct mlx5_ib_query_device_resp *uhw)
{
	d->raw_packet_caps =
		IB_UVERBS_RAW_PACKET_CAP_CVLAN_STRIPPING | IB_UVERBS_RAW_PACKET_CAP_IP_CSUM;
	d->max_wq_type_rq = ADAPTER_MAX_QP;
	d->rss_caps.supported_qpts = 1u << IB_QPT_RAW_PACKET;
	d->rss_caps.max_rwq_indirection_tables = 1u << ADAPTER_LOG_MAX_IND_TBLS;
	d->rss_caps.max_rwq_indirection_table_size = 1u << ADAPTER_MAX_LOG_IND_TBL;
	uhw->rss_caps.rx_hash_function = MLX5_RX_HASH_FUNC_TOEPLITZ;
	uhw->rss_caps.rx_hash_fields_mask = RSS_ALL_FIELDS;
	uhw->tso_caps.max_tso = ADAPTER_MAX_TSO;
	uhw->tso_caps.supported_qpts = 1u << IB_QPT_RAW_PACKET;
}

static int cmd_query_device_ex(struct ureq *req)
{
	struct ib_uverbs_ex_query_device cmd;
	struct ib_uverbs_ex_query_device_resp resp = {0};
	/* All other fields are zero: no pacing, striding or tunnels. */
	struct mlx5_ib_query_device_resp uhw = {
		.flags = MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD |
			 MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_COMP,
		.cqe_comp_caps = {.max_num = ADAPTER_MAX_COMPRESSED,
				  .supported_format = MLX5_IB_CQE_RES_FORMAT_HASH |
						      MLX5_IB_CQE_RES_FORMAT_CSUM |
						      MLX5_IB_CQE_RES_FORMAT_CSUM_STRIDX},
		.dci_streams_caps = {ADAPTER_LOG_MAX_DC_STREAMS, ADAPTER_LOG_MAX_DC_ERRORED},
	};
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	if (cmd.comp_mask || cmd.reserved)
		return -EINVAL;
	fill_device(req->file, &resp.base);
	resp.response_length = (uint32_t)min_u64(sizeof(resp), req->core_out.len);
	resp.device_cap_flags_ex = udevice_cap_flags(ufile_port(req->file)->ethernet);
	resp.odp_caps.general_caps = ODP_SUPPORT | ODP_IMPLICIT;
	resp.odp_caps.per_transport_caps.rc_odp_caps = ODP_RELIABLE;
	resp.odp_caps.per_transport_caps.ud_odp_caps = ODP_SEND;
	if (resp.base.device_cap_flags & IB_UVERBS_DEVICE_XRC)
		resp.xrc_odp_caps = ODP_RELIABLE & ~ODP_RECV;
	if (ufile_port(req->file)->ethernet)
		fill_ethernet(&resp, &uhw);
	resp.max_dm_size = DM_BYTES;
	resp.timestamp_mask = INT64_MAX;
	resp.hca_core_clock = uclock_khz(req->file);
	resp.cq_moderation_caps.max_cq_moderation_count = ADAPTER_MAX_CQ_COUNT;
	resp.cq_moderation_caps.max_cq_moderation_period = ADAPTER_MAX_CQ_PERIOD;
	uhw.response_length = (uint32_t)min_u64(sizeof(uhw), req->uhw_out.len);
	ret = ubuf_write(&req->uhw_out, &uhw, sizeof(uhw));
	return ret < 0 ? ret : ubuf_write(&req->core_out, &resp, sizeof(resp));
}

/*
 * The counts are as wide as in PortInfo, and stay at their maximum.  Without the daemon none is
 * known.
 */
static void fill_violations(uint32_t row, struct ib_uverbs_query_port_resp *p)
{
	uint64_t totals[PORT_COUNTERS];

	if (fabric_port_counters(row, totals))
		return;
	p->bad_pkey_cntr = (uint32_t)min_u64(totals[PORT_PKEY_VIOLATIONS], UINT16_MAX);
	p->qkey_viol_cntr = (uint32_t)min_u64(totals[PORT_QKEY_VIOLATIONS], UINT16_MAX);
}

static uint32_t port_load(const _Atomic(uint32_t) *field)
{
	return atomic_load_explicit(field, memory_order_acquire);
}

/* Fills in what the link has agreed on. */
static void fill_link(const struct subnet_port *port, struct ib_uverbs_query_port_resp *p)
{
	uint32_t speed = port_load(&port->speed), mtu = port_load(&port->mtu);

	p->active_width = (uint8_t)port_load(&port->width);
	/* The bits of LinkSpeedExtActive, FDR the first, follow FDR10 here.  The field has no bit for
	 * what is faster than NDR. */
	p->active_speed = (uint8_t)(speed & SUBNET_SPEED_XDR ? SPEED_NDR
				    : speed >> 8	     ? (speed >> 8) * SPEED_FDR
							     : speed);
	p->active_mtu = (uint8_t)(mtu ? mtu : IB_MTU_4096);
}

/* Fills in what PortInfo says of an InfiniBand port. */
static void fill_ib_port(const struct subnet_port *port, struct ib_uverbs_query_port_resp *p)
{
	/* Bit 26 means something else in this ABI. */
	p->port_cap_flags = port_load(&port->cap_mask) & ~(uint32_t)IB_UVERBS_PCF_IP_BASED_GIDS;
	p->lid = (uint16_t)port_load(&port->lid);
	p->sm_lid = (uint16_t)port_load(&port->sm_lid);
	p->lmc = (uint8_t)port_load(&port->lmc);
	p->sm_sl = (uint8_t)port_load(&port->sm_sl);
	p->max_mtu = (uint8_t)port_load(&port->mtu_cap);
	p->max_vl_num = VL_CAP_0_TO_7;
	p->subnet_timeout = (uint8_t)port_load(&port->subnet_timeout);
	p->init_type_reply = (uint8_t)port_load(&port->init_type_reply);
	p->link_layer = LINK_LAYER_IB;
}

static void fill_port(const struct ufile *f, uint32_t number, struct ib_uverbs_query_port_resp *p)
{
	uint32_t row = ufile_port_row(f, number);
	const struct subnet_port *port = &f->process->subnet->ports[row];

	*p = (struct ib_uverbs_query_port_resp){
		.max_msg_sz = (uint32_t)IB_MAX_MSG_BYTES,
		.gid_tbl_len = subnet_port_gids(port),
		.pkey_tbl_len = (uint16_t)subnet_port_pkeys(port),
		.state = (uint8_t)ufile_port_state(f, number),
		.max_mtu = IB_MTU_4096,
		.phys_state = ufile_phys_state(f, number),
	};
	fill_violations(row, p);
	fill_link(port, p);
	if (!port->ethernet) {
		fill_ib_port(port, p);
		return;
	}
	p->port_cap_flags = IB_UVERBS_PCF_CM_SUP | IB_UVERBS_PCF_IP_BASED_GIDS;
	p->link_layer = LINK_LAYER_ETHERNET;
	p->flags = IB_UVERBS_QPF_GRH_REQUIRED;
}

static int method_query_port(struct ureq *req)
{
	struct ib_uverbs_query_port_resp_ex resp = {0};
	uint64_t number = ureq_u64(req, UVERBS_ATTR_QUERY_PORT_PORT_NUM);
	uint32_t row;

	if (!ufile_has_port(req->file, number))
		return -EINVAL;
	row = ufile_port_row(req->file, (uint32_t)number);
	fill_port(req->file, (uint32_t)number, &resp.legacy_resp);
	resp.port_cap_flags2 =
		(uint16_t)port_load(&req->file->process->subnet->ports[row].cap_mask2);
	return ureq_put(req, UVERBS_ATTR_QUERY_PORT_RESP, &resp, sizeof(resp));
}

static int cmd_query_port(struct ureq *req)
{
	struct ib_uverbs_query_port cmd;
	struct ib_uverbs_query_port_resp resp;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	if (!ufile_has_port(req->file, cmd.port_num))
		return -EINVAL;
	fill_port(req->file, cmd.port_num, &resp);
	return ubuf_write(&req->core_out, &resp, sizeof(resp));
}

/* The function's number in steering, as HCA_CAP_GENERAL has it; 0 is the wire's. */
#define OWN_VHCA 1u

/* Says which port of the switch it is: the one to the wire.  Without a switch, flags 0 say so. */
static int method_query_port_mlx5(struct ureq *req)
{
	struct mlx5_ib_uapi_query_port resp = {0};
	uint32_t number = ureq_u32(req, MLX5_IB_ATTR_QUERY_PORT_PORT_NUM);

	if (!ufile_has_port(req->file, number))
		return -EINVAL;
	if (ufile_port(req->file)->ethernet &&
	    model_at(req->file->process->registry->model)->steering) {
		resp.flags = MLX5_IB_UAPI_QUERY_PORT_VPORT |
			     MLX5_IB_UAPI_QUERY_PORT_VPORT_STEERING_ICM_RX |
			     MLX5_IB_UAPI_QUERY_PORT_VPORT_STEERING_ICM_TX |
			     MLX5_IB_UAPI_QUERY_PORT_ESW_OWNER_VHCA_ID;
		resp.vport = STEER_UPLINK;
		resp.esw_owner_vhca_id = OWN_VHCA;
		resp.vport_steering_icm_rx = steer_address(STEER_VPORT, STEER_UPLINK);
		resp.vport_steering_icm_tx = steer_address(STEER_VPORT, STEER_UPLINK);
	}
	return ureq_put(req, MLX5_IB_ATTR_QUERY_PORT, &resp, sizeof(resp));
}

/* ---- the GID table ---- */

static uint32_t gid_type(const struct subnet_port *port, const struct subnet_gid_entry *gid)
{
	if (!port->ethernet)
		return IB_UVERBS_GID_TYPE_IB;
	return gid->type == GID_ROCE_V2 ? IB_UVERBS_GID_TYPE_ROCE_V2 : IB_UVERBS_GID_TYPE_ROCE_V1;
}

static bool fill_gid(const struct ufile *f, uint32_t number, uint32_t index,
		     struct ib_uverbs_gid_entry *out)
{
	const struct subnet_port *port = &f->process->subnet->ports[ufile_port_row(f, number)];
	struct subnet_gid_entry gid;

	if (!subnet_gid(f->process->subnet, ufile_port_row(f, number), index, &gid))
		return false;
	*out = (struct ib_uverbs_gid_entry){
		.gid_index = index,
		.port_num = number,
		.gid_type = gid_type(port, &gid),
	};
	memcpy(out->gid, gid.gid.raw, sizeof(out->gid));
	if (port->ethernet && port->netdev[0]) {
		char name[sizeof(port->netdev) + 1] = {0};

		memcpy(name, port->netdev, sizeof(port->netdev));
		out->netdev_ifindex = if_nametoindex(name);
	}
	return true;
}

static int method_query_gid_entry(struct ureq *req)
{
	const struct subnet_port *port = ufile_port(req->file);
	struct ib_uverbs_gid_entry entry;
	uint32_t flags, number = 0, index = 0;
	int ret = ureq_flags(req, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 0, &flags);

	if (ret == 0)
		ret = ureq_const(req, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, &number);
	if (ret == 0)
		ret = ureq_const(req, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, &index);
	if (ret < 0)
		return ret;
	if (!ufile_has_port(req->file, number) || index >= subnet_port_gids(port))
		return -EINVAL;
	if (!fill_gid(req->file, number, index, &entry))
		return -ENODATA;
	return ureq_put(req, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &entry, sizeof(entry));
}

static int method_query_gid_table(struct ureq *req)
{
	const struct subnet_port *port = ufile_port(req->file);
	uint32_t nports = req->file->hca->node->nports;
	struct ubuf out = ureq_buf(req, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
	uint64_t stride = ureq_u64(req, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE);
	uint64_t room, n = 0;
	uint32_t flags;
	int ret = ureq_flags(req, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 0, &flags);

	if (ret < 0)
		return ret;
	room = stride ? out.len / stride : 0;
	if (!room)
		return -EINVAL;
	for (uint32_t i = 0; i < subnet_port_gids(port) * nports; i++) {
		struct ib_uverbs_gid_entry entry;
		struct ubuf at = {uaddr_at(out.ptr, n * stride), stride};

		if (!fill_gid(req->file, 1 + i / subnet_port_gids(port), i % subnet_port_gids(port),
			      &entry))
			continue;
		if (n == room)
			return -EINVAL;
		ret = ubuf_write(&at, &entry, sizeof(entry));
		if (ret < 0)
			return ret;
		n++;
	}
	ret = ureq_put_done(req, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
	if (ret < 0)
		return ret;
	return ureq_put_u64(req, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, n);
}

/* ---- what requests reach this family ---- */

static const struct attr_spec query_port_attrs[] = {
	{UVERBS_ATTR_QUERY_PORT_PORT_NUM, CONST_IN},
	{UVERBS_ATTR_QUERY_PORT_RESP, ATTR_PTR_OUT,
	 .min = offsetof(struct ib_uverbs_query_port_resp_ex, reserved), .max = UINT16_MAX},
};

static const struct attr_spec query_gid_table_attrs[] = {
	{UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, CONST_IN},
	{UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, FLAGS_IN, OPT},
	{UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, OUT_MIN(0)},
	{UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, OUT(8)},
};

static const struct attr_spec query_gid_entry_attrs[] = {
	{UVERBS_ATTR_QUERY_GID_ENTRY_PORT, CONST_IN},
	{UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, CONST_IN},
	{UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, FLAGS_IN},
	{UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, ATTR_PTR_OUT,
	 .min = sizeof(struct ib_uverbs_gid_entry), .max = UINT16_MAX},
};

static const struct attr_spec query_port_mlx5_attrs[] = {
	{MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, IN(4)},
	{MLX5_IB_ATTR_QUERY_PORT, ATTR_PTR_OUT,
	 .min = offsetof(struct mlx5_ib_uapi_query_port, reg_c0) + sizeof(struct mlx5_ib_uapi_reg),
	 .max = UINT16_MAX},
};

static const struct method_spec methods[] = {
	INHERITED_METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, method_query_port,
			 query_port_attrs),
	INHERITED_METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE,
			 method_query_gid_table, query_gid_table_attrs),
	INHERITED_METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY,
			 method_query_gid_entry, query_gid_entry_attrs),
	METHOD(UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT, method_query_port_mlx5,
	       query_port_mlx5_attrs),
};

static const struct command_spec commands[] = {
	CMD_LOOK(QUERY_DEVICE, cmd_query_device, ib_uverbs_query_device,
		 ib_uverbs_query_device_resp),
	CMD_LOOK(QUERY_PORT, cmd_query_port, ib_uverbs_query_port, ib_uverbs_query_port_resp),
	{
		.number = IB_USER_VERBS_EX_CMD_QUERY_DEVICE | IB_USER_VERBS_CMD_FLAG_EXTENDED,
		.name = "EX_QUERY_DEVICE",
		.run = cmd_query_device_ex,
		.in = sizeof(struct ib_uverbs_ex_query_device),
		.out = END_OF(struct ib_uverbs_ex_query_device_resp, response_length),
		.inherited = true,
	},
};

const struct uverbs_family udevice_family = {METHODS(methods), COMMANDS(commands)};
