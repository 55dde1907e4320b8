/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet: nodes, their ports, and what the ports are called.
 *
 * It is one block of memory that the daemon writes and that all processes of the fabric map
 * read-only.  The block is a head and the tables that the head lists.  struct subnet is a process's
 * own view of the block: where the tables lie in that process.
 *
 * Rows never move.  Fields that never change once the block is published are plain; fields that a
 * subnet manager or a cable changes while others read are atomic.  Readers load those with acquire
 * order, the daemon stores them with release order.
 *
 * Epoch: a number that the daemon raises after it has changed anything that decides whether or
 * where a packet arrives (a port's state, a LID, a GID, who owns a range of queue pair numbers).
 * Code that remembers a route remembers the epoch in which it found the route, and looks again when
 * the epoch has changed.  A reader loads the epoch before it looks: a change in between then leaves
 * it with an old epoch, never with an old route under the new epoch.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "prm/ib.h"

#define SUBNET_MAGIC   0x74656e73u /* "snet" */
#define SUBNET_VERSION 5u

#define SUBNET_NONE	     0xffffffffu /* no row */
#define SUBNET_LIDS	     0xc000u	 /* unicast LIDs are 1 to 0xbfff (IBTA 4.1.3) */
#define SUBNET_MAX_LMC	     7u
#define SUBNET_LINEAR	     0xc000u /* entries of a linear table */
#define SUBNET_MULTICAST     1024u   /* multicast LIDs for which a switch has entries */
#define SUBNET_MFT_SLICES    16u     /* slices of 16 ports each */
#define SUBNET_MFT_BLOCK     32u     /* entries of a block (IBTA 14.2.5.12) */
#define SUBNET_DROP	     0xffu   /* an entry of a linear table that leads nowhere */
#define SUBNET_HOPS	     64u     /* a packet that takes more is in a loop */
#define SUBNET_IB_GIDS	     8u
#define SUBNET_ETHERNET_GIDS 32u
#define SUBNET_IB_PKEYS	     128u
#define SUBNET_MAX_PKEYS     SUBNET_IB_PKEYS /* Ethernet has the default P_Key only */
#define SUBNET_PKEY_DEFAULT  0xffffu	     /* full member of the default partition */

#define SUBNET_LID_CONTESTED (1u << 31) /* in the table of LIDs: other ports claim it too */

enum gid_type { GID_IB_ROCE_V1, GID_ROCE_V2 };

enum subnet_kind {
	SUBNET_HCA, /* ports of a host of this machine's fabric */
	/* No queue pair is at ports of these kinds, so subnet_walk leads to none of them. */
	SUBNET_SWITCH, /* forwards packets; its port 0 is its own */
	SUBNET_REMOTE, /* leads out of this subnet: a router */
};

#define SUBNET_NAME_BYTES 64u

struct subnet_node {
	uint32_t kind; /* enum subnet_kind */
	uint32_t host; /* index of the host that it is plugged into, or SUBNET_NONE */
	/* Row of its first port, which is 1, or 0 for a switch; the others follow. */
	uint32_t first_port;
	uint32_t nports; /* number of rows */
	uint64_t guid;
	uint64_t system_guid;
	uint32_t device;       /* index among the devices of its host */
	uint32_t switch_index; /* of a switch: its index among the switches */
	uint32_t type;	       /* NodeType (prm/smp.h); Ethernet devices are channel adapters */
	uint32_t reserved;
	char name[SUBNET_NAME_BYTES]; /* its name on its host: "mlx5_0" */
	char id[SUBNET_NAME_BYTES];   /* its name in the topology */
	/* NodeDescription, for people: a reader may see a mix of two while it changes. */
	char description[SUBNET_NAME_BYTES];
};

/* A switch's port drops packets of partitions that its table does not have, as PartitionEnforcement
 * in PortInfo says. */
#define SUBNET_ENFORCES_IN  8u
#define SUBNET_ENFORCES_OUT 4u

struct subnet_port {
	uint32_t node;
	uint32_t number;     /* on its node: from 1, or from 0 on a switch */
	uint32_t host_index; /* index among all ports of its host: selects its counters in a slot */
	uint32_t ethernet;
	_Atomic(uint32_t) state; /* enum ib_port_state */
	/* Ethernet: one plus the row that its cable leads to.  Its own row: the cable leads out of
	 * the fabric.  0: the port is at the segment that all others share. */
	_Atomic(uint32_t) tie_plus_1;
	_Atomic(uint32_t) lid;
	_Atomic(uint32_t) lmc;
	_Atomic(uint32_t) sm_lid;
	/* As in PortInfo; Ethernet ports have width and speed alone. */
	_Atomic(uint32_t) width; /* active */
	_Atomic(uint32_t) speed; /* active, a code of struct subnet_speed; the extended one << 8 */
	_Atomic(uint32_t) sm_sl;
	_Atomic(uint32_t) cap_mask;
	_Atomic(uint32_t) cap_mask2;
	_Atomic(uint32_t) phys_state;
	_Atomic(uint32_t) mtu; /* NeighborMTU */
	_Atomic(uint32_t) mtu_cap;
	_Atomic(uint32_t) subnet_timeout;
	_Atomic(uint32_t) init_type_reply;
	/* One plus the row at the other end of the link; 0: there is no link now. */
	_Atomic(uint32_t) peer_plus_1;
	uint32_t first_gid; /* where its entries in the pool of GIDs begin */
	uint32_t gid_room;
	uint64_t guid;
	uint8_t mac[6];
	_Atomic(uint8_t) enforces; /* of an external port of a switch: SUBNET_ENFORCES_* */
	uint8_t reserved;
	char netdev[16]; /* Ethernet: the interface of this machine, or empty */
	_Atomic(uint16_t) pkeys[SUBNET_MAX_PKEYS];
};

/* An entry of the pool.  Its port never changes, and neither does its index in the port's table. */
struct subnet_gid {
	_Atomic(uint64_t) half[2];     /* as in union ib_gid: network order */
	_Atomic(uint32_t) sequence;    /* odd while the entry is being written */
	_Atomic(uint32_t) type_plus_1; /* enum gid_type; 0: empty */
	uint32_t port;
	uint32_t reserved;
};

/* Forwarding tables of a switch.  They have tens of thousands of entries, most of which nobody ever
 * touches. */
struct subnet_switch {
	cacheline_aligned _Atomic(uint32_t) linear_top; /* LIDs above it lead nowhere */
	_Atomic(uint32_t) multicast_top; /* the same for multicast LIDs; 0: all lead somewhere */
	cacheline_aligned _Atomic(uint8_t) linear[SUBNET_LINEAR]; /* each xor SUBNET_DROP */
	_Atomic(uint16_t) multicast[SUBNET_MULTICAST / SUBNET_MFT_BLOCK][SUBNET_MFT_SLICES]
				   [SUBNET_MFT_BLOCK]; /* masks of ports */
};

enum subnet_table {
	SUBNET_TABLE_NODES,
	SUBNET_TABLE_PORTS,
	SUBNET_TABLE_GIDS,
	SUBNET_TABLE_GID_INDEX, /* open addressing, a power of two: entries of the pool plus one */
	SUBNET_TABLE_LIDS,	/* rows of ports plus one; SUBNET_LID_CONTESTED */
	SUBNET_TABLE_SWITCHES,	/* by switch_index */
	SUBNET_TABLES,
};

struct subnet_head {
	uint32_t magic;
	uint32_t version;
	uint64_t bytes;
	struct {
		uint64_t offset;
		uint32_t count;
		uint32_t stride;
	} table[SUBNET_TABLES];
	cacheline_aligned _Atomic(uint64_t) epoch; /* 0: not published yet */
	/* Not 0: data to groups goes where multicast tables lead.  0: it goes to every port that
	 * has attached, as if each had joined. */
	_Atomic(uint32_t) groups_by_table;
};

/* A view of the block.  Only the daemon, and tests in its place, may write through it. */
struct subnet {
	struct subnet_head *head;
	struct subnet_node *nodes;
	struct subnet_port *ports;
	struct subnet_gid *gids;
	_Atomic(uint32_t) *gid_index;
	_Atomic(uint32_t) *lids;
	struct subnet_switch *switches;
	uint32_t nnodes, nports, ngids;
	uint32_t nswitches;
	uint32_t gid_index_mask;
};

/* ---- edit.c: the block itself ---- */

struct subnet_shape {
	uint32_t nodes, ports, gids;
	uint32_t switches; /* how many of the nodes are switches */
};

size_t subnet_bytes(const struct subnet_shape *shape);
/* Makes a block of that shape in zeroed, page-aligned memory of subnet_bytes. */
void subnet_format(struct subnet *s, void *memory, const struct subnet_shape *shape);
/* Makes a view of a block that somebody else has made.  Returns 0, -EPROTO if it has another
 * version, or -EBADMSG if its tables do not fit. */
int subnet_attach(struct subnet *s, void *memory, size_t bytes) must_check;

/* ---- lookup.c: looking ---- */

struct subnet_gid_entry {
	union ib_gid gid;
	enum gid_type type;
};

#define SUBNET_PORT_TEXT 80

/* Lanes of a bit of LinkWidthActive; 0: no width has that bit. */
uint32_t subnet_width_lanes(uint32_t width);

#define SUBNET_SPEED_FDR10 8u	      /* which verbs count among the first */
#define SUBNET_SPEED_XDR   (32u << 8) /* behind the bits of LinkSpeedExtActive */

/* A speed of one lane. */
struct subnet_speed {
	uint32_t code;	 /* of LinkSpeedActive, or of LinkSpeedExtActive << 8 */
	uint32_t tenths; /* in 0.1 Gb/s */
	const char *name;
};

/* The fastest of the speeds in the bits; SDR if there is none. */
const struct subnet_speed *subnet_speed_of(uint32_t speed);
/* The speed of a port, by its active width and speed. */
uint64_t subnet_port_bytes_per_second(const struct subnet_port *p);
/* Names a port for people, like "host2/mlx5_0"; a row that does not exist is "nowhere".  The
 * hosts of a fabric are numbered from 1.  Returns text. */
const char *subnet_port_text(const struct subnet *s, uint32_t row, char text[SUBNET_PORT_TEXT]);
/* The port that owns a GID, or SUBNET_NONE. */
uint32_t subnet_port_by_gid(const struct subnet *s, const union ib_gid *gid);
/* Reads an entry of a port's GID table; false if it is empty or past the table's end. */
bool subnet_gid(const struct subnet *s, uint32_t row, uint32_t index, struct subnet_gid_entry *out);
/* True if both are active ports of HCAs.  False also for rows that do not exist. */
bool subnet_walk(const struct subnet *s, uint32_t from, uint32_t to) must_check;

enum subnet_verdict {
	SUBNET_ARRIVES,
	SUBNET_DOWN,	  /* one of the two ports is down */
	SUBNET_LINK_DOWN, /* a link between them is down */
	SUBNET_NO_ROUTE,  /* a switch has no entry for the LID */
	SUBNET_LOOP,
	SUBNET_ELSEWHERE, /* the LID leads to another port */
	SUBNET_PARTITION, /* a switch's port does not let the packet's partition pass */
	SUBNET_MTU,	  /* a link takes only smaller packets */
};

struct subnet_packet {
	uint16_t dlid;
	uint16_t pkey; /* 0: the packet has no partition, and no port checks it */
	uint32_t mtu;  /* enum ib_mtu: no packet is larger; 0 passes everywhere */
};

/*
 * lookup.c: where a packet from a port goes, link by link as the tables of the switches say, and
 * whether it arrives at the port that is meant.  Ethernet has no tables, and neither has a subnet
 * without switches: there every active port reaches every other.
 */
enum subnet_verdict subnet_route_packet(const struct subnet *s, uint32_t from,
					const struct subnet_packet *p, uint32_t to) must_check;
static inline enum subnet_verdict subnet_route(const struct subnet *s, uint32_t from, uint16_t dlid,
					       uint32_t to)
{
	return subnet_route_packet(s, from, &(struct subnet_packet){.dlid = dlid}, to);
}
/*
 * lookup.c: follows the tree that a packet to the multicast LID p->dlid takes.  Calls fn for each
 * link, with the port that the packet leaves by and the port that it comes to, until fn returns
 * false.
 */
typedef bool subnet_link_fn(void *user, uint32_t row, uint32_t peer);
void subnet_follow_group(const struct subnet *s, uint32_t from, const struct subnet_packet *p,
			 subnet_link_fn *fn, void *user);
/* True if the packet comes to that port.  It always comes to the sender's own port, and to every
 * port if tables do not decide. */
bool subnet_group_reaches(const struct subnet *s, uint32_t from, const struct subnet_packet *p,
			  uint32_t to) must_check;
/* True if a packet with that P_Key may pass the port.  direction: SUBNET_ENFORCES_IN or
 * SUBNET_ENFORCES_OUT. */
bool subnet_port_lets_pass(const struct subnet_port *p, uint16_t pkey, uint8_t direction);
/* The port on the way that does not let the packet pass because of its P_Key, or SUBNET_NONE. */
uint32_t subnet_refused_at(const struct subnet *s, uint32_t from, const struct subnet_packet *p);
/* A step of the walk of subnet_route_packet: the port at the other end of a port's link, or
 * SUBNET_NONE if no data passes the link. */
uint32_t subnet_link_peer(const struct subnet *s, uint32_t row);
/* The port to which a LID leads from there: the port that has it or, if several have it, the one to
 * which the tables lead. */
uint32_t subnet_lid_end(const struct subnet *s, uint32_t from, uint16_t dlid);
/* The port by which a switch passes on what has come in at 'row', or SUBNET_NONE. */
uint32_t subnet_forward(const struct subnet *s, uint32_t row, uint16_t dlid);

static inline uint64_t subnet_epoch(const struct subnet *s)
{
	return atomic_load_explicit(&s->head->epoch, memory_order_acquire);
}

static inline uint32_t subnet_port_by_lid(const struct subnet *s, uint16_t lid)
{
	if (lid >= SUBNET_LIDS)
		return SUBNET_NONE;
	/* 0 (no port) becomes SUBNET_NONE */
	return (atomic_load_explicit(&s->lids[lid], memory_order_acquire) & ~SUBNET_LID_CONTESTED) -
	       1;
}

/* True if several ports have the LID, which is a mistake of the subnet's manager. */
static inline bool subnet_lid_contested(const struct subnet *s, uint16_t lid)
{
	return lid < SUBNET_LIDS &&
	       atomic_load_explicit(&s->lids[lid], memory_order_acquire) & SUBNET_LID_CONTESTED;
}

static inline bool subnet_port_active(const struct subnet *s, uint32_t row)
{
	return row < s->nports &&
	       atomic_load_explicit(&s->ports[row].state, memory_order_acquire) == IB_PORT_ACTIVE;
}

/* True if what one Ethernet port sends comes to the other.  It always comes to the port itself. */
static inline bool subnet_ethernet_reaches(const struct subnet *s, uint32_t from, uint32_t to)
{
	uint32_t tie = atomic_load_explicit(&s->ports[from].tie_plus_1, memory_order_acquire);

	if (from == to)
		return true;
	return tie ? tie == to + 1
		   : !atomic_load_explicit(&s->ports[to].tie_plus_1, memory_order_acquire);
}

/* True if what the port sends leaves the fabric. */
static inline bool subnet_ethernet_leads_out(const struct subnet *s, uint32_t row)
{
	return atomic_load_explicit(&s->ports[row].tie_plus_1, memory_order_acquire) == row + 1;
}

static inline const struct subnet_node *subnet_node_of(const struct subnet *s, uint32_t row)
{
	return &s->nodes[s->ports[row].node];
}

/* The row of a node's port with that number, or SUBNET_NONE. */
static inline uint32_t subnet_node_port(const struct subnet_node *node, uint32_t number)
{
	uint32_t at = node->kind == SUBNET_SWITCH ? number : number - 1;

	return at < node->nports ? node->first_port + at : SUBNET_NONE;
}

/* How many entries a port's tables show to programs. */
static inline uint32_t subnet_port_gids(const struct subnet_port *p)
{
	return p->ethernet ? SUBNET_ETHERNET_GIDS : SUBNET_IB_GIDS;
}

static inline uint32_t subnet_port_pkeys(const struct subnet_port *p)
{
	return p->ethernet ? 1 : SUBNET_IB_PKEYS;
}

static inline uint16_t subnet_pkey(const struct subnet_port *p, uint32_t index)
{
	return atomic_load_explicit(&p->pkeys[index], memory_order_acquire);
}

/* ---- edit.c: changes, for the daemon's one thread ---- */

/*
 * Takes the next nports rows of ports and the next node.  Each port gets room for 'gids' entries of
 * the pool; on a switch only port 0 does, because the others have no GID.  Returns the node's row,
 * or -ENOSPC if the block has no more.
 */
int64_t subnet_add_node(struct subnet *s, const struct subnet_node *node, bool ethernet,
			uint32_t gids) must_check;
/* Raises the epoch and returns true if it changes anything.  The functions below that set LIDs and
 * GIDs raise it likewise. */
bool subnet_set_state(struct subnet *s, uint32_t row, enum ib_port_state state);
/* Sets tie_plus_1.  Raises the epoch. */
void subnet_set_tie(struct subnet *s, uint32_t row, uint32_t tie_plus_1);
/*
 * Sets LID and LMC of a port; LID 0 takes them away.  Returns 0, -EINVAL if it is not a unicast LID
 * or not a multiple of 2^lmc, or -EADDRINUSE if another port, *owner, has one of these.
 */
int subnet_set_lid(struct subnet *s, uint32_t row, uint16_t lid, uint32_t lmc,
		   uint32_t *owner) must_check;
/*
 * The same for a subnet manager, which moves LIDs in any order: the port that claims a LID last has
 * it.  The port that loses it still says that it has it.  Returns 0 or -EINVAL.
 */
int subnet_claim_lid(struct subnet *s, uint32_t row, uint32_t lid, uint32_t lmc) must_check;
/*
 * Sets an entry of a port's GID table; NULL empties it.  Returns 0, -ERANGE past the room of the
 * port, or -EADDRINUSE if another port, *owner, has that GID.
 */
int subnet_set_gid(struct subnet *s, uint32_t row, uint32_t index,
		   const struct subnet_gid_entry *entry, uint32_t *owner) must_check;
/* Raises the epoch when something outside the block changes that routes depend on. */
void subnet_raise_epoch(struct subnet *s);
