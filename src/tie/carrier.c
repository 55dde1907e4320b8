// SPDX-License-Identifier: BSD-2-Clause
/* See carrier.h. */
#include "tie/carrier.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "fabric/client/client.h"
#include "fabric/protocol.h"
#include "tie/packets.h"
#include "wire/payload.h"
#include "wire/capture.h"
#include "wire/tap.h"
#include "wire/wire.h"

/*
 * Limit of a wait for room.  Threads are told of room; this is for a telling that comes between the
 * refusal and the wait.
 */
#define ROOM_WAIT_NS 2000000
#define STUCK_NS     1000000000u

struct carrier {
	struct carrier_attr attr;
	struct fabric_client *fabric;
	pthread_mutex_t lock; /* guards the fields below, until the wire can take channels */
	struct wire_process *process;
	struct wire *wire;
	struct slot *slot;
	pthread_t thread;
	_Atomic(bool) stop;
	bool end_open;
	int stop_fd;
	pthread_mutex_t put_lock; /* guards the other end's put */
	struct packets packets;
	struct packets_out out; /* for the further thread */
	/* Nobody took frames to this chunk of numbers for a second: we do not wait for it; plus
	 * 1. */
	uint32_t stuck_plus_1;
	bool group_stuck; /* likewise those who listen to a group */
	_Atomic(uint32_t)
		progressed; /* how often the further thread had something to do; a futex */
};

static void carrier_kick(struct carrier *c)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&c->slot->driver, memory_order_relaxed) == SLOT_NOBODY)
		futex_store_and_wake(&c->slot->driver, SLOT_ENGINE);
}

/* ---- what the daemon tells; on the control thread ---- */

static void carrier_on_channel(void *user, uint16_t peer, int fd, size_t bytes, int side)
{
	struct carrier *c = user;

	pthread_mutex_lock(&c->lock);
	if (c->process)
		(void)wire_process_add_channel(c->process, peer, fd, bytes, side);
	else
		close(fd);
	if (c->slot)
		carrier_kick(c);
	pthread_mutex_unlock(&c->lock);
}

static void carrier_on_gone(void *user, uint16_t peer)
{
	struct carrier *c = user;

	pthread_mutex_lock(&c->lock);
	if (c->process)
		wire_process_drop_channel(c->process, peer);
	pthread_mutex_unlock(&c->lock);
}

/* Both threads do this, so the state is looked up under the lock: the newest is told last. */
static void carrier_port_settle(struct carrier *c)
{
	struct tie_end *end = c->attr.end;

	if (!end->ops->port)
		return;
	pthread_mutex_lock(&c->lock);
	if (c->process)
		end->ops->port(end, subnet_port_active(fabric_subnet(c->fabric), c->attr.row));
	pthread_mutex_unlock(&c->lock);
}

static void carrier_on_port(void *user, uint32_t port_row, enum ib_event event)
{
	struct carrier *c = user;

	if (port_row == c->attr.row &&
	    (event == IB_EVENT_PORT_ACTIVE || event == IB_EVENT_PORT_ERR))
		carrier_port_settle(c);
}

/* Queue pair 1 of the port has sent something out of the fabric. */
static void carrier_on_gsi(void *user, const struct gsi_datagram *d)
{
	struct carrier *c = user;

	pthread_mutex_lock(&c->lock);
	if (c->process)
		wire_process_take_gsi(c->process, d);
	pthread_mutex_unlock(&c->lock);
}

static void carrier_on_group(void *user, const union ib_gid *gid, bool joins)
{
	struct carrier *c = user;
	struct tie_end *end = c->attr.end;

	if (end->ops->group)
		end->ops->group(end, gid, joins);
}

static void carrier_on_capture(void *user, const struct msg_capture_ring *ring, int fd)
{
	const struct capture_attr attr = {ring->id, ring->ports, ring->want};
	struct carrier *c = user;
	int ret = 0;

	pthread_mutex_lock(&c->lock);
	if (c->process)
		ret = wire_capture_begin(c->process, &attr, fd);
	pthread_mutex_unlock(&c->lock);
	if (ret)
		log_warn("packets cannot be captured: %s", strerror(-ret));
}

static void carrier_on_capture_end(void *user, uint32_t id)
{
	struct carrier *c = user;

	pthread_mutex_lock(&c->lock);
	if (c->process)
		wire_capture_end(c->process, id);
	pthread_mutex_unlock(&c->lock);
}

/* The port was untied, or the daemon has gone: the carrier ends. */
static void carrier_on_lost(void *user)
{
	carrier_stop(user);
}

static int carrier_open_channel(void *user, uint16_t peer, int *fd, size_t *bytes, int *side)
{
	struct carrier *c = user;

	return fabric_open_channel(c->fabric, peer, fd, bytes, side);
}

/* ---- what programs send ---- */

static void carrier_count(struct carrier *c, enum carried what)
{
	atomic_fetch_add_explicit(&c->slot->carried[what], 1, memory_order_relaxed);
}

void carrier_count_out(struct carrier *c, bool lost)
{
	carrier_count(c, lost ? CARRIED_OUT_DROPPED : CARRIED_OUT);
}

static bool carrier_put(struct carrier *c, const uint8_t *frame, uint32_t bytes)
{
	struct tie_end *end = c->attr.end;
	bool out;

	pthread_mutex_lock(&c->put_lock);
	out = end->ops->put(end, frame, bytes);
	pthread_mutex_unlock(&c->put_lock);
	return out;
}

/*
 * For struct wire_client.  Returns false: the port has not received the packet, so for the counters
 * nobody wants it.
 */
static bool carrier_receive(void *user, const struct pkt *p)
{
	struct carrier *c = user;
	uint8_t frame[CARRIER_FRAME_MAX];
	struct run whole = {frame, p->payload_len};
	bool out;

	/* A datagram to a group. */
	if (pkt_transport(p) == BTH_UD && c->attr.end->ops->send)
		c->attr.end->ops->send(c->attr.end, p);
	if (pkt_transport(p) != BTH_RAW)
		return false;
	out = p->payload_len <= sizeof(frame) && payload_pull(&whole, 1, p) &&
	      carrier_put(c, frame, p->payload_len);
	carrier_count_out(c, !out);
	return false;
}

static void carrier_receive_one(void *user, const struct pkt *p)
{
	(void)user, (void)p; /* there is no queue pair here */
}

static void carrier_carry_one(struct carrier *c, const struct pkt *p)
{
	struct tie_end *end = c->attr.end;
	struct packets_out *out = &c->out;

	if (end->ops->send) {
		end->ops->send(end, p);
		return;
	}
	packets_put(&c->packets, p, out);
	if (out->asks)
		(void)carrier_put(c, out->arp, sizeof(out->arp));
	carrier_count_out(c, !out->bytes || !carrier_put(c, out->frame, out->bytes));
}

/* The same for packets of queue pairs to those outside of the fabric. */
static void carrier_carry(void *user, const struct pkt *p)
{
	struct carrier *c = user;
	uint32_t n = pkt_wire_packets(p), mtu;
	struct run run;
	struct pkt part;

	if (n == 1) {
		carrier_carry_one(c, p);
		return;
	}
	mtu = pkt_parts_mtu(p);
	if (!mtu)
		carrier_count_out(c, true);
	for (uint32_t i = 0; mtu && i < n; i++) {
		pkt_part(p, mtu, i, &part, &run);
		carrier_carry_one(c, &part);
	}
}

static void carrier_idle(struct carrier *c)
{
	struct tie_end *end = c->attr.end;

	if (end->ops->idle) {
		pthread_mutex_lock(&c->put_lock);
		end->ops->idle(end);
		pthread_mutex_unlock(&c->put_lock);
	}
	(void)wire_process_let_go(c->process);
}

/* Delivers what programs have sent; true: there was something. */
static bool carrier_progress(struct carrier *c)
{
	struct tie_end *end = c->attr.end;

	if (!wire_process_progress(c->process))
		return false;
	if (end->ops->flush)
		end->ops->flush(end);
	/* There may be room in a channel. */
	atomic_fetch_add(&c->progressed, 1);
	futex_wake_all(&c->progressed, FUTEX_OF_PROCESS);
	return true;
}

/* registry/registry.h has the protocol of the word. */
static void *carrier_drain(void *arg)
{
	struct carrier *c = arg;
	_Atomic(uint32_t) *driver = &c->slot->driver;

	own_thread_short_slices();
	while (!atomic_load(&c->stop)) {
		if (carrier_progress(c))
			continue;
		carrier_idle(c);
		atomic_store(driver, SLOT_NOBODY);
		atomic_thread_fence(memory_order_seq_cst);
		if (!carrier_progress(c) && !atomic_load(&c->stop))
			futex_wait_until(driver, SLOT_NOBODY, UINT64_MAX, FUTEX_OF_ALL);
		atomic_store(driver, SLOT_ENGINE);
	}
	carrier_idle(c);
	return NULL;
}

/* ---- what comes in ---- */

static void room_wait(struct carrier *c, uint32_t seen)
{
	futex_wait_for(&c->progressed, seen, ROOM_WAIT_NS, FUTEX_OF_PROCESS);
}

void carrier_count_in(struct carrier *c, bool lost)
{
	carrier_count(c, lost ? CARRIED_IN_DROPPED : CARRIED_IN);
}

void carrier_count_bad(struct carrier *c, bool checksum)
{
	carrier_count(c, CARRIED_IN_BAD);
	if (checksum)
		carrier_count(c, CARRIED_IN_CHECKSUM);
}

void carrier_count_foreign(struct carrier *c)
{
	carrier_count(c, CARRIED_IN_FOREIGN);
}

void carrier_mac(const struct carrier *c, uint8_t mac[6])
{
	memcpy(mac, fabric_subnet(c->fabric)->ports[c->attr.row].mac, 6);
}

/*
 * Brings a packet to a queue pair.  Its sender sends it again if it wants to, so a packet whose
 * process takes nothing does not keep others from their processes.
 */
static enum carrier_verdict packet_arrive(struct carrier *c, const struct pkt *p)
{
	uint32_t chunk_plus_1 = (p->dqpn >> REGISTRY_CHUNK_SHIFT) + 1;
	uint64_t until = clock_ns() + (c->stuck_plus_1 == chunk_plus_1 ? 0 : STUCK_NS);
	enum wire_verdict v;
	uint32_t seen;

	for (;;) {
		seen = atomic_load(&c->progressed);
		v = wire_arrive_packet(c->wire, p);
		if (v != WIRE_BUSY || atomic_load(&c->stop) || clock_ns() >= until)
			break;
		room_wait(c, seen);
	}
	if (v == WIRE_BUSY)
		c->stuck_plus_1 = chunk_plus_1;
	else if (v == WIRE_SENT && c->stuck_plus_1 == chunk_plus_1)
		c->stuck_plus_1 = 0;
	if (atomic_load(&c->stop))
		return CARRIER_ENDS;
	return v == WIRE_SENT ? CARRIER_TAKEN : CARRIER_UNHEARD;
}

static enum carrier_verdict frame_arrive(struct carrier *c, const uint8_t *frame, uint32_t bytes)
{
	struct run run = {(void *)(uintptr_t)frame, bytes};
	struct path path = {.src_port = c->attr.row, .dst_port = SUBNET_NONE};
	const struct pkt pkt = {
		.opcode = BTH_RAW | BTH_SEND_ONLY,
		.sqpn = FRAME_OF_TIE,
		.dqpn = IB_MULTICAST_QPN,
		.npkts = 1,
		.path = &path,
		.payload_len = bytes,
		.nruns = 1,
		.runs = &run,
	};

	memcpy(path.dgid.raw, frame, 6);
	while (!atomic_load(&c->stop)) {
		uint32_t seen = atomic_load(&c->progressed);

		switch (wire_arrive(c->wire, &pkt)) {
		case WIRE_SENT:
			return CARRIER_TAKEN;
		case WIRE_BUSY:
			room_wait(c, seen);
			break;
		default:
			return CARRIER_UNHEARD;
		}
	}
	return CARRIER_ENDS;
}

/* A datagram to a group, which everybody loses who has no room for it. */
static enum carrier_verdict group_arrive(struct carrier *c, struct roce_packet *packet)
{
	uint32_t seen = atomic_load(&c->progressed);
	enum wire_verdict v;

	if (pkt_transport(&packet->pkt) != BTH_UD || !ib_gid_is_multicast(&packet->path.dgid))
		return CARRIER_BAD;
	packet->path.src_port = c->attr.row;
	packet->path.dst_port = SUBNET_NONE;
	v = wire_arrive(c->wire, &packet->pkt);
	if (v == WIRE_BUSY && !c->group_stuck) {
		room_wait(c, seen);
		v = wire_arrive(c->wire, &packet->pkt);
	}
	c->group_stuck = v == WIRE_BUSY;
	return v == WIRE_SENT ? CARRIER_TAKEN : CARRIER_UNHEARD;
}

/* A packet to queue pair 1 or 0, of which the fabric's daemon has the former. */
static enum carrier_verdict mad_arrive(struct carrier *c, const struct roce_packet *packet)
{
	struct gsi_datagram d;

	if (!packets_mad(packet, &d))
		return CARRIER_BAD;
	return fabric_send_gsi(c->fabric, &d) ? CARRIER_TAKEN : CARRIER_UNHEARD;
}

void carrier_sniff(struct carrier *c, const uint8_t *frame, uint32_t bytes)
{
	wire_sniff_arrival(c->wire, frame, bytes);
}

uint32_t carrier_arrive_most(struct carrier *c, const struct roce_packet *packet)
{
	uint32_t qpn = packet->pkt.dqpn;

	return qpn <= IB_GSI_QPN || qpn == IB_MULTICAST_QPN ? 0 : wire_arrive_most(c->wire, qpn);
}

enum carrier_verdict carrier_arrive_packet(struct carrier *c, struct roce_packet *packet)
{
	packets_locate(&c->packets, packet);
	if (unlikely(packet->pkt.dqpn == IB_MULTICAST_QPN))
		return group_arrive(c, packet);
	return packet->pkt.dqpn <= IB_GSI_QPN ? mad_arrive(c, packet)
					      : packet_arrive(c, &packet->pkt);
}

enum carrier_verdict carrier_arrive(struct carrier *c, const uint8_t *frame, uint32_t bytes)
{
	uint8_t arp[ARP_FRAME_BYTES];
	struct roce_packet packet;
	enum packets_verdict v = packets_take(&c->packets, frame, bytes, &packet);

	switch (v) {
	case PACKETS_PACKET:
		carrier_sniff(c, frame, bytes);
		return carrier_arrive_packet(c, &packet);
	case PACKETS_CHECKSUM:
	case PACKETS_BAD:
		carrier_count_bad(c, v == PACKETS_CHECKSUM);
		return CARRIER_BAD;
	case PACKETS_NONE:
		break;
	}
	if (neighbour_answers(&c->packets.neighbours, frame, bytes, arp))
		(void)carrier_put(c, arp, sizeof(arp));
	return frame_arrive(c, frame, bytes);
}

void carrier_all_in(struct carrier *c)
{
	atomic_store(&c->slot->carried_all, 1);
}

/* Returns milliseconds for poll(2), rounded up. */
static int sleep_ms(uint64_t until_ns)
{
	uint64_t now = clock_ns(), ms = until_ns > now ? (until_ns - now + 999999) / 1000000 : 0;

	if (until_ns == UINT64_MAX)
		return -1;
	return ms > 1000000 ? 1000000 : (int)ms;
}

#define SLEEP_FDS 3u

bool carrier_sleep(struct carrier *c, uint64_t until_ns, const int *fds, unsigned n)
{
	struct pollfd poll_fds[SLEEP_FDS + 1] = {{c->stop_fd, POLLIN, 0}};
	int ret;

	for (unsigned i = 0; i < n && i < SLEEP_FDS; i++)
		poll_fds[i + 1] = (struct pollfd){fds[i], POLLIN, 0};
	do {
		ret = poll(poll_fds, n + 1, sleep_ms(until_ns));
	} while (!atomic_load(&c->stop) && ret <= 0 && (ret < 0 || clock_ns() < until_ns));
	return !atomic_load(&c->stop);
}

/* Tells the daemon how the other end is. */
static int carrier_tell(struct carrier *c, const char *warning)
{
	struct tie_end *end = c->attr.end;
	struct msg_tie tie = {.row = c->attr.row, .up = end->ops->is_up(end), .gid = end->gid};

	tie.mtu = atomic_load(&end->mtu);
	(void)text_copy(tie.text, sizeof(tie.text), c->attr.text);
	(void)text_copy(tie.warning, sizeof(tie.warning), warning);
	return fabric_carry(c->fabric, &tie);
}

void carrier_link_changed(struct carrier *c)
{
	if (carrier_tell(c, ""))
		carrier_stop(c);
}

void carrier_warn(struct carrier *c, const char *warning)
{
	log_warn("%s: %s", c->attr.text, warning);
	if (carrier_tell(c, warning))
		carrier_stop(c);
}

/* ---- up and down ---- */

void carrier_stop(struct carrier *c)
{
	const uint64_t one = 1;

	atomic_store(&c->stop, true);
	if (write(c->stop_fd, &one, sizeof(one)) < 0)
		return; /* the descriptor is readable already */
}

static int carrier_connect(struct carrier *c)
{
	const struct fabric_client_ops ops = {
		.channel = carrier_on_channel,
		.gone = carrier_on_gone,
		.port = carrier_on_port,
		.gsi = carrier_on_gsi,
		.group = carrier_on_group,
		.capture = carrier_on_capture,
		.capture_end = carrier_on_capture_end,
		.lost = carrier_on_lost,
		.user = c,
	};
	int ret;

	pthread_mutex_lock(&c->lock);
	ret = fabric_client_open_in(&c->attr.where, &ops, &c->fabric);
	if (!ret) {
		const struct wire_process_attr attr = {
			.registry = fabric_registry(c->fabric),
			.subnet = fabric_subnet(c->fabric),
			.slots = fabric_slots(c->fabric),
			.slot = fabric_slot(c->fabric),
			.open_channel = carrier_open_channel,
			.carries = true,
			.user = c,
		};

		c->slot = &attr.slots[attr.slot];
		ret = wire_process_create(&attr, &c->process);
	}
	pthread_mutex_unlock(&c->lock);
	return ret;
}

static void carrier_disconnect(struct carrier *c)
{
	struct wire_process *process = c->process;

	if (c->wire) {
		wire_attach(c->wire, NULL);
		wire_destroy(c->wire);
		packets_release(&c->packets);
	}
	if (c->end_open && c->attr.end->ops->close)
		c->attr.end->ops->close(c->attr.end, c->slot);
	pthread_mutex_lock(&c->lock);
	c->process = NULL;
	pthread_mutex_unlock(&c->lock);
	if (process)
		wire_process_destroy(process);
	if (c->fabric)
		fabric_client_close(c->fabric);
}

/* From here on programs' frames come in; they wait until the further thread runs. */
static int carrier_tie(struct carrier *c)
{
	const struct wire_client client = {
		.receive = carrier_receive_one,
		.receive_group = carrier_receive,
		.carry = carrier_carry,
		.user = c,
	};
	int ret = wire_create(c->process, c->attr.row, &c->wire);

	if (ret)
		return ret;
	packets_init(&c->packets, fabric_subnet(c->fabric), c->attr.row);
	wire_attach(c->wire, &client);
	ret = carrier_tell(c, "");
	if (ret)
		return ret;
	wire_listen(c->wire, WIRE_GROUP_FRAMES);
	for (unsigned g = WIRE_GROUP_FRAMES + 1; c->attr.end->ops->send && g < WIRE_GROUP_BITS; g++)
		wire_listen(c->wire, g);
	carrier_port_settle(c);
	return 0;
}

/* Starts the further thread without signals, because they are for the caller's thread. */
static int drain_start(struct carrier *c)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&c->thread, NULL, carrier_drain, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -ret;
}

static int carrier_end_open(struct carrier *c)
{
	const struct tie_end_ops *ops = c->attr.end->ops;
	int ret = ops->open ? ops->open(c->attr.end, c->slot) : 0;

	c->end_open = !ret;
	return ret;
}

int carrier_open(const struct carrier_attr *attr, struct carrier **out)
{
	struct carrier *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	c->attr = *attr;
	c->attr.end->carrier = c;
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->put_lock, NULL);
	c->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = c->stop_fd < 0 ? -errno : 0;
	if (!ret)
		ret = carrier_connect(c);
	if (!ret)
		ret = carrier_end_open(c);
	if (!ret)
		ret = carrier_tie(c);
	if (!ret)
		ret = drain_start(c);
	if (!ret) {
		*out = c;
		return 0;
	}
	carrier_disconnect(c);
	if (c->stop_fd >= 0)
		close(c->stop_fd);
	pthread_mutex_destroy(&c->put_lock);
	pthread_mutex_destroy(&c->lock);
	free(c);
	return ret;
}

void carrier_run(struct carrier *c)
{
	own_thread_short_slices();
	c->attr.end->ops->take(c->attr.end, c);
	while (carrier_sleep(c, UINT64_MAX, NULL, 0))
		;
	carrier_kick(c);
	pthread_join(c->thread, NULL);
}

void carrier_close(struct carrier *c)
{
	carrier_disconnect(c);
	close(c->stop_fd);
	pthread_mutex_destroy(&c->put_lock);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
