// SPDX-License-Identifier: BSD-2-Clause
/* Datagrams out and in; see udp.h. */
#include "tie/udp.h"

#include <arpa/inet.h>
#include <errno.h>
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

static void address_set(const struct end_udp *u, const union ib_gid *gid, union udp_address *a,
			struct msghdr *m)
{
	m->msg_name = a;
	if (ib_gid_is_ipv4(gid)) {
		a->in = (struct sockaddr_in){.sin_family = AF_INET,
					     .sin_port = htons(ROCE_V2_UDP_PORT)};
		memcpy(&a->in.sin_addr, gid->raw + 12, 4);
		m->msg_namelen = sizeof(a->in);
		return;
	}
	a->in6 = (struct sockaddr_in6){.sin6_family = AF_INET6,
				       .sin6_port = htons(ROCE_V2_UDP_PORT),
				       .sin6_scope_id = u->socket.scope};
	memcpy(&a->in6.sin6_addr, gid->raw, 16);
	m->msg_namelen = sizeof(a->in6);
}

static void control_put(struct msghdr *m, int level, int type, int value)
{
	struct cmsghdr *c = (struct cmsghdr *)((uint8_t *)m->msg_control + m->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(sizeof(value));
	memcpy(CMSG_DATA(c), &value, sizeof(value));
	m->msg_controllen += CMSG_SPACE(sizeof(value));
}

/* What the kernel is to write into the header, as far as it is not what it writes anyway. */
static void control_set(const struct path *path, struct msghdr *m)
{
	bool ipv4 = ib_gid_is_ipv4(&path->sgid);

	if (path->traffic_class)
		control_put(m, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_TOS : IPV6_TCLASS,
			    path->traffic_class);
	if (path->hop_limit && path->hop_limit != DEFAULT_HOPS)
		control_put(m, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_TTL : IPV6_HOPLIMIT,
			    path->hop_limit);
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

/* Sends what has been collected. */
static void batch_send(struct end_udp *u)
{
	struct udp_batch *b = &u->out;
	unsigned done = 0;

	while (done < b->n) {
		int n = sendmmsg(u->socket.fd, b->message + done, b->n - done, 0);
		int error = errno;

		if (n > 0) {
			for (int i = 0; i < n; i++)
				carrier_count_out(u->end.carrier, false);
			done += (unsigned)n;
			continue;
		}
		if (error == EINTR || ((error == EAGAIN || error == ENOBUFS) && room_wait(u)))
			continue;
		/* The first one is lost, and the rest may still go. */
		packet_lose(u, error == EAGAIN || error == ENOBUFS ? NULL : send_explain(error));
		done++;
	}
	b->n = 0;
}

static void end_udp_send(struct tie_end *e, const struct pkt *p)
{
	struct end_udp *u = end_udp_of(e);
	const char *refused = path_refused(u, p->path);
	struct udp_batch *b = &u->out;
	struct msghdr *m = &b->message[b->n].msg_hdr;
	struct path path;
	struct pkt sent = *p;
	uint32_t bytes, routing;

	if (refused) {
		packet_lose(u, refused);
		return;
	}
	/* The CRC covers the port that the packet comes from. */
	path = *p->path;
	path.udp_sport = ROCE_V2_UDP_PORT;
	sent.path = &path;
	bytes = roce_encode(&sent, path.dmac, path.dmac, b->data[b->n], UDP_ROOM);
	routing = roce_routing_octets(&path);
	if (bytes <= routing) {
		packet_lose(u, NULL);
		return;
	}
	b->iov[b->n] = (struct iovec){b->data[b->n] + routing, bytes - routing};
	*m = (struct msghdr){
		.msg_iov = &b->iov[b->n], .msg_iovlen = 1, .msg_control = b->control[b->n]};
	address_set(u, &path.dgid, &b->address[b->n], m);
	control_set(&path, m);
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

static void batch_prepare(struct udp_batch *b)
{
	for (unsigned i = 0; i < UDP_BATCH; i++) {
		b->iov[i] =
			(struct iovec){b->data[i] + ROCE_ROUTING_MAX, UDP_ROOM - ROCE_ROUTING_MAX};
		b->message[i].msg_hdr = (struct msghdr){.msg_name = &b->address[i],
							.msg_namelen = sizeof(b->address[i]),
							.msg_iov = &b->iov[i],
							.msg_iovlen = 1,
							.msg_control = b->control[i],
							.msg_controllen = sizeof(b->control[i])};
	}
}

/* Reads what the kernel says of the header. */
static void control_read(struct msghdr *m, struct roce_datagram *d)
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
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS)
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

static enum carrier_verdict datagram_arrive(struct end_udp *u, struct carrier *c, unsigned i)
{
	struct msghdr *m = &u->in.message[i].msg_hdr;
	uint32_t bytes = u->in.message[i].msg_len;
	uint8_t *payload = u->in.data[i] + ROCE_ROUTING_MAX;
	struct roce_datagram d = {.dgid = u->socket.gid, .hop_limit = DEFAULT_HOPS};
	struct roce_packet packet;
	enum roce_verdict v;
	uint8_t *frame;

	source_read(&u->in.address[i], &d);
	/* Before anything else: what others send is not even looked at. */
	if (unlikely(!udp_is_peer(&u->socket, &d.sgid))) {
		carrier_count_foreign(c);
		return CARRIER_BAD;
	}
	if (unlikely(m->msg_flags & MSG_TRUNC)) {
		carrier_count_bad(c, false);
		return CARRIER_BAD;
	}
	control_read(m, &d);
	carrier_mac(c, d.dmac);
	frame = roce_datagram_frame(&d, payload, bytes);
	bytes += (uint32_t)(payload - frame);
	v = roce_datagram_decode(frame, bytes, &packet);
	if (likely(v == ROCE_TAKEN))
		return carrier_arrive_packet(c, frame, bytes, &packet);
	carrier_count_bad(c, v == ROCE_CRC);
	return CARRIER_BAD;
}

/* Returns true if there may be more. */
static bool batch_take(struct end_udp *u, struct carrier *c)
{
	int n;

	batch_prepare(&u->in);
	n = recvmmsg(u->socket.fd, u->in.message, UDP_BATCH, MSG_DONTWAIT, NULL);
	/* An error is one that an ICMP message tells of, and taken away by this call. */
	if (n < 0)
		return errno != EAGAIN;
	for (int i = 0; i < n; i++) {
		enum carrier_verdict v = datagram_arrive(u, c, (unsigned)i);

		if (v == CARRIER_ENDS)
			return false;
		carrier_count_in(c, v != CARRIER_TAKEN);
	}
	return n == (int)UDP_BATCH;
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

void end_udp_init(struct end_udp *e, const struct udp_socket *u)
{
	memset(e, 0, sizeof(*e));
	e->end.ops = &end_udp_ops;
	e->end.gid = u->gid;
	e->socket = *u;
}
