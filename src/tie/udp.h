/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cable ends at a UDP socket of this machine: what queue pairs of the port send goes out as
 * RoCE v2 (wire/roce_datagram.h), and needs no privilege.  The socket has one address, which is the
 * port's while it is tied.  A destination is the address that a GID is, and the kernel finds the way
 * there; so nobody asks for MACs, and nothing but RoCE passes.
 */
#pragma once

#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/compiler.h"
#include "prm/ib.h"
#include "tie/carrier.h"
#include "tie/peers.h"
#include "wire/roce_datagram.h"

/* ---- udp_open.c: the socket ---- */

#define UDP_ERROR_BYTES 256u
#define UDP_TEXT_BYTES	128u
#define UDP_PEERS	16u /* networks that can be named */

/* A network: all addresses whose first bits are those of 'gid'. */
struct udp_prefix {
	union ib_gid gid;
	uint8_t bits; /* of the GID: 96 more than of the IPv4 address that it is */
};

struct udp_socket {
	int fd;	   /* bound to the address, port 4791; does not block */
	int links; /* readable when interfaces or addresses have changed */
	union ib_gid gid;
	uint32_t scope; /* of a link-local address: the interface */
	struct udp_prefix peers[UDP_PEERS];
	unsigned npeers;
	char text[UDP_TEXT_BYTES]; /* the address and the peers, as the command takes them */
};

/* Where the address is now. */
struct udp_network {
	bool up;
	enum ib_mtu mtu; /* the largest whose packets its interface takes; 0: not even 256 */
	unsigned bytes;	 /* MTU of the interface */
	char name[IF_NAMESIZE];
	uint32_t index;
	uint8_t bits; /* of the network that is on the link; as in struct udp_prefix */
};

/*
 * Binds the socket.  'address': one of this machine, or NULL: the first that is no loopback.
 * 'peers': networks, divided by commas, from which packets are taken and to which they are sent, or
 * NULL: the one that the address is in.  False: 'error' says what is wrong and what to do.
 */
bool udp_open(struct udp_socket *u, const char *address, const char *peers,
	      char error[UDP_ERROR_BYTES]) must_check;
/* Looks for the interface that has the address; false: none has. */
bool udp_network_find(const union ib_gid *gid, uint32_t scope, struct udp_network *out) must_check;
/* Opens a socket that takes what is sent to a group, by the interface of that index.  The descriptor, or
 * a negative errno. */
int udp_open_group(const union ib_gid *group, uint32_t index) must_check;
/* True if the address is in one of the networks. */
bool udp_is_peer(const struct udp_socket *u, const union ib_gid *gid);

/* ---- udp_groups.c: groups that the port's queue pairs have joined ---- */

#define UDP_GROUPS 256u

struct udp_group {
	union ib_gid gid;
	int fd;
};

/* One thread joins and leaves, and another takes what comes. */
struct udp_groups {
	pthread_mutex_t lock;
	int poll; /* readable if something has come to one of them */
	unsigned n;
	struct udp_group group[UDP_GROUPS];
};

/* False: see errno. */
bool udp_groups_open(struct udp_groups *g) must_check;
void udp_groups_close(struct udp_groups *g);
/* 0 or a negative errno: -ENOBUFS too many, -EAFNOSUPPORT of another family than the socket. */
int udp_group_join(struct udp_groups *g, const struct udp_socket *u,
		   const union ib_gid *gid) must_check;
void udp_group_leave(struct udp_groups *g, const union ib_gid *gid);
/* Calls take for each group to which something has come. */
void udp_groups_take(struct udp_groups *g, void (*take)(void *user, const struct udp_group *group),
		     void *user);

/* ---- udp.c: the end of a tie ---- */

#define UDP_BATCH    64u /* packets of one system call that sends */
#define UDP_ROOM     (ROCE_ROUTING_MAX + ROCE_FRAME_MAX)
#define UDP_ARRIVALS 8u /* datagrams, or rows of them, of one that receives */
#define UDP_MOST     65536u
#define UDP_OURS     256u /* peers that are known to be softhca */

union udp_address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* A packet that waits to be sent. */
struct udp_packet {
	union udp_address address;
	uint32_t address_bytes, control_bytes;
	uint32_t frame_bytes;
	struct tied_peer *peer; /* NULL: it has no row */
	_Alignas(struct cmsghdr)
		uint8_t control[128]; /* what the kernel is to write into the header */
	uint8_t frame[UDP_ROOM];
};

struct udp_batch {
	unsigned n;
	struct mmsghdr message[UDP_BATCH];
	struct iovec iov[UDP_BATCH]; /* of each packet */
	struct udp_packet packet[UDP_BATCH];
};

/* What has come with one system call. */
struct udp_arrivals {
	struct mmsghdr message[UDP_ARRIVALS];
	struct iovec iov[UDP_ARRIVALS];
	union udp_address address[UDP_ARRIVALS];
	_Alignas(struct cmsghdr) uint8_t control[UDP_ARRIVALS][128];
	uint8_t data[UDP_ARRIVALS][ROCE_ROUTING_MAX + UDP_MOST];
};

struct end_udp {
	struct tie_end end;
	struct udp_socket socket;
	_Atomic(bool) up;    /* what the fabric was told last */
	const char *warning; /* what has gone wrong since the last flush; or NULL */
	const char *warned;  /* what was told last */
	uint64_t warned_ns;
	bool single; /* no rows of packets leave as one datagram */
	/* IPv4 addresses of softhca's own kind, which take any identification. */
	_Atomic(uint64_t) ours[UDP_OURS];
	struct peers peers;
	struct udp_groups groups;
	struct udp_arrivals in;	   /* for the thread that takes */
	struct tied_peer *peer_in; /* whom the last packet came from */
	/* What a NAT would have done to the last packet with a wrong CRC, and whose that was. */
	struct roce_rewritten rewritten;
	union ib_gid rewritten_gid;
	uint8_t rewritten_crc[ICRC_OCTETS];
	bool nat_told;
	uint32_t narrow; /* the MTU that the last message of ICMP told of */
	char nat[FABRIC_WARNING_BYTES], narrow_text[FABRIC_WARNING_BYTES];
	struct udp_batch out; /* for the thread that sends */
	struct tied_peer *peer_out;
};

/* Takes the socket over; *e is zeros, of which most stay untouched.  single: each packet leaves as a datagram of its own, as those that look at
 * interfaces (tcpdump) expect it. */
void end_udp_init(struct end_udp *e, const struct udp_socket *u, bool single);
