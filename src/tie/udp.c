// SPDX-License-Identifier: BSD-2-Clause
/* Datagrams out and in; see udp.h. */
#include "tie/udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tie/link_watch.h"

#define DEFAULT_HOPS 64u /* what the kernel writes unless it is told */
#define ROOM_WAIT_MS 20	 /* for room in the socket */
#define WARN_NS	     1000000000u
#define BATCHES	     64u /* in a row, until we look whether the tie has ended */

static struct end_udp *end_udp_of(struct tie_end *e)
{
	return container_of(e, struct end_udp, end);
}

/* ---- out ---- */

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
	if (!udp_is_peer(&u->socket, &path->dgid))
		return "a program sends to an address that is none of the peers; see peers= of "
		       "softhca fabric tie";
	return NULL;
}

/* Waits until the socket has room; false: it has none for some time. */
static bool room_wait(const struct end_udp *u)
{
	struct pollfd p = {u->socket.fd, POLLOUT, 0};

	return poll(&p, 1, ROOM_WAIT_MS) > 0;
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
	unsigned done = 0;

	while (done < b->n) {
		int n = sendmmsg(u->socket.fd, b->message, batch_form(u, done), 0);
		int error = errno;
		unsigned row = (unsigned)b->message[0].msg_hdr.msg_iovlen;

		for (int i = 0; i < n; i++) {
			row = (unsigned)b->message[i].msg_hdr.msg_iovlen;
			for (unsigned k = 0; k < row; k++)
				carrier_count_out(u->end.carrier, false);
			done += row;
		}
		if (n > 0 || error == EINTR ||
		    ((error == EAGAIN || error == ENOBUFS) && room_wait(u)))
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
	}
	b->n = 0;
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

static enum carrier_verdict datagram_arrive(struct carrier *c, const struct roce_datagram *d,
					    uint8_t *payload, uint32_t bytes)
{
	/* The headers go over the end of the datagram in front of it, which has been taken. */
	uint8_t *frame = roce_datagram_frame(d, payload, bytes);
	struct roce_packet packet;
	enum roce_verdict v;

	bytes += (uint32_t)(payload - frame);
	v = roce_datagram_decode(frame, bytes, &packet);
	if (likely(v == ROCE_TAKEN))
		return carrier_arrive_packet(c, frame, bytes, &packet);
	carrier_count_bad(c, v == ROCE_CRC);
	return CARRIER_BAD;
}

/* Takes a datagram, or a row of them.  False: the carrier has to end. */
static bool row_arrive(struct end_udp *u, struct carrier *c, unsigned i)
{
	struct msghdr *m = &u->in.message[i].msg_hdr;
	uint32_t bytes = u->in.message[i].msg_len, size = bytes;
	uint8_t *payload = u->in.data[i] + ROCE_ROUTING_MAX;
	struct roce_datagram d = {.dgid = u->socket.gid, .hop_limit = DEFAULT_HOPS};

	source_read(&u->in.address[i], &d);
	/* Before anything else: what others send is not even looked at. */
	if (unlikely(!udp_is_peer(&u->socket, &d.sgid))) {
		carrier_count_foreign(c);
		carrier_count_in(c, true);
		return true;
	}
	ours_note(u, &d.sgid, d.sport == ROCE_V2_UDP_PORT);
	control_read(m, &d, &size);
	carrier_mac(c, d.dmac);
	do {
		uint32_t n = bytes < size ? bytes : size;
		enum carrier_verdict v;

		v = datagram_arrive(c, &d, payload, n);
		if (v == CARRIER_ENDS)
			return false;
		carrier_count_in(c, v != CARRIER_TAKEN);
		d.identification++;
		payload += n;
		bytes -= n;
	} while (bytes);
	return true;
}

/* Returns true if there may be more. */
static bool batch_take(struct end_udp *u, struct carrier *c)
{
	int n;

	arrivals_prepare(&u->in);
	n = recvmmsg(u->socket.fd, u->in.message, UDP_ARRIVALS, MSG_DONTWAIT, NULL);
	/* An error is one that an ICMP message tells of, and taken away by this call. */
	if (n < 0)
		return errno != EAGAIN;
	for (int i = 0; i < n; i++)
		if (!row_arrive(u, c, (unsigned)i))
			return false;
	return n == (int)UDP_ARRIVALS;
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

static void end_udp_take(struct tie_end *e, struct carrier *c)
{
	struct end_udp *u = end_udp_of(e);
	const int fds[] = {u->socket.fd, u->socket.links};
	struct pollfd links = {u->socket.links, POLLIN, 0};

	while (carrier_sleep(c, UINT64_MAX, fds, 2)) {
		for (unsigned i = 0; i < BATCHES && batch_take(u, c); i++)
			;
		if (poll(&links, 1, 0) > 0)
			network_look(u, c);
	}
}

static const struct tie_end_ops end_udp_ops = {
	.put = end_udp_put,
	.send = end_udp_send,
	.flush = end_udp_flush,
	.take = end_udp_take,
	.is_up = end_udp_is_up,
};

void end_udp_init(struct end_udp *e, const struct udp_socket *u, bool single)
{
	memset(e, 0, sizeof(*e));
	e->end.ops = &end_udp_ops;
	e->end.gid = u->gid;
	e->socket = *u;
	e->single = single;
	if (single)
		(void)strncat(e->socket.text, " gso=off",
			      sizeof(e->socket.text) - strlen(e->socket.text) - 1);
}
