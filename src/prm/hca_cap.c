// SPDX-License-Identifier: BSD-2-Clause
/* See hca_cap.h.  Places are bit offsets from the start of the page, most significant bit first. */
#include "prm/hca_cap.h"

#include <string.h>

#include "prm/cmd_dpa.h"
#include "prm/cmd_emulation.h"
#include "prm/cmd.h"
#include "prm/field.h"

/* One field and its content: a value or, if the device decides, a function. */
struct cap_field {
	uint16_t type; /* enum hca_cap_type */
	uint16_t bit;
	uint8_t width; /* up to 32 */
	uint32_t value;
	uint32_t (*from)(const struct hca_cap_values *v);
};

static uint32_t is_ethernet(const struct hca_cap_values *v)
{
	return v->ethernet;
}

static uint32_t port_count(const struct hca_cap_values *v)
{
	return v->ports;
}

/* log2 of the number of raw packet queue objects and of the entries of a table of receive
 * queues. */
static uint32_t raw_queues(const struct hca_cap_values *v)
{
	return v->ethernet ? 18 : 0;
}

static uint32_t number_of_rqts(const struct hca_cap_values *v)
{
	return v->ethernet ? 20 : 0;
}

static uint32_t rqt_entries(const struct hca_cap_values *v)
{
	return v->ethernet ? 11 : 0;
}

/* Table sizes, as the power of two above 8 (GIDs) or 128 (P_Keys). */
static uint32_t gid_table(const struct hca_cap_values *v)
{
	return v->gids > 8 ? log2_of(v->gids / 8) : 0;
}

static uint32_t pkey_table(const struct hca_cap_values *v)
{
	return v->pkeys > 128 ? log2_of(v->pkeys / 128) : 0;
}

enum {
	ATOMIC_COMPARE_SWAP = 1 << 0,
	ATOMIC_FETCH_ADD = 1 << 1,
	ATOMIC_MASKED_COMPARE_SWAP = 1 << 2,
	ATOMIC_MASKED_FETCH_ADD = 1 << 3,
};
#define ATOMIC_OPERATIONS                                                      \
	(ATOMIC_COMPARE_SWAP | ATOMIC_FETCH_ADD | ATOMIC_MASKED_COMPARE_SWAP | \
	 ATOMIC_MASKED_FETCH_ADD)
enum { ATOMIC_SIZE_4 = 1 << 2, ATOMIC_SIZE_8 = 1 << 3 }; /* bit n: operands have 2^n bytes */

/* Bits of a transport's word, first bit first. */
enum {
	ODP_SEND = 1u << 31,
	ODP_RECV = 1u << 30,
	ODP_WRITE = 1u << 29,
	ODP_READ = 1u << 28,
	ODP_ATOMIC = 1u << 27,
	ODP_SRQ_RECV = 1u << 26,
};
#define ODP_RELIABLE (ODP_SEND | ODP_RECV | ODP_WRITE | ODP_READ | ODP_ATOMIC | ODP_SRQ_RECV)

/* One bit for each type, most significant first. */
#define OBJECT(type)  (1u << ((type)-32))
#define OBJECTS_63_32 (OBJECT(GENERAL_RESERVED_QPN) | OBJECT(GENERAL_AV_QP_MAPPING))
#define DPA_OBJECTS                                                                              \
	(OBJECT(GENERAL_DPA_PROCESS) | OBJECT(GENERAL_DPA_THREAD) | OBJECT(GENERAL_DPA_OUTBOX) | \
	 OBJECT(GENERAL_DPA_WINDOW))

static uint32_t has_mmo(const struct hca_cap_values *v)
{
	return v->model->mmo;
}

static uint32_t mmo_bytes(const struct hca_cap_values *v)
{
	return has_mmo(v) ? 20 : 0;
}

static uint32_t waits_on_time(const struct hca_cap_values *v)
{
	return v->model->wait_on_time;
}

static uint32_t has_enhanced_cqe(const struct hca_cap_values *v)
{
	return v->model->enhanced_cqe;
}

static uint32_t clock_khz(const struct hca_cap_values *v)
{
	return v->model->clock_khz;
}

static uint32_t clock_mhz(const struct hca_cap_values *v)
{
	return clock_khz(v) / 1000;
}

/* A card with a DPA emulates a virtio device besides its Ethernet device. */
static uint32_t emulated_functions(const struct hca_cap_values *v)
{
	return v->model->dpa && v->ethernet;
}

static uint32_t object_map(const struct hca_cap_values *v)
{
	return OBJECTS_63_32 | (v->model->dpa ? DPA_OBJECTS : 0) |
	       (emulated_functions(v) ? OBJECT(GENERAL_DB_CQ_MAPPING) : 0);
}

static uint32_t steering_format(const struct hca_cap_values *v)
{
	return v->ethernet ? v->icm.format : 0;
}

/* True if programs may own tables, whose entries they then write themselves. */
static uint32_t steering_owner(const struct hca_cap_values *v)
{
	return v->ethernet && v->icm.format;
}

static uint32_t table_levels(const struct hca_cap_values *v)
{
	return v->ethernet ? 64 : 0;
}

/* log2 of how many of each a program may make on Ethernet at least; a table of the device has one
 * entry, so there are as many entries. */
static uint32_t tables_of_flows(const struct hca_cap_values *v)
{
	return v->ethernet ? 15 : 0;
}

static uint32_t counters_of_flows(const struct hca_cap_values *v)
{
	return v->ethernet ? 15 : 0;
}

static uint32_t destinations_of_entry(const struct hca_cap_values *v)
{
	return v->ethernet ? 5 : 0;
}

/*
 * What rules in root tables match on, 32 bits for the outer headers, 32 for those inside a tunnel and
 * 32 for labels and ESP (flow_table_fields_supported of the PRM).  MASKS: without the version of IP, of
 * which a rule looks at all bits.  In the switch rules look at outer headers alone.
 */
#define FIELDS_OUTER	   0xff0dfdc0u
#define FIELDS_OUTER_ALONE 0xff0dfc00u /* without GRE and VXLAN */
#define FIELDS_INNER	   0xfe0dfc00u
#define FIELDS_LABELS	   0x07fff900u
#define MASKS(fields)	   ((fields) & ~(1u << 28))

static uint32_t if_ethernet(const struct hca_cap_values *v, uint32_t value)
{
	return v->ethernet ? value : 0;
}

static uint32_t fields_outer(const struct hca_cap_values *v)
{
	return if_ethernet(v, FIELDS_OUTER);
}

static uint32_t masks_outer(const struct hca_cap_values *v)
{
	return if_ethernet(v, MASKS(FIELDS_OUTER));
}

static uint32_t fields_inner(const struct hca_cap_values *v)
{
	return if_ethernet(v, FIELDS_INNER);
}

static uint32_t masks_inner(const struct hca_cap_values *v)
{
	return if_ethernet(v, MASKS(FIELDS_INNER));
}

static uint32_t fields_labels(const struct hca_cap_values *v)
{
	return if_ethernet(v, FIELDS_LABELS);
}

static uint32_t fields_switch(const struct hca_cap_values *v)
{
	return if_ethernet(v, FIELDS_OUTER_ALONE);
}

static uint32_t masks_switch(const struct hca_cap_values *v)
{
	return if_ethernet(v, MASKS(FIELDS_OUTER_ALONE));
}

static uint32_t reformat_contexts(const struct hca_cap_values *v)
{
	return v->ethernet ? 15 : 0;
}

static uint32_t reformat_size(const struct hca_cap_values *v)
{
	return v->ethernet ? 126 : 0;
}

static uint32_t steering_log(const struct hca_cap_values *v)
{
	return v->ethernet ? v->icm.log_steering : 0;
}

static uint32_t modify_log(const struct hca_cap_values *v)
{
	return v->ethernet ? v->icm.log_modify : 0;
}

static uint32_t pattern_log(const struct hca_cap_values *v)
{
	return v->ethernet ? v->icm.log_pattern : 0;
}

static const struct cap_field fields[] = {
	{HCA_CAP_GENERAL, 0x020, 1, 1},			 /* hca_cap_2 */
	{HCA_CAP_GENERAL, 0x030, 16, 0, is_ethernet},	 /* vhca_id; 0 is the wire's */
	{HCA_CAP_GENERAL, 0x1a7, 1, 0, is_ethernet},	 /* eswitch_manager */
	{HCA_CAP_GENERAL, 0x1a6, 1, 0, is_ethernet},	 /* nic_flow_table */
	{HCA_CAP_GENERAL, 0x444, 4, 0, steering_format}, /* steering_format_version */
	{HCA_CAP_GENERAL, 0x06b, 5, 0, mmo_bytes},	 /* log_dma_mmo_max_size */
	{HCA_CAP_GENERAL, 0x080, 8, 15},		 /* log_max_srq_sz */
	{HCA_CAP_GENERAL, 0x088, 8, 15},		 /* log_max_qp_sz */
	{HCA_CAP_GENERAL, 0x09b, 5, 18},		 /* log_max_qp */
	{HCA_CAP_GENERAL, 0x0a3, 1, 1},	 /* ece: answered, and no option agreed on */
	{HCA_CAP_GENERAL, 0x0ab, 5, 23}, /* log_max_srq */
	{HCA_CAP_GENERAL, 0x0c8, 8, 22}, /* log_max_cq_sz */
	{HCA_CAP_GENERAL, 0x0d9, 1, 0,
	 emulated_functions},		 /* virtio_net_device_emulation_manager */
	{HCA_CAP_GENERAL, 0x0db, 5, 24}, /* log_max_cq */
	{HCA_CAP_GENERAL, 0x0ea, 6, 24}, /* log_max_mkey */
	{HCA_CAP_GENERAL, 0x100, 8, 4},	 /* max_indirection */
	{HCA_CAP_GENERAL, 0x108, 1, 1},	 /* fixed_buffer_size: KSM lists */
	{HCA_CAP_GENERAL, 0x11a, 6, 16}, /* log_max_klm_list_size */
	{HCA_CAP_GENERAL, 0x122, 1, 1},	 /* qpc_extension */
	{HCA_CAP_GENERAL, 0x128, 1, 0,
	 emulated_functions},			     /* resources_on_virtio_net_emulation_manager */
	{HCA_CAP_GENERAL, 0x12a, 6, 4},		     /* log_max_ra_req_dc */
	{HCA_CAP_GENERAL, 0x13a, 6, 4},		     /* log_max_ra_res_dc */
	{HCA_CAP_GENERAL, 0x147, 1, 1},		     /* sig_crc64_xp10 */
	{HCA_CAP_GENERAL, 0x148, 1, 1},		     /* sig_crc32c */
	{HCA_CAP_GENERAL, 0x14a, 6, 4},		     /* log_max_ra_req_qp */
	{HCA_CAP_GENERAL, 0x151, 1, 0, is_ethernet}, /* rts2rts_qp_udp_sport */
	{HCA_CAP_GENERAL, 0x153, 1, 0, has_mmo},     /* dma_mmo_sq */
	{HCA_CAP_GENERAL, 0x15a, 6, 4},		     /* log_max_ra_res_qp */
	{HCA_CAP_GENERAL, 0x160, 1, 1},		     /* end_pad */
	{HCA_CAP_GENERAL, 0x170, 16, 0, gid_table},  /* gid_table_size */
	{HCA_CAP_GENERAL, 0x190, 16, 0, pkey_table}, /* pkey_table_size */
	{HCA_CAP_GENERAL, 0x1a8, 1, 1},		     /* device_memory */
	{HCA_CAP_GENERAL, 0x1ab, 5, 16},	     /* local_ca_ack_delay */
	{HCA_CAP_GENERAL, 0x1b6, 2, 0, is_ethernet}, /* port_type */
	{HCA_CAP_GENERAL, 0x1b8, 8, 0, port_count},  /* num_ports */
	{HCA_CAP_GENERAL, 0x1c3, 5, 30},	     /* log_max_msg */
	{HCA_CAP_GENERAL, 0x1f0, 1, 1},		     /* sig_block_4048 */
	{HCA_CAP_GENERAL, 0x1fc, 4, 1},		     /* cqe_version */
	{HCA_CAP_GENERAL, 0x20f, 1, 1},		     /* drain_sigerr */
	{HCA_CAP_GENERAL, 0x212, 1, 1},		     /* sigerr_cqe */
	{HCA_CAP_GENERAL, 0x217, 1, 1},		     /* sho: signature handover */
	{HCA_CAP_GENERAL, 0x21a, 1, 1},		     /* dct */
	{HCA_CAP_GENERAL, 0x20a, 2, 2},		     /* umr_fence: none needed */
	{HCA_CAP_GENERAL, 0x21d, 1, 0, is_ethernet}, /* roce */
	{HCA_CAP_GENERAL, 0x21e, 1, 1},		     /* atomic */
	{HCA_CAP_GENERAL, 0x221, 1, 1},		     /* cq_resize */
	{HCA_CAP_GENERAL, 0x222, 1, 1},		     /* cq_moderation */
	{HCA_CAP_GENERAL, 0x227, 1, 1},		     /* pg: on-demand paging */
	{HCA_CAP_GENERAL, 0x22c, 1, 1},		     /* cd: masters of other queues */
	{HCA_CAP_GENERAL, 0x22e, 1, 1},		     /* apm */
	{HCA_CAP_GENERAL, 0x231, 1, 1},		     /* imaicl: memory windows */
	{HCA_CAP_GENERAL, 0x236, 1, 1},		     /* qkv */
	{HCA_CAP_GENERAL, 0x237, 1, 1},		     /* pkv */
	{HCA_CAP_GENERAL, 0x23c, 1, 1},		     /* xrc */
	{HCA_CAP_GENERAL, 0x23d, 1, 1},		     /* ud */
	{HCA_CAP_GENERAL, 0x23e, 1, 1},		     /* uc */
	{HCA_CAP_GENERAL, 0x23f, 1, 1},		     /* rc */
	{HCA_CAP_GENERAL, 0x240, 1, 1},		     /* uar_4k */
	{HCA_CAP_GENERAL, 0x258, 8, 12},	     /* log_pg_sz */
	{HCA_CAP_GENERAL, 0x260, 1, 1},		     /* bf */
	{HCA_CAP_GENERAL, 0x26b, 5, 9},		     /* log_bf_reg_size */
	{HCA_CAP_GENERAL, 0x27c, 4, 1},		     /* num_lag_ports */
	{HCA_CAP_GENERAL, 0x290, 16, 1024},	     /* max_wqe_sz_sq */
	{HCA_CAP_GENERAL, 0x2b0, 16, 512},	     /* max_wqe_sz_rq */
	{HCA_CAP_GENERAL, 0x2e7, 25, 240},	     /* max_qp_mcg */
	{HCA_CAP_GENERAL, 0x318, 8, 21},	     /* log_max_mcg */
	{HCA_CAP_GENERAL, 0x32b, 5, 23},	     /* log_max_pd */
	{HCA_CAP_GENERAL, 0x57b, 5, 12},	     /* log_max_dct_connections */
	{HCA_CAP_GENERAL, 0x42a, 1, 0,
	 emulated_functions}, /* general_obj_types: VIRTIO_NET_DEVICE_EMULATION */
	{HCA_CAP_GENERAL, 0x427, 1, 0, steering_owner}, /* general_obj_types: MATCH_DEFINER */
	{HCA_CAP_GENERAL, 0x7ff, 1, 0, steering_owner}, /* match_definer_format_supported: 0 */
	{HCA_CAP_GENERAL, 0x400, 32, 0, object_map},	/* general_obj_types */
	{HCA_CAP_GENERAL, 0x480, 1, 1},			/* sigerr_domain_and_sig_type */
	{HCA_CAP_GENERAL, 0x323, 5, 0, raw_queues},	/* log_max_transport_domain */
	{HCA_CAP_GENERAL, 0x363, 5, 0, raw_queues},	/* log_max_rq */
	{HCA_CAP_GENERAL, 0x36b, 5, 0, raw_queues},	/* log_max_sq */
	{HCA_CAP_GENERAL, 0x373, 5, 0, raw_queues},	/* log_max_tir */
	{HCA_CAP_GENERAL, 0x37b, 5, 0, raw_queues},	/* log_max_tis */
	{HCA_CAP_GENERAL, 0x383, 5, 20},		/* log_max_rmp */
	{HCA_CAP_GENERAL, 0x38b, 5, 0, number_of_rqts}, /* log_max_rqt */
	{HCA_CAP_GENERAL, 0x393, 5, 0, rqt_entries},	/* log_max_rqt_size */
	{HCA_CAP_GENERAL, 0x4c0, 32, 0, clock_mhz},	/* device_frequency_mhz */
	{HCA_CAP_GENERAL, 0x4e0, 32, 0, clock_khz},	/* device_frequency_khz */
	/* Readers look for the enhanced layout in either place. */
	{HCA_CAP_GENERAL, 0x5b0, 1, 0, has_enhanced_cqe}, /* enhanced_cqe_compression */
	{HCA_CAP_GENERAL, 0x5b9, 1, 1},			  /* mini_cqe_resp_l3_l4_tag */
	{HCA_CAP_GENERAL, 0x5bb, 1, 0, has_enhanced_cqe}, /* enhanced_cqe_compression */
	{HCA_CAP_GENERAL, 0x5bc, 1, 1},			  /* mini_cqe_resp_stride_index */
	{HCA_CAP_GENERAL, 0x5be, 1, 1},			  /* cqe_compression_128b */
	{HCA_CAP_GENERAL, 0x5bf, 1, 1},			  /* cqe_compression */
	{HCA_CAP_GENERAL, 0x5d0, 16, 64},		  /* cqe_compression_max_num */
	{HCA_CAP_GENERAL, 0x68b, 1, 0, waits_on_time},	  /* wait_on_data */
	{HCA_CAP_GENERAL, 0x68c, 1, 0, waits_on_time},	  /* wait_on_time */

	{HCA_CAP_VIRTIO_NET, 0x002, 1, 1},		   /* virtio_version_1_0 */
	{HCA_CAP_VIRTIO_NET, 0x033, 5, 2},		   /* log_doorbell_stride */
	{HCA_CAP_VIRTIO_NET, 0x03b, 5, 12},		   /* log_doorbell_bar_size */
	{HCA_CAP_VIRTIO_NET, 0x080, 8, 1},		   /* max_emulated_devices */
	{HCA_CAP_VIRTIO_NET, 0x088, 24, EMULATION_QUEUES}, /* max_num_virtio_queues */
	{HCA_CAP_VIRTIO_NET, 0x0dd, 1, 1},		   /* emulated_dev_db_cq_map */
	{HCA_CAP_VIRTIO_NET, 0x0de, 1, 1},		   /* emulated_dev_eq */

	{HCA_CAP_GENERAL_2, 0x093, 5, 6}, /* log_reserved_qpn_granularity */

	{HCA_CAP_ODP, 0x080, 32, ODP_RELIABLE},		    /* rc_odp_caps */
	{HCA_CAP_ODP, 0x0c0, 32, ODP_SEND},		    /* ud_odp_caps */
	{HCA_CAP_ODP, 0x0e0, 32, ODP_RELIABLE & ~ODP_RECV}, /* xrc_odp_caps */
	{HCA_CAP_ODP, 0x100, 32, ODP_RELIABLE & ~ODP_RECV}, /* dc_odp_caps */

	{HCA_CAP_DEVICE_MEMORY, 0x000, 1, 1},	     /* memic */
	{HCA_CAP_DEVICE_MEMORY, 0x038, 8, 6},	     /* log_max_memic_addr_alignment, from 64 */
	{HCA_CAP_DEVICE_MEMORY, 0x080, 32, 256},     /* memic_bar_size, pages */
	{HCA_CAP_DEVICE_MEMORY, 0x0a0, 32, 1 << 20}, /* max_memic_size */
	{HCA_CAP_DEVICE_MEMORY, 0x108, 8, 0, modify_log},   /* log_header_modify_sw_icm_size */
	{HCA_CAP_DEVICE_MEMORY, 0x118, 8, 0, steering_log}, /* log_steering_sw_icm_size */
	{HCA_CAP_DEVICE_MEMORY, 0x138, 8, 0,
	 pattern_log}, /* log_header_modify_pattern_sw_icm_size */

	{HCA_CAP_NIC_FLOW_TABLE, 0x002, 1, 0,
	 is_ethernet}, /* allow_sniffer_and_nic_rx_shared_tir */
	{HCA_CAP_NIC_FLOW_TABLE, 0x020, 1, 0, is_ethernet}, /* encap_general_header */
	{HCA_CAP_NIC_FLOW_TABLE, 0x02b, 5, 0,
	 reformat_contexts},				       /* log_max_packet_reformat_context */
	{HCA_CAP_NIC_FLOW_TABLE, 0x036, 10, 0, reformat_size}, /* max_encap_header_size */

	/* log_max_ft_size is 0: a table of the device has one entry. */
	{HCA_CAP_NIC_FLOW_TABLE, 0x200, 1, 0, is_ethernet},	/* receive: ft_support */
	{HCA_CAP_NIC_FLOW_TABLE, 0x201, 1, 0, is_ethernet},	/* receive: flow_tag */
	{HCA_CAP_NIC_FLOW_TABLE, 0x202, 1, 0, is_ethernet},	/* receive: flow_counter */
	{HCA_CAP_NIC_FLOW_TABLE, 0x203, 1, 0, is_ethernet},	/* receive: flow_modify_en */
	{HCA_CAP_NIC_FLOW_TABLE, 0x207, 1, 0, is_ethernet},	/* receive: reformat */
	{HCA_CAP_NIC_FLOW_TABLE, 0x208, 1, 0, is_ethernet},	/* receive: decap */
	{HCA_CAP_NIC_FLOW_TABLE, 0x212, 1, 0, is_ethernet},	/* receive: from L3 tunnels */
	{HCA_CAP_NIC_FLOW_TABLE, 0x21e, 1, 0, steering_owner},	/* receive: sw_owner_v2 */
	{HCA_CAP_NIC_FLOW_TABLE, 0x238, 8, 0, table_levels},	/* receive: max_ft_level */
	{HCA_CAP_NIC_FLOW_TABLE, 0x278, 8, 0, tables_of_flows}, /* receive: log_max_ft_num */
	{HCA_CAP_NIC_FLOW_TABLE, 0x290, 8, 0,
	 counters_of_flows}, /* receive: log_max_flow_counter */
	{HCA_CAP_NIC_FLOW_TABLE, 0x298, 8, 0,
	 destinations_of_entry},				/* receive: log_max_destination */
	{HCA_CAP_NIC_FLOW_TABLE, 0x2b8, 8, 0, tables_of_flows}, /* receive: log_max_flow */
	{HCA_CAP_NIC_FLOW_TABLE, 0x300, 32, 0, fields_outer},	/* receive: ft_field_support */
	{HCA_CAP_NIC_FLOW_TABLE, 0x320, 32, 0, fields_inner},	/* receive: ft_field_support */
	{HCA_CAP_NIC_FLOW_TABLE, 0x340, 32, 0, fields_labels},	/* receive: ft_field_support */
	{HCA_CAP_NIC_FLOW_TABLE, 0x380, 32, 0, masks_outer}, /* receive: ft_field_bitmask_support */
	{HCA_CAP_NIC_FLOW_TABLE, 0x3a0, 32, 0, masks_inner}, /* receive: ft_field_bitmask_support */
	{HCA_CAP_NIC_FLOW_TABLE, 0x3c0, 32, 0,
	 fields_labels}, /* receive: ft_field_bitmask_support */

	{HCA_CAP_NIC_FLOW_TABLE, 0x800, 1, 0, is_ethernet},	/* transmit: ft_support */
	{HCA_CAP_NIC_FLOW_TABLE, 0x802, 1, 0, is_ethernet},	/* transmit: flow_counter */
	{HCA_CAP_NIC_FLOW_TABLE, 0x803, 1, 0, is_ethernet},	/* transmit: flow_modify_en */
	{HCA_CAP_NIC_FLOW_TABLE, 0x807, 1, 0, is_ethernet},	/* transmit: reformat */
	{HCA_CAP_NIC_FLOW_TABLE, 0x813, 1, 0, is_ethernet},	/* transmit: to L3 tunnels */
	{HCA_CAP_NIC_FLOW_TABLE, 0x81e, 1, 0, steering_owner},	/* transmit: sw_owner_v2 */
	{HCA_CAP_NIC_FLOW_TABLE, 0x838, 8, 0, table_levels},	/* transmit: max_ft_level */
	{HCA_CAP_NIC_FLOW_TABLE, 0x878, 8, 0, tables_of_flows}, /* transmit: log_max_ft_num */
	{HCA_CAP_NIC_FLOW_TABLE, 0x890, 8, 0,
	 counters_of_flows}, /* transmit: log_max_flow_counter */
	{HCA_CAP_NIC_FLOW_TABLE, 0x898, 8, 0,
	 destinations_of_entry},				/* transmit: log_max_destination */
	{HCA_CAP_NIC_FLOW_TABLE, 0x8b8, 8, 0, tables_of_flows}, /* transmit: log_max_flow */
	{HCA_CAP_NIC_FLOW_TABLE, 0x900, 32, 0, fields_outer},	/* transmit: ft_field_support */
	{HCA_CAP_NIC_FLOW_TABLE, 0x920, 32, 0, fields_inner},	/* transmit: ft_field_support */
	{HCA_CAP_NIC_FLOW_TABLE, 0x940, 32, 0, fields_labels},	/* transmit: ft_field_support */
	{HCA_CAP_NIC_FLOW_TABLE, 0x980, 32, 0,
	 masks_outer}, /* transmit: ft_field_bitmask_support */
	{HCA_CAP_NIC_FLOW_TABLE, 0x9a0, 32, 0,
	 masks_inner}, /* transmit: ft_field_bitmask_support */
	{HCA_CAP_NIC_FLOW_TABLE, 0x9c0, 32, 0,
	 fields_labels}, /* transmit: ft_field_bitmask_support */

	{HCA_CAP_ESW_FLOW_TABLE, 0x200, 1, 0, is_ethernet},	  /* fdb: ft_support */
	{HCA_CAP_ESW_FLOW_TABLE, 0x202, 1, 0, is_ethernet},	  /* fdb: flow_counter */
	{HCA_CAP_ESW_FLOW_TABLE, 0x203, 1, 0, is_ethernet},	  /* fdb: flow_modify_en */
	{HCA_CAP_ESW_FLOW_TABLE, 0x21e, 1, 0, steering_owner},	  /* fdb: sw_owner_v2 */
	{HCA_CAP_ESW_FLOW_TABLE, 0x238, 8, 0, table_levels},	  /* fdb: max_ft_level */
	{HCA_CAP_ESW_FLOW_TABLE, 0x278, 8, 0, tables_of_flows},	  /* fdb: log_max_ft_num */
	{HCA_CAP_ESW_FLOW_TABLE, 0x290, 8, 0, counters_of_flows}, /* fdb: log_max_flow_counter */
	{HCA_CAP_ESW_FLOW_TABLE, 0x298, 8, 0, destinations_of_entry}, /* fdb: log_max_destination */
	{HCA_CAP_ESW_FLOW_TABLE, 0x2b8, 8, 0, tables_of_flows},	      /* fdb: log_max_flow */
	{HCA_CAP_ESW_FLOW_TABLE, 0x300, 32, 0, fields_switch},	      /* fdb: ft_field_support */
	{HCA_CAP_ESW_FLOW_TABLE, 0x380, 32, 0, masks_switch}, /* fdb: ft_field_bitmask_support */

	{HCA_CAP_ROCE, 0x000, 1, 0, is_ethernet}, /* roce_apm */
	{HCA_CAP_ROCE, 0x006, 1, 0, is_ethernet}, /* fl_rc_qp_when_roce_enabled */
	{HCA_CAP_GENERAL, 0x33b, 5, 23},	  /* log_max_xrcd */

	{HCA_CAP_ATOMIC, 0x040, 2, 1}, /* atomic_req_8B_endianness_mode: the host's order */
	{HCA_CAP_ATOMIC, 0x046, 1, 1}, /* supported_atomic_req_8B_endianness_mode_1 */
	{HCA_CAP_ATOMIC, 0x090, 16, ATOMIC_OPERATIONS},		    /* operations */
	{HCA_CAP_ATOMIC, 0x0b0, 16, ATOMIC_SIZE_4 | ATOMIC_SIZE_8}, /* size_qp */
	{HCA_CAP_ATOMIC, 0x0d0, 16, ATOMIC_SIZE_4 | ATOMIC_SIZE_8}, /* size_dc */

	{HCA_CAP_DPA, 0x000, 16, DPA_LAYOUT_VERSION}, /* version */
	{HCA_CAP_DPA, 0x010, 16, 254},		      /* execution units */
	{HCA_CAP_DPA, 0x060, 32, 256 << 20},	      /* heap_bytes, low word */
	{HCA_CAP_DPA, 0x080, 32, 2048},		      /* call_bytes */
};

/* 64-bit addresses in device memory of steering. */
static const struct {
	uint16_t type;
	uint16_t bit;
	uint16_t from; /* offset in struct hca_cap_icm */
} addresses[] = {
	{HCA_CAP_DEVICE_MEMORY, 0x0c0, offsetof(struct hca_cap_icm, steering)},
	{HCA_CAP_DEVICE_MEMORY, 0x140, offsetof(struct hca_cap_icm, modify)},
	{HCA_CAP_DEVICE_MEMORY, 0x1c0, offsetof(struct hca_cap_icm, pattern)},
	{HCA_CAP_ESW_FLOW_TABLE, 0x1800, offsetof(struct hca_cap_icm, drop)},
	{HCA_CAP_ESW_FLOW_TABLE, 0x1840, offsetof(struct hca_cap_icm, drop)},
	{HCA_CAP_ESW_FLOW_TABLE, 0x1880, offsetof(struct hca_cap_icm, uplink)}, /* of received */
	{HCA_CAP_ESW_FLOW_TABLE, 0x18c0, offsetof(struct hca_cap_icm, uplink)}, /* of sent */
	{HCA_CAP_NIC_FLOW_TABLE, 0x2000, offsetof(struct hca_cap_icm, drop)},	/* receive */
	{HCA_CAP_NIC_FLOW_TABLE, 0x2040, offsetof(struct hca_cap_icm, drop)},	/* transmit */
	{HCA_CAP_NIC_FLOW_TABLE, 0x2080, offsetof(struct hca_cap_icm, allow)},
};

/* Types whose page a program may ask for.  The page of a type without a field is all zero. */
static const uint16_t known_types[] = {
	HCA_CAP_GENERAL,	HCA_CAP_ODP,	    HCA_CAP_ATOMIC, HCA_CAP_ROCE,
	HCA_CAP_DEVICE_MEMORY,	HCA_CAP_GENERAL_2,  HCA_CAP_DPA,    HCA_CAP_NIC_FLOW_TABLE,
	HCA_CAP_ESW_FLOW_TABLE, HCA_CAP_VIRTIO_NET,
};

bool hca_cap_page(enum hca_cap_type type, const struct hca_cap_values *v,
		  uint8_t page[HCA_CAP_PAGE_BYTES])
{
	bool known = false;

	for (size_t i = 0; i < array_size(known_types); i++)
		known |= known_types[i] == type;
	if (!known || (type == HCA_CAP_DPA && !v->model->dpa) ||
	    (type == HCA_CAP_VIRTIO_NET && !emulated_functions(v)))
		return false;
	memset(page, 0, HCA_CAP_PAGE_BYTES);
	for (size_t i = 0; i < array_size(fields); i++)
		if (fields[i].type == type)
			prm_set(page, PRM_FIELD(fields[i].bit, fields[i].width),
				fields[i].from ? fields[i].from(v) : fields[i].value);
	for (size_t i = 0; i < array_size(addresses) && v->ethernet; i++)
		if (addresses[i].type == type)
			prm_set(page, PRM_FIELD(addresses[i].bit, 64),
				*(const uint64_t *)((const char *)&v->icm + addresses[i].from));
	return true;
}
