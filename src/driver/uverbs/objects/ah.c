// SPDX-License-Identifier: BSD-2-Clause
/*
 * Address handles.  On Ethernet the destination MAC is not in the attributes but follows from the
 * destination GID; the kernel asks its neighbour table, we ask the fabric's registry.
 */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/explain.h"
#include "base/log.h"
#include "driver/uverbs/core/file.h"
#include "driver/uverbs/objects/objects.h"

#define IB_RATE_800_GBPS 23u /* the highest that mlx5_ib knows; 0: that of the port */

struct uah {
	struct uobj uobj;
	struct upd *pd;
};

static void multicast_mac(const union ib_gid *gid, uint8_t mac[6])
{
	static const uint8_t v4_prefix[2] = {0x01, 0x00};

	/* [ff0e]::ffff:a.b.c.d is IPv4 multicast, RFC 1112 6.4; else RFC 2464 section 7. */
	if (gid->raw[10] == 0xff && gid->raw[11] == 0xff) {
		memcpy(mac, v4_prefix, 2);
		mac[2] = 0x5e;
		mac[3] = gid->raw[13] & 0x7f;
		memcpy(mac + 4, gid->raw + 14, 2);
		return;
	}
	mac[0] = mac[1] = 0x33;
	memcpy(mac + 2, gid->raw + 12, 4);
}

/* Both in the network of the invented addresses, 198.18.0.0/15, or in one of IPv6 with 64 bits. */
static bool same_network(const union ib_gid *a, const union ib_gid *b)
{
	if (ib_gid_is_ipv4(a))
		return a->raw[12] == b->raw[12] && (a->raw[13] ^ b->raw[13]) < 2;
	return a->half[0] == b->half[0];
}

/*
 * If the port's cable leads out of the fabric, we do not know who is there.  The MAC is then 0, and
 * the carrier of the packets asks for it when one is sent (tie/packets.h).
 */
static bool find_mac(const struct subnet *subnet, uint32_t from, enum gid_type type,
		     const union ib_gid *gid, uint8_t mac[6])
{
	uint32_t row = subnet_port_by_gid(subnet, gid);

	memset(mac, 0, 6);
	if (row < subnet->nports) {
		memcpy(mac, subnet->ports[row].mac, 6);
		return true;
	}
	/* A link-local address of RoCE v1 says the MAC; of v2 the neighbour is asked. */
	return (type == GID_IB_ROCE_V1 && ib_gid_link_local_mac(gid, mac)) ||
	       subnet_ethernet_leads_out(subnet, from);
}

static int resolve_mac(const struct subnet *subnet, uint32_t from,
		       const struct subnet_gid_entry *sgid, const union ib_gid *gid, uint8_t mac[6])
{
	if (ib_gid_is_multicast(gid)) {
		multicast_mac(gid, mac);
		return 0;
	}
	if (ib_gid_is_ipv4(&sgid->gid) != ib_gid_is_ipv4(gid) &&
	    !(sgid->type == GID_IB_ROCE_V1 && ib_gid_link_local_mac(gid, mac)))
		return explained(-EINVAL, "one of ah_attr.grh.sgid_index and ah_attr.grh.dgid is "
					  "an IPv4 address, the other is not");
	if (find_mac(subnet, from, sgid->type, gid, mac))
		return 0;
	if (!same_network(&sgid->gid, gid))
		return explained(-ENETUNREACH,
				 "ah_attr.grh.dgid is the GID of no port of the fabric");
	return explained(UREQ_AWAITS, "ah_attr.grh.dgid is the GID of no port of the fabric");
}

/*
 * A library that picks a device for each process (libfabric's providers by rank) may mix the two
 * link types.  Cards say nothing: datagrams are lost and the program waits for ever.  So we do, once.
 */
static void warn_of_link_type(const struct ufile *f, const struct ib_ah *ah)
{
	static atomic_bool warned;
	const struct subnet *subnet = f->process->subnet;
	bool ethernet = ufile_port(f)->ethernet;
	uint32_t row = ah->is_global ? subnet_port_by_gid(subnet, &ah->dgid) : SUBNET_NONE;
	char text[SUBNET_PORT_TEXT];

	if (row >= subnet->nports || subnet->ports[row].ethernet == ethernet ||
	    atomic_exchange(&warned, true))
		return;
	log_warn("%s has an %s port and is given the address of %s, an %s port: nothing will "
		 "arrive; use devices of one link type on both sides, or see --link-types",
		 f->hca->name, ethernet ? "Ethernet" : "InfiniBand",
		 subnet_port_text(subnet, row, text), ethernet ? "InfiniBand" : "Ethernet");
}

int uah_decode(const struct ufile *f, const struct ib_uverbs_ah_attr *in, struct ib_ah *out)
{
	const struct subnet_port *port = ufile_port(f);
	struct subnet_gid_entry sgid;

	if (!ufile_has_port(f, in->port_num))
		return explained(-EINVAL, "ah_attr.port_num is %u: the device has no such port",
				 in->port_num);
	/* RoCE has no local routing header: without a GRH there is no address at all. */
	if (port->ethernet && !in->is_global)
		return explained(-EINVAL,
				 "ah_attr.is_global is 0, and RoCE needs a GRH: set is_global, "
				 "grh.dgid and grh.sgid_index");
	if (in->is_global && !subnet_gid(f->process->subnet, ufile_port_row(f, in->port_num),
					 in->grh.sgid_index, &sgid))
		return explained(-EINVAL,
				 "ah_attr.grh.sgid_index is %u: the port's GID table has no such "
				 "entry, or it is empty",
				 in->grh.sgid_index);
	if (in->static_rate == 1 || in->static_rate > IB_RATE_800_GBPS)
		return explained(-EINVAL, "ah_attr.static_rate is %u, none of IBV_RATE_*",
				 in->static_rate);
	*out = (struct ib_ah){
		.dlid = in->dlid,
		.sl = in->sl,
		.src_path_bits = in->src_path_bits,
		.static_rate = in->static_rate,
		.is_global = in->is_global != 0,
		.port_num = in->port_num,
	};
	if (in->is_global) {
		memcpy(out->dgid.raw, in->grh.dgid, sizeof(out->dgid.raw));
		out->flow_label = in->grh.flow_label & 0xfffff;
		out->sgid_index = in->grh.sgid_index;
		out->hop_limit = in->grh.hop_limit;
		out->traffic_class = in->grh.traffic_class;
		warn_of_link_type(f, out);
	}
	return 0;
}

int uah_resolve(const struct ufile *f, struct ib_ah *ah)
{
	const struct subnet *subnet = f->process->subnet;
	uint32_t row = ufile_port_row(f, ah->port_num);
	struct subnet_gid_entry sgid;

	if (!ufile_port(f)->ethernet)
		return 0;
	if (!subnet_gid(subnet, row, ah->sgid_index, &sgid))
		return -EINVAL;
	return resolve_mac(subnet, row, &sgid, &ah->dgid, ah->dmac);
}

static void uah_free(struct uobj *obj)
{
	container_of(obj, struct uah, uobj)->pd->uobj.users--;
}

static const struct uobj_class uah_class = {
	.type = UOBJ_AH,
	.free = uah_free,
};

static int cmd_create_ah(struct ureq *req)
{
	struct ib_uverbs_create_ah cmd;
	struct ib_uverbs_create_ah_resp resp = {0};
	struct mlx5_ib_create_ah_resp uhw = {0};
	struct ib_ah decoded;
	struct uobj *pd;
	struct uah *ah;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	pd = uobj_find(req->file, UOBJ_PD, cmd.pd_handle, &ret);
	if (!pd)
		return ret;
	ret = uah_decode(req->file, &cmd.attr, &decoded);
	if (ret == 0)
		ret = uah_resolve(req->file, &decoded);
	if (ret < 0)
		return ret;
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return -ENOMEM;
	ah->uobj.user_handle = cmd.user_handle;
	ah->pd = container_of(pd, struct upd, uobj);
	ret = uobj_publish(req->file, &ah->uobj, &uah_class);
	if (ret < 0) {
		free(ah);
		return ret;
	}
	pd->users++;
	/* The library sends without us, and needs only the MAC from us. */
	uhw.response_length = (uint32_t)min_u64(sizeof(uhw), req->uhw_out.len);
	memcpy(uhw.dmac, decoded.dmac, sizeof(uhw.dmac));
	resp.ah_handle = ah->uobj.handle;
	ret = ubuf_write(&req->uhw_out, &uhw, sizeof(uhw));
	if (ret == 0)
		ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0)
		(void)uobj_destroy(&ah->uobj, NULL);
	return ret;
}

static int cmd_destroy_ah(struct ureq *req)
{
	struct ib_uverbs_destroy_ah cmd;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	return ret < 0 ? ret : ureq_destroy(req, UOBJ_AH, cmd.ah_handle, NULL);
}

/* ---- what requests reach this family ---- */

static const struct attr_spec ah_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_AH_HANDLE, IDR(UOBJ_AH)},
};

static const struct method_spec methods[] = {
	METHOD(UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, method_destroy, ah_destroy_attrs),
};

static const struct command_spec commands[] = {
	CMD_RESP_UHW(CREATE_AH, cmd_create_ah, ib_uverbs_create_ah, ib_uverbs_create_ah_resp),
	CMD(DESTROY_AH, cmd_destroy_ah, ib_uverbs_destroy_ah),
};

const struct uverbs_family uah_family = {METHODS(methods), COMMANDS(commands)};
