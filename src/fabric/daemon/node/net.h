/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hardware of the subnet as the daemon knows it: nodes, ports, cables, tables.  Rows of nodes
 * and ports are those of subnet/subnet.h, which has the part that processes see; the functions here
 * keep both alike, and nobody else writes to either.  There are no MADs here: SMA and built-in SM
 * are callers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fabric/daemon/loop/loop.h"
#include "prm/mad.h"
#include "prm/smp.h"
#include "registry/registry.h"
#include "subnet/subnet.h"

#define NET_LINEAR_CAP	  SUBNET_LINEAR
#define NET_MULTICAST_CAP SUBNET_MULTICAST
#define NET_MFT_SLICES	  SUBNET_MFT_SLICES
#define NET_DROP	  SUBNET_DROP
#define NET_GUIDS	  SUBNET_IB_GIDS
#define NET_VLARB_BYTES	  64u /* in one block */

struct net_switch {
	uint16_t linear_top, multicast_top;
	uint8_t default_port, mc_primary, mc_not_primary, life_time;
	bool port_change, enhanced_port0;
	uint8_t mft_slices;
	struct subnet_switch *tables; /* the tables that processes see */
};

struct net_node {
	enum smp_node_type type;
	uint32_t first_port; /* row of a switch's port 0, or of port 1 of another node */
	uint8_t nports;	     /* as NodeInfo counts them: without port 0 */
	uint16_t partition_cap, device_id;
	uint32_t vendor_id, revision;
	uint64_t guid, system_guid;
	bool removed;
	struct net_switch *sw; /* NULL: no switch */
	char id[64];	       /* id in the topology file */
	char description[64];
};

/* What NET itself counts: MADs, and data that a switch passes on.  Readers saturate counts. */
enum net_counter {
	NET_XMIT_DATA, /* in 4-byte words, of all classes that PMA counts */
	NET_RCV_DATA,
	NET_XMIT_PACKETS,
	NET_RCV_PACKETS,
	NET_MULTICAST_XMIT_PACKETS,
	NET_MULTICAST_RCV_PACKETS,
	NET_XMIT_DISCARDS,
	NET_RCV_ERRORS,
	NET_RCV_SWITCH_RELAY_ERRORS,
	NET_VL15_DROPPED,
	NET_LINK_DOWNED,
	NET_LINK_RECOVERED,
	NET_XMIT_CONSTRAINT_ERRORS,
	NET_RCV_CONSTRAINT_ERRORS,
	NET_COUNTERS,
};

enum net_way { NET_OUT, NET_IN, NET_WAYS };

#define NET_SLS 16u

struct net_port {
	uint32_t node;
	uint8_t number;
	bool disabled;	/* its PhysState says so */
	bool pulled;	/* a user has pulled the cable for now */
	uint8_t issm;	/* how many programs and built-in SMs hold the bit */
	uint32_t cable; /* row at the other end, or SUBNET_NONE */
	/* What the cable is good for: what was enabled when it was plugged in.  0: no cable. */
	uint8_t fit_width, fit_speed, fit_ext_speed;
	bool fdr10 : 1, fdr10_active : 1; /* Mellanox' speed beside QDR: enabled, active */
	uint64_t guid;
	uint8_t info[MAD_ATTRIBUTE_BYTES]; /* PortInfo; LocalPortNum and ClientReregister stay 0 */
	/* Allocated when they first differ from what NULL means. */
	uint64_t *counters;	    /* NULL: all 0 */
	uint64_t *sl_words;	    /* [NET_WAYS][NET_SLS]: data of all service levels but 0 */
	uint64_t *counters_cleared; /* what PMA subtracts, in its own numbering (pma.h) */
	uint8_t *sl2vl;		    /* 8 bytes for each ingress port; NULL: the start values */
	uint8_t *vlarb;		    /* 4 blocks; NULL: the start values */
};

enum net_event {
	NET_STATE, /* the logical state; 'what' is the old one */
	NET_LID,   /* LID, LMC or prefix */
	NET_SM,	   /* SM LID or SL */
	NET_REREGISTER,
	NET_PKEYS,
	NET_GIDS,
	NET_CAPABILITY,	   /* CapabilityMask */
	NET_WIDTH_SPEED,   /* what is enabled */
	NET_DESCRIPTION,   /* 'row': an end port of the node; each is told of */
	NET_SWITCH_CHANGE, /* row: port 0; 'what': number of the external port that changed */
	NET_MKEY_VIOLATION,
	NET_PKEY_VIOLATION,
	NET_QKEY_VIOLATION,
	NET_EVENTS,
};

/* Hears of changes, in the call that makes them.  It must change nothing: it queues work. */
struct net_listener {
	struct net_listener *next;
	void (*event)(struct net_listener *l, enum net_event event, uint32_t row, uint32_t what);
};

struct net {
	struct subnet *subnet;
	struct net_node *nodes;
	struct net_port *ports;
	uint32_t nnodes, nports; /* how many the subnet has room for */
	bool like_ibsim;	 /* ports start like ibsim's; set it before nodes are added */
	uint8_t card_lane;	 /* the fastest speed of cards (prm/model.h); likewise */
	struct net_listener *listeners;
	/* Totals of a host's port over its processes (slots.c); NULL: there are none. */
	uint64_t (*host_count)(void *user, uint32_t row, enum port_counter c);
	/* Calls net_carry for what processes have sent since; NULL: they never send. */
	void (*settle)(void *user);
	void *user;
};

static inline struct net_node *net_node_of(const struct net *n, uint32_t row)
{
	return &n->nodes[n->ports[row].node];
}

static inline bool net_is_switch(const struct net *n, uint32_t row)
{
	return net_node_of(n, row)->type == SMP_NODE_SWITCH;
}

/*
 * The port that has the LIDs, GIDs and MADs of this port's node: port 0 of a switch, else the port
 * itself.
 */
static inline uint32_t net_end_port(const struct net *n, uint32_t row)
{
	return net_is_switch(n, row) ? net_node_of(n, row)->first_port : row;
}

/* ---- node.c ---- */

/* Opens the net for the rows that the subnet has room for. */
int net_open(struct net *n, struct subnet *s) must_check;
void net_close(struct net *n);
/*
 * Describes the node and its ports in the rows that subnet_add_node gave; sets start values, and
 * what the subnet says of ports and node too.  A port whose GUID in the subnet is 0 gets one: a
 * switch's is the node's, others count up from it.  Returns 0, -ENOMEM, or -EADDRINUSE if another
 * port has its GID.
 */
int net_add_node(struct net *n, uint32_t node_row, const struct net_node *node) must_check;
void net_listen(struct net *n, struct net_listener *l);
/* Tells all listeners of events that change nothing here (violations). */
void net_tell(const struct net *n, enum net_event event, uint32_t row, uint32_t what);
/* Returns the row of a node's port, or SUBNET_NONE. */
uint32_t net_port_row(const struct net *n, const struct net_node *node, uint32_t number);
/* Describes the node of the port: up to 64 bytes, the rest becomes zeroes; -EINVAL longer. */
int net_set_description(struct net *n, uint32_t row, const char *text) must_check;
/* Takes the node out of the subnet, with all its links going down, or puts it back where it was. */
void net_remove(struct net *n, uint32_t node_row, bool removed);

/* ---- link.c: cables and the states of links (IBTA 7.2) ---- */

void net_cable(struct net *n, uint32_t a, uint32_t b); /* and trains the link */
/* What a link has agreed on, or says so. */
struct net_rate {
	uint32_t width, speed, ext_speed; /* as in PortInfo; 0: as it is */
	bool xdr, fdr10;
};
/* Has one end of a link say so until the link trains again. */
void net_set_rate(struct net *n, uint32_t row, const struct net_rate *rate);
void net_pull(struct net *n, uint32_t row, bool pulled);
/* Changes state and phys state as a Set of PortInfo does.  0, or -EINVAL: refused (status 7). */
int net_set_state(struct net *n, uint32_t row, enum ib_port_state state) must_check;
int net_set_phys(struct net *n, uint32_t row, enum smp_phys_state phys) must_check;
/* The port to which a packet from 'row' comes, or SUBNET_NONE: no link, or not this state. */
uint32_t net_peer(const struct net *n, uint32_t row, enum ib_port_state at_least);

/* ---- port.c: fields of PortInfo whose change has consequences ---- */

int net_set_lid(struct net *n, uint32_t row, uint32_t lid, uint32_t lmc) must_check;
void net_set_sm(struct net *n, uint32_t row, uint32_t lid, uint32_t sl);
int net_set_prefix(struct net *n, uint32_t row, uint64_t prefix) must_check;
/* Adds 'held' to the number of programs that hold the IsSM bit. */
void net_hold_issm(struct net *n, uint32_t row, int held);
void net_reregister(struct net *n, uint32_t row);
/* Sets NeighborMTU. */
void net_set_mtu(struct net *n, uint32_t row, enum ib_mtu mtu);
/* Sets what an external port of a switch enforces, as PI_PARTITION_FLAGS has it. */
void net_set_partition(struct net *n, uint32_t row, uint32_t flags);
/* Sets what is enabled, which takes effect when the link trains next.  0: leaves it as it is.  All
 * ones: all that port and cable can do. */
void net_set_enabled(struct net *n, uint32_t row, uint32_t width, uint32_t speed,
		     uint32_t ext_speed);
/* Gives the port a speed that PortInfo keeps apart from the others (XDR) or not at all (FDR10). */
void net_add_xdr(struct net *n, uint32_t row);
void net_add_fdr10(struct net *n, uint32_t row);
static inline uint32_t net_info(const struct net *n, uint32_t row, struct prm_field f)
{
	return prm_get32(n->ports[row].info, f);
}
/* Sets a field that concerns only the reader of PortInfo. */
static inline void net_info_set(struct net *n, uint32_t row, struct prm_field f, uint64_t v)
{
	prm_set(n->ports[row].info, f, v);
}

/* ---- table.c ---- */

static inline uint8_t net_lft(const struct net_switch *sw, uint32_t lid)
{
	if (lid > sw->linear_top || lid >= NET_LINEAR_CAP)
		return NET_DROP;
	return atomic_load_explicit(&sw->tables->linear[lid], memory_order_relaxed) ^ NET_DROP;
}
/* Takes 64 entries as in the attribute.  Raises the epoch if any differs. */
void net_lft_block_set(struct net *n, struct net_switch *sw, uint32_t block, const uint8_t *ports);
void net_lft_block_get(const struct net_switch *sw, uint32_t block, uint8_t *ports);
void net_linear_top_set(struct net *n, struct net_switch *sw, uint32_t top);
/* Takes 32 masks of 16 ports, in network order as in the attribute. */
void net_mft_block_set(struct net *n, struct net_switch *sw, uint32_t block, uint32_t slice,
		       const uint8_t *masks);
void net_multicast_top_set(struct net *n, struct net_switch *sw, uint32_t top);
void net_mft_block_get(const struct net_switch *sw, uint32_t block, uint32_t slice, uint8_t *masks);
bool net_mft(const struct net_switch *sw, uint32_t lid, uint32_t port);
/* Both work on blocks of 32.  -ERANGE: past the end of the port's table. */
int net_pkeys_get(const struct net *n, uint32_t row, uint32_t block, uint8_t *out) must_check;
int net_pkeys_set(struct net *n, uint32_t row, uint32_t block, const uint8_t *in) must_check;
/* GUIDInfo, in blocks of 8; entry 0 of block 0 cannot be set. */
int net_guids_get(const struct net *n, uint32_t row, uint32_t block, uint8_t *out) must_check;
int net_guids_set(struct net *n, uint32_t row, uint32_t block, const uint8_t *in) must_check;
void net_sl2vl_get(const struct net *n, uint32_t row, uint32_t in_port, uint8_t out[8]);
int net_sl2vl_set(struct net *n, uint32_t row, uint32_t in_port, const uint8_t in[8]) must_check;
void net_vlarb_get(const struct net *n, uint32_t row, uint32_t block, uint8_t *out);
int net_vlarb_set(struct net *n, uint32_t row, uint32_t block, const uint8_t *in) must_check;

/* ---- port.c: at the start ---- */

/* Sets what PortInfo and the subnet's row say of a port that was just made. */
void net_port_start(struct net *n, uint32_t row);
/* Call it after a change of PortInfo: programs see fields that no other function here sets. */
void net_show_info(struct net *n, uint32_t row);

/* ---- port.c: counters ---- */

void net_count(struct net *n, uint32_t row, enum net_counter c, uint64_t add);
/*
 * Counts data that a host's port has sent to that LID, at the ports between switches that it has
 * passed, as the tables are now.  Ports with cables to hosts show what the host's port says.  A
 * port that did not let data pass counts it (PortXmitConstraintErrors, PortRcvConstraintErrors),
 * and the data went no further.
 */
struct net_carried {
	uint16_t dlid;
	uint8_t sl;
	uint16_t pkey; /* 0: nothing has stopped it */
	uint64_t words, packets;
};
void net_carry(struct net *n, uint32_t row, const struct net_carried *c);
/*
 * Words of a service level that have left or reached a port; level 0 has all that no other level
 * has.
 */
uint64_t net_sl_total(const struct net *n, uint32_t row, enum net_way way, uint32_t sl);
/*
 * Data that was sent went as tables, LIDs and links are now, so call this before one of them
 * changes.
 */
void net_settle(const struct net *n);
/* Sum of what NET counts and, on a host's port, of what its processes count. */
uint64_t net_total(const struct net *n, uint32_t row, enum net_counter c);
/* What NET alone counts, by the processes' name for it; 0 if NET does not count that. */
uint64_t net_own(const struct net *n, uint32_t row, enum port_counter counter);
