// SPDX-License-Identifier: BSD-2-Clause
/* Datagrams out and in; see udp.h. */
#include "tie/udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "tie/link_watch.h"
#include "tie/packets.h"

#define DEFAULT_HOPS 64u /* what the kernel writes unless it is told */
#define ROOM_WAIT_MS 20	 /* for room in the socket */
#define WARN_NS	     1000000000u
#define BATCHES	     64u /* in a row, until we look whether the tie has ended */

static struct end_udp *end_udp_of(struct tie_end *e)
{
	return container_of(e, struct end_udp, end);
}

/* ---- out ---- */

/* Octets of a packet from the IP header on. */
static uint32_t packet_octets(const struct udp_packet *p)
{
	return p->frame_bytes - ETHERNET_OCTETS;
}

static void packet_count(struct end_udp *u, const struct udp_packet *p)
{
	carrier_count_out(u->end.carrier, false);
	if (unlikely(!p->peer))
		return;
	peer_add(p->peer, PEER_OUT, 1);
	peer_add(p->peer, PEER_OUT_BYTES, packet_octets(p));
}

static void packet_lose(struct end_udp *u, const char *warning)
{
	carrier_count_out(u->end.carrier, true);
	if (warning)
		u->warning = warning;
}

/* Raw Ethernet frames have no way through a socket. */
static bool end_udp_put(struct tie_end *e, const uint8_t *frame, uint32_t bytes)
{
	(void)frame, (void)bytes;
	end_udp_of(e)->warning = "a program sends Ethernet frames, and only RoCE v2 leaves here";
	return false;
}

static void address_set(const struct end_udp *u, const union ib_gid *gid, struct udp_packet *p)
{
	memset(&p->address, 0, sizeof(p->address));
	if (ib_gid_is_ipv4(gid)) {
		p->address.in = (struct sockaddr_in){.sin_family = AF_INET,
						     .sin_port = htons(ROCE_V2_UDP_PORT)};
		memcpy(&p->address.in.sin_addr, gid->raw + 12, 4);
		p->address_bytes = sizeof(p->address.in);
		return;
	}
	p->address.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6,
					       .sin6_port = htons(ROCE_V2_UDP_PORT),
					       .sin6_scope_id = u->socket.scope};
	memcpy(&p->address.in6.sin6_addr, gid->raw, 16);
	p->address_bytes = sizeof(p->address.in6);
}

static void control_put(struct udp_packet *p, int level, int type, const void *value, size_t bytes)
{
	struct cmsghdr *c = (struct cmsghdr *)(p->control + p->control_bytes);

	memset(c, 0, CMSG_SPACE(bytes));
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(c), value, bytes);
	p->control_bytes += (uint32_t)CMSG_SPACE(bytes);
}

/* What the kernel is to write into the header, as far as it is not what it writes anyway. */
static void control_set(const struct path *path, bool notification, struct udp_packet *p)
{
	bool ipv4 = ib_gid_is_ipv4(&path->sgid);
	int level = ipv4 ? IPPROTO_IP : IPPROTO_IPV6, value;

	p->control_bytes = 0;
	value = path->traffic_class;
	/* Routers may mark whatever does not say otherwise, but nobody answers a marked CNP. */
	if (!(value & IP_ECN) && !notification)
		value |= IP_ECN_CAPABLE;
	if (value != IP_ECN_CAPABLE)
		control_put(p, level, ipv4 ? IP_TOS : IPV6_TCLASS, &value, sizeof(value));
	value = path->hop_limit;
	if (value && value != (int)DEFAULT_HOPS)
		control_put(p, level, ipv4 ? IP_TTL : IPV6_HOPLIMIT, &value, sizeof(value));
}

/* Why a packet cannot leave; NULL: it can. */
static const char *path_refused(const struct end_udp *u, const struct path *path)
{
	if (path->roce_v1 || memcmp(&path->sgid, &u->socket.gid, sizeof(path->sgid)) != 0)
		return "a program sends from a GID that is not the address of this tie; GIDs have "
		       "changed since it has made its queue pair or address handle";
	if (ib_gid_is_multicast(&path->dgid))
		return ib_gid_is_ipv4(&path->dgid) == ib_gid_is_ipv4(&path->sgid)
			       ? NULL
			       : "a program sends to a group of another family than the address of "
				 "the tie";
	if (!udp_is_peer(&u->socket, &path->dgid))
		return "a program sends to an address that is none of the peers; see peers= of "
		       "softhca fabric tie";
	return NULL;
}

/* Waits until there is room; false: there is none for some time.  The socket tells of its own, and nobody of
 * that in the interface's queue (ENOBUFS). */
static bool room_wait(const struct end_udp *u, int error, unsigned *waits)
{
	struct pollfd p = {u->socket.fd, POLLOUT, 0};

	if (error == EAGAIN)
		return poll(&p, 1, ROOM_WAIT_MS) > 0;
	return error == ENOBUFS && (*waits)++ < ROOM_WAIT_MS && poll(NULL, 0, 1) == 0;
}

static bool error_is_of_icmp(int error)
{
	return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH ||
	       error == EMSGSIZE || error == EACCES || error == EPROTO || error == ENOPROTOOPT;
}

static const char *send_explain(int error)
{
	switch (error) {
	case EMSGSIZE:
		return "packets are larger than the interface takes: its MTU is smaller than when "
		       "the queue pairs were made";
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ENETDOWN:
		return "the network of a peer is unreachable; see 'ip route get ADDRESS'";
	case EPERM:
	case EACCES:
		return "a filter of this machine (nft, iptables) refuses packets to a peer";
	default:
		return "the kernel refuses packets to a peer";
	}
}

/*
 * softhca sends from the port that it sends to, and others from higher ones.  Only it takes a packet
 * whatever identification the kernel has given the datagram, which for rows of them no standard says.
 */
static _Atomic(uint64_t) *ours_of(struct end_udp *u, const union ib_gid *gid)
{
	return &u->ours[(gid->raw[15] ^ gid->raw[14] * 31u) % UDP_OURS];
}

static void ours_note(struct end_udp *u, const union ib_gid *gid, bool ours)
{
	_Atomic(uint64_t) *at = ours_of(u, gid);

	if (unlikely(ours && atomic_load_explicit(at, memory_order_relaxed) != gid->half[1]))
		atomic_store_explicit(at, gid->half[1], memory_order_relaxed);
}

static bool takes_rows(struct end_udp *u, const struct udp_packet *p)
{
	union ib_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	if (p->address.sa.sa_family == AF_INET6)
		return true;
	memcpy(gid.raw + 12, &p->address.in.sin_addr, 4);
	return atomic_load_explicit(ours_of(u, &gid), memory_order_relaxed) == gid.half[1];
}

#define ROW_BYTES 65000u /* of a datagram that the kernel cuts */

/* Counts the packets, from the first on, that can leave as one datagram, which the kernel cuts into
 * pieces of the first one's size. */
static unsigned row_count(struct end_udp *u, unsigned first)
{
	struct udp_batch *b = &u->out;
	const struct udp_packet *p = &b->packet[first];
	size_t size = b->iov[first].iov_len, all = size;
	unsigned n = 1;

	if (u->single || first + 1 == b->n || !takes_rows(u, p))
		return 1;
	while (first + n < b->n && n < UDP_BATCH) {
		const struct udp_packet *next = &b->packet[first + n];
		size_t bytes = b->iov[first + n].iov_len;

		/* Only the last one may be shorter. */
		if (bytes > size || b->iov[first + n - 1].iov_len != size ||
		    all + bytes > ROW_BYTES || next->address_bytes != p->address_bytes ||
		    next->control_bytes != p->control_bytes ||
		    memcmp(&next->address, &p->address, p->address_bytes) != 0 ||
		    memcmp(next->control, p->control, p->control_bytes) != 0)
			break;
		all += bytes;
		n++;
	}
	return n;
}

/* Makes messages of the packets from the first on; returns how many. */
static unsigned batch_form(struct end_udp *u, unsigned first)
{
	struct udp_batch *b = &u->out;
	unsigned messages = 0;

	while (first < b->n) {
		struct udp_packet *p = &b->packet[first];
		unsigned n = row_count(u, first);
		struct msghdr *m = &b->message[messages++].msg_hdr;
		uint32_t control_bytes = p->control_bytes;

		if (n > 1) {
			uint16_t size = (uint16_t)b->iov[first].iov_len;

			control_put(p, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size));
		}
		*m = (struct msghdr){
			.msg_name = &p->address,
			.msg_namelen = p->address_bytes,
			.msg_iov = &b->iov[first],
			.msg_iovlen = n,
			.msg_control = p->control,
			.msg_controllen = p->control_bytes,
		};
		p->control_bytes = control_bytes;
		for (unsigned i = 0; i < n && p->address.sa.sa_family == AF_INET; i++)
			roce_datagram_number(p[i].frame, p[i].frame_bytes, (uint16_t)i);
		first += n;
	}
	return messages;
}

/* Sends what has been collected. */
static void batch_send(struct end_udp *u)
{
	struct udp_batch *b = &u->out;
	unsigned done = 0, waits = 0;
	bool again = false;

	while (done < b->n) {
		int n = sendmmsg(u->socket.fd, b->message, batch_form(u, done), 0);
		int error = errno;
		unsigned row = (unsigned)b->message[0].msg_hdr.msg_iovlen;

		for (int i = 0; i < n; i++) {
			row = (unsigned)b->message[i].msg_hdr.msg_iovlen;
			for (unsigned k = 0; k < row; k++)
				packet_count(u, &b->packet[done + k]);
			done += row;
			again = false;
			waits = 0;
		}
		/* The call may have told of a message of ICMP that another packet has caused; then it
		 * has sent nothing, and does not tell of it again. */
		if (n < 0 && !again && error_is_of_icmp(error)) {
			again = true;
			continue;
		}
		if (n > 0 || error == EINTR || room_wait(u, error, &waits))
			continue;
		if (row > 1 && (error == EIO || error == EINVAL || error == EOPNOTSUPP)) {
			u->single = true;
			continue;
		}
		/* The first ones are lost, and the rest may still go. */
		for (unsigned k = 0; k < row; k++)
			packet_lose(u, error == EAGAIN || error == ENOBUFS ? NULL
									   : send_explain(error));
		done += row;
		again = false;
		waits = 0;
	}
	b->n = 0;
}

/* The row of an address, which is as a rule that of the packet before. */
static struct tied_peer *peer_of(struct end_udp *u, const union ib_gid *gid,
				 struct tied_peer **last)
{
	if (likely(*last && !memcmp(&(*last)->gid, gid, sizeof(*gid))))
		return *last;
	*last = peers_find(&u->peers, gid);
	return *last;
}

static void end_udp_send(struct tie_end *e, const struct pkt *p)
{
	struct end_udp *u = end_udp_of(e);
	const char *refused = path_refused(u, p->path);
	struct udp_batch *b = &u->out;
	struct udp_packet *out = &b->packet[b->n];
	struct path path;
	struct pkt sent = *p;
	uint32_t routing;

	if (refused) {
		packet_lose(u, refused);
		return;
	}
	/* The CRC covers the port that the packet comes from. */
	path = *p->path;
	path.udp_sport = ROCE_V2_UDP_PORT;
	sent.path = &path;
	out->frame_bytes = roce_encode(&sent, path.dmac, path.dmac, out->frame, UDP_ROOM);
	routing = roce_routing_octets(&path);
	if (out->frame_bytes <= routing) {
		packet_lose(u, NULL);
		return;
	}
	b->iov[b->n] = (struct iovec){out->frame + routing, out->frame_bytes - routing};
	address_set(u, &path.dgid, out);
	control_set(&path, p->opcode == BTH_CONGESTION, out);
	out->peer = peer_of(u, &path.dgid, &u->peer_out);
	if (likely(out->peer))
		peers_send(&u->peers, out->peer, p);
	if (++b->n == UDP_BATCH)
		batch_send(u);
}

/* Telling asks the daemon, so a program that does two things wrong in turn is not told of each. */
static void warning_tell(struct end_udp *u)
{
	uint64_t now = clock_ns();

	if (u->warning != u->warned && (!u->warned || now - u->warned_ns >= WARN_NS)) {
		carrier_warn(u->end.carrier, u->warning);
		u->warned = u->warning;
		u->warned_ns = now;
	}
	u->warning = NULL;
}

static void end_udp_flush(struct tie_end *e)
{
	struct end_udp *u = end_udp_of(e);

	if (u->out.n)
		batch_send(u);
	if (unlikely(u->warning))
		warning_tell(u);
}

/* ---- in ---- */

static void arrivals_prepare(struct udp_arrivals *b)
{
	for (unsigned i = 0; i < UDP_ARRIVALS; i++) {
		b->iov[i] = (struct iovec){b->data[i] + ROCE_ROUTING_MAX, UDP_MOST};
		b->message[i].msg_hdr = (struct msghdr){.msg_name = &b->address[i],
							.msg_namelen = sizeof(b->address[i]),
							.msg_iov = &b->iov[i],
							.msg_iovlen = 1,
							.msg_control = b->control[i],
							.msg_controllen = sizeof(b->control[i])};
	}
}

/* Reads what the kernel says of the header.  *size: of each datagram of a row, if it is one. */
static void control_read(struct msghdr *m, struct roce_datagram *d, uint32_t *size)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		int value = 0;

		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
			d->traffic_class = *CMSG_DATA(c);
			continue;
		}
		if (c->cmsg_len < CMSG_LEN(sizeof(value)))
			continue;
		memcpy(&value, CMSG_DATA(c), sizeof(value));
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO && value > 0)
			*size = (uint32_t)value;
		else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS)
			d->traffic_class = (uint8_t)value;
		else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
			 (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT))
			d->hop_limit = (uint8_t)value;
	}
}

static void source_read(const union udp_address *a, struct roce_datagram *d)
{
	if (a->sa.sa_family == AF_INET) {
		d->sgid = (union ib_gid){.raw = {[10] = 0xff, [11] = 0xff}};
		memcpy(d->sgid.raw + 12, &a->in.sin_addr, 4);
		d->sport = ntohs(a->in.sin_port);
	} else {
		memcpy(d->sgid.raw, &a->in6.sin6_addr, 16);
		d->sport = ntohs(a->in6.sin6_port);
	}
}

/* ---- what came spoiled ---- */

static bool address_is_private(const uint8_t ip[4])
{
	return ip[0] == 10 || ip[0] == 127 || (ip[0] == 172 && (ip[1] & 0xf0) == 16) ||
	       (ip[0] == 192 && ip[1] == 168) || (ip[0] == 169 && ip[1] == 254) ||
	       (ip[0] == 100 && (ip[1] & 0xc0) == 64);
}

#define NAT_ADVICE                                                                                 \
	"a NAT is between, which RoCE does not pass: tie both ports to addresses that reach each " \
	"other as they are (no NAT, or a VPN)"

static void nat_tell(struct end_udp *u, struct carrier *c, const union ib_gid *gid, const char *how,
		     const uint8_t *address)
{
	char from[INET_ADDRSTRLEN] = "", was[INET_ADDRSTRLEN] = "another port";

	(void)inet_ntop(AF_INET, gid->raw + 12, from, sizeof(from));
	if (address)
		(void)inet_ntop(AF_INET, address, was, sizeof(was));
	(void)snprintf(u->nat, sizeof(u->nat), "packets of %s were sent %s %s: " NAT_ADVICE, from,
		       how, was);
	u->nat_told = true;
	carrier_warn(c, u->nat);
}

/*
 * Tells of a NAT if there is one: two packets that differ, and whose CRC is right for the same
 * private address in place of the one that they came with, have not been spoiled by chance.
 */
static void nat_look(struct end_udp *u, struct carrier *c, const union ib_gid *gid, uint8_t *frame,
		     uint32_t bytes)
{
	struct roce_rewritten now, before = u->rewritten;
	const struct {
		const char *how;
		const uint8_t *now, *before;
	} ways[] = {{"from", now.source, before.source},
		    {"from", now.source_4791, before.source_4791},
		    {"to", now.destination, before.destination}};
	const uint8_t *crc = frame + bytes - ICRC_OCTETS;
	bool again;

	if (u->nat_told || !ib_gid_is_ipv4(gid) || !roce_datagram_rewritten(frame, bytes, &now))
		return;
	again = !memcmp(&u->rewritten_gid, gid, sizeof(*gid)) &&
		memcmp(u->rewritten_crc, crc, sizeof(u->rewritten_crc)) != 0;
	u->rewritten = now;
	u->rewritten_gid = *gid;
	memcpy(u->rewritten_crc, crc, sizeof(u->rewritten_crc));
	if (now.sport == ROCE_V2_UDP_PORT) {
		nat_tell(u, c, gid, "from", NULL);
		return;
	}
	for (size_t i = 0; again && i < array_size(ways); i++)
		if (!memcmp(ways[i].now, ways[i].before, 4) && address_is_private(ways[i].now)) {
			nat_tell(u, c, gid, ways[i].how, ways[i].now);
			return;
		}
}

/* ---- datagrams ---- */

/* A row of datagrams, or a single one. */
struct arrival {
	struct roce_datagram d;
	struct tied_peer *peer;
	uint64_t now_ns;
	struct packets_joined joined; /* those that the fabric has not got yet */
	uint32_t joined_bytes;
};

/* Gives the fabric what has been joined; false: the carrier has to end. */
static bool joined_arrive(struct carrier *c, struct arrival *a)
{
	enum carrier_verdict v;

	if (!a->joined.n)
		return true;
	v = carrier_arrive_packet(c, &a->joined.packet);
	if (v == CARRIER_ENDS)
		return false;
	for (uint32_t i = 0; i < a->joined.n; i++)
		carrier_count_in(c, v != CARRIER_TAKEN);
	if (likely(a->peer)) {
		peer_add(a->peer, PEER_IN, a->joined.n);
		peer_add(a->peer, PEER_IN_BYTES, a->joined_bytes);
		if (v != CARRIER_TAKEN)
			peer_add(a->peer, PEER_IN_DROPPED, a->joined.n);
	}
	a->joined.n = 0;
	a->joined_bytes = 0;
	return true;
}

/* False: the carrier has to end. */
static bool packet_arrive(struct end_udp *u, struct carrier *c, struct arrival *a,
			  const struct roce_packet *packet, uint32_t bytes)
{
	if (likely(a->peer)) {
		peers_take(&u->peers, a->peer, &packet->pkt, a->now_ns);
		atomic_store_explicit(&a->peer->heard_ns, a->now_ns, memory_order_relaxed);
	}
	if (!packets_join(&a->joined, packet)) {
		if (!joined_arrive(c, a))
			return false;
		packets_join_begin(&a->joined, packet, carrier_arrive_most(c, packet));
	}
	a->joined_bytes += bytes - ETHERNET_OCTETS;
	return true;
}

static void datagram_spoiled(struct end_udp *u, struct carrier *c, const struct arrival *a,
			     enum roce_verdict v, uint8_t *frame, uint32_t bytes)
{
	carrier_count_in(c, true);
	carrier_count_bad(c, v == ROCE_CRC);
	if (v != ROCE_CRC)
		return;
	if (likely(a->peer)) {
		peer_add(a->peer, PEER_IN_CHECKSUM, 1);
		atomic_store_explicit(&a->peer->checksum_ns, a->now_ns, memory_order_relaxed);
	}
	nat_look(u, c, &a->d.sgid, frame, bytes);
}

/* False: the carrier has to end. */
static bool datagram_arrive(struct end_udp *u, struct carrier *c, struct arrival *a,
			    uint8_t *payload, uint32_t bytes)
{
	uint8_t before[ROCE_ROUTING_MAX], *frame;
	struct roce_packet packet;
	enum roce_verdict v;

	/* The headers go over the end of the datagram in front of it, which may not have been taken. */
	memcpy(before, payload - sizeof(before), sizeof(before));
	frame = roce_datagram_frame(&a->d, payload, bytes);
	bytes += (uint32_t)(payload - frame);
	v = roce_datagram_decode(frame, bytes, &packet);
	if (likely(v == ROCE_TAKEN))
		carrier_sniff(c, frame, bytes);
	else
		datagram_spoiled(u, c, a, v, frame, bytes);
	memcpy(payload - sizeof(before), before, sizeof(before));
	return v != ROCE_TAKEN || packet_arrive(u, c, a, &packet, bytes);
}

/* Takes a datagram, or a row of them.  False: the carrier has to end. */
static bool row_arrive(struct end_udp *u, struct carrier *c, unsigned i, const union ib_gid *dgid,
		       uint64_t now_ns)
{
	struct msghdr *m = &u->in.message[i].msg_hdr;
	uint32_t bytes = u->in.message[i].msg_len, size = bytes;
	uint8_t *payload = u->in.data[i] + ROCE_ROUTING_MAX;
	struct arrival a;
	struct roce_datagram *d = &a.d;

	a.d = (struct roce_datagram){.dgid = *dgid, .hop_limit = DEFAULT_HOPS};
	a.now_ns = now_ns;
	a.joined.n = 0;
	a.joined_bytes = 0;
	source_read(&u->in.address[i], d);
	/* What the port has sent to a group that it is in. */
	if (ib_gid_is_multicast(dgid) && !memcmp(&d->sgid, &u->socket.gid, sizeof(d->sgid)))
		return true;
	/* Before anything else: what others send is not even looked at. */
	if (unlikely(!udp_is_peer(&u->socket, &d->sgid))) {
		carrier_count_foreign(c);
		carrier_count_in(c, true);
		return true;
	}
	ours_note(u, &d->sgid, d->sport == ROCE_V2_UDP_PORT);
	control_read(m, d, &size);
	carrier_mac(c, d->dmac);
	a.peer = peer_of(u, &d->sgid, &u->peer_in);
	do {
		uint32_t n = bytes < size ? bytes : size;

		if (!datagram_arrive(u, c, &a, payload, n))
			return false;
		d->identification++;
		payload += n;
		bytes -= n;
	} while (bytes);
	return joined_arrive(c, &a);
}

/* Takes what has come to a socket of that address.  Returns true if there may be more. */
static bool batch_take(struct end_udp *u, struct carrier *c, int fd, const union ib_gid *dgid)
{
	uint64_t now_ns;
	int n;

	arrivals_prepare(&u->in);
	n = recvmmsg(fd, u->in.message, UDP_ARRIVALS, MSG_DONTWAIT, NULL);
	/* An error is one that an ICMP message tells of, and taken away by this call. */
	if (n < 0)
		return errno != EAGAIN;
	now_ns = clock_ns();
	for (int i = 0; i < n; i++)
		if (!row_arrive(u, c, (unsigned)i, dgid, now_ns))
			return false;
	return n == (int)UDP_ARRIVALS;
}

/* ---- messages of ICMP ---- */

/* Notes who says that packets do not arrive, and why. */
static void error_note(struct end_udp *u, struct carrier *c, const struct roce_datagram *to,
		       const struct sock_extended_err *e)
{
	struct tied_peer *peer;

	if (!udp_is_peer(&u->socket, &to->sgid))
		return;
	peer = peers_find(&u->peers, &to->sgid);
	if (peer) {
		atomic_fetch_add(&peer->count[PEER_UNREACHABLE], 1);
		atomic_store(&peer->unreachable_errno, e->ee_errno);
		atomic_store(&peer->unreachable_ns, clock_ns());
	}
	if (e->ee_errno != EMSGSIZE || u->narrow == e->ee_info)
		return;
	u->narrow = e->ee_info;
	(void)snprintf(
		u->narrow_text, sizeof(u->narrow_text),
		"a link on the way takes packets of %u bytes, and no larger ones: set the MTU of "
		"this interface to that (ip link set ... mtu %u), and on the other machines",
		e->ee_info, e->ee_info);
	carrier_warn(c, u->narrow_text);
}

/* Takes a message of ICMP that one of our packets has caused; false: there is none. */
static bool error_take(struct end_udp *u, struct carrier *c)
{
	_Alignas(struct cmsghdr) uint8_t control[512];
	union udp_address address = {0};
	struct msghdr m = {.msg_name = &address,
			   .msg_namelen = sizeof(address),
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct roce_datagram to = {0};
	struct sock_extended_err e;

	if (recvmsg(u->socket.fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return false;
	for (struct cmsghdr *at = CMSG_FIRSTHDR(&m); at; at = CMSG_NXTHDR(&m, at)) {
		bool v4 = at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_RECVERR;
		bool v6 = at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_RECVERR;

		if ((!v4 && !v6) || at->cmsg_len < CMSG_LEN(sizeof(e)))
			continue;
		memcpy(&e, CMSG_DATA(at), sizeof(e));
		if (e.ee_origin != SO_EE_ORIGIN_ICMP && e.ee_origin != SO_EE_ORIGIN_ICMP6)
			continue;
		/* The address that the packet was sent to. */
		source_read(&address, &to);
		error_note(u, c, &to, &e);
	}
	return true;
}

/* ---- the network ---- */

static bool end_udp_is_up(struct tie_end *e)
{
	struct end_udp *u = end_udp_of(e);
	struct udp_network network;

	u->up = udp_network_find(&u->socket.gid, u->socket.scope, &network) && network.up &&
		network.mtu;
	if (u->up)
		atomic_store(&e->mtu, network.mtu);
	return u->up;
}

/* The interface, its address or its MTU may have changed. */
static void network_look(struct end_udp *u, struct carrier *c)
{
	uint32_t mtu = atomic_load(&u->end.mtu);
	bool up = u->up;

	link_watch_drain(u->socket.links);
	if (end_udp_is_up(&u->end) != up || atomic_load(&u->end.mtu) != mtu)
		carrier_link_changed(c);
}

static void group_take(void *user, const struct udp_group *group)
{
	struct end_udp *u = user;

	(void)batch_take(u, u->end.carrier, group->fd, &group->gid);
}

static void end_udp_group(struct tie_end *e, const union ib_gid *gid, bool joins)
{
	struct end_udp *u = end_udp_of(e);
	char address[INET6_ADDRSTRLEN] = "";
	bool ipv4 = ib_gid_is_ipv4(gid);
	int ret;

	if (!joins) {
		udp_group_leave(&u->groups, gid);
		return;
	}
	ret = udp_group_join(&u->groups, &u->socket, gid);
	/* Groups of another family are the fabric's own. */
	if (!ret || ret == -EAFNOSUPPORT)
		return;
	(void)inet_ntop(ipv4 ? AF_INET : AF_INET6, gid->raw + (ipv4 ? 12 : 0), address,
			sizeof(address));
	log_warn("the group %s cannot be joined, so nothing comes to it from other machines: %s",
		 address, strerror(-ret));
}

static void end_udp_take(struct tie_end *e, struct carrier *c)
{
	struct end_udp *u = end_udp_of(e);
	const int fds[] = {u->socket.fd, u->socket.links, u->groups.poll};
	struct pollfd events[] = {
		{u->socket.links, POLLIN, 0}, {u->socket.fd, 0, 0}, {u->groups.poll, POLLIN, 0}};

	while (carrier_sleep(c, UINT64_MAX, fds, 3)) {
		for (unsigned i = 0; i < BATCHES && batch_take(u, c, u->socket.fd, &u->socket.gid);
		     i++)
			;
		if (poll(events, 3, 0) <= 0)
			continue;
		if (events[0].revents)
			network_look(u, c);
		for (unsigned i = 0; i < BATCHES && events[1].revents && error_take(u, c); i++)
			;
		if (events[2].revents)
			udp_groups_take(&u->groups, group_take, u);
	}
}

static int end_udp_open(struct tie_end *e, struct slot *slot)
{
	struct end_udp *u = end_udp_of(e);

	if (!udp_groups_open(&u->groups))
		return -errno;
	return peers_open(&u->peers, slot);
}

static void end_udp_close(struct tie_end *e, struct slot *slot)
{
	struct end_udp *u = end_udp_of(e);

	udp_groups_close(&u->groups);
	peers_close(&u->peers, slot);
}

static const struct tie_end_ops end_udp_ops = {
	.open = end_udp_open,
	.close = end_udp_close,
	.put = end_udp_put,
	.send = end_udp_send,
	.flush = end_udp_flush,
	.group = end_udp_group,
	.take = end_udp_take,
	.is_up = end_udp_is_up,
};

void end_udp_init(struct end_udp *e, const struct udp_socket *u, bool single)
{
	e->end.ops = &end_udp_ops;
	e->end.gid = u->gid;
	e->socket = *u;
	e->single = single;
	if (single)
		(void)strncat(e->socket.text, " gso=off",
			      sizeof(e->socket.text) - strlen(e->socket.text) - 1);
}
