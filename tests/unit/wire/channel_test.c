/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes on the wire, as two threads and as two real processes:
 *
 *      process 0  -- packets -->  process 1
 *                 <-- packets --
 *
 * Each side sends packets whose every field follows from their number, with payload cut from a
 * block of random bytes that both have; the other side computes the same packet and compares.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "test_fabric.h"
#include "wire/channel.h"
#include "wire/inbox.h"
#include "usermem/usermem.h"
#include "wire/payload.h"
#include "test_fault.h"

#define BLOCK_BYTES (4u << 20)

static unsigned char *block;
static unsigned packets = 20000;

/* One direction of the traffic, as its receiver sees it. */
struct flow {
	struct test_process st;
	_Atomic(uint32_t) got; /* written under the receive lock */
	unsigned by_reference;
	pthread_mutex_t number; /* several threads send: takes a number and sends as one step */
	uint32_t next;
};

/* Packet "psn" of the direction towards slot dst. */
static const uint32_t no_keys[RUNS_MAX];

static void make_packet(struct pkt *p, struct run *runs, const struct path *path, uint16_t dst,
			uint32_t psn, uint32_t max_inline, uint32_t max_reference)
{
	struct rng rng = {psn * 2u + 1 + dst};
	bool big = rng_below(&rng, 16) == 0;
	uint32_t max = big ? max_reference : (uint32_t)rng_below(&rng, 2) ? 200 : max_inline;
	uint8_t op = rng_below(&rng, 2) ? BTH_WRITE_ONLY : BTH_COMPARE_SWAP;
	uint32_t left;

	*p = (struct pkt){
		.opcode = BTH_RC | op,
		.ack_req = big,
		.dqpn = test_fabric_qpn(dst) + (uint32_t)rng_below(&rng, 1024),
		.psn = psn,
		.npkts = 1 + (uint32_t)rng_below(&rng, 100),
		.imm = (uint32_t)rng_next(&rng),
		.va = rng_below(&rng, 2) ? rng_next(&rng) : 0,
		.rkey = (uint32_t)rng_next(&rng),
		.compare = op == BTH_COMPARE_SWAP ? rng_next(&rng) : 0,
		.path = path,
		.payload_len = (uint32_t)rng_below(&rng, max + 1),
		.runs = runs,
		.run_keys = no_keys,
	};
	for (left = p->payload_len; left; p->nruns++) {
		uint32_t len = p->nruns == 9 ? left : 1 + (uint32_t)rng_below(&rng, left);

		runs[p->nruns].addr = block + rng_below(&rng, BLOCK_BYTES - len);
		runs[p->nruns].len = len;
		left -= len;
	}
}

#define MAX_INLINE    20000u
#define MAX_REFERENCE 60000u

static void receive_packet(void *user, const struct pkt *p)
{
	static _Thread_local unsigned char got[MAX_REFERENCE], want[MAX_REFERENCE];
	struct flow *f = user;
	struct path path = {.src_port = !f->st.slot, .dst_port = f->st.slot};
	struct run runs[RUNS_MAX], to;
	struct pkt w;

	make_packet(&w, runs, &path, f->st.slot, f->got++, MAX_INLINE, MAX_REFERENCE);
	CHECK(p->opcode == w.opcode && p->ack_req == w.ack_req && p->dqpn == w.dqpn);
	CHECK(p->psn == w.psn && p->npkts == w.npkts && p->imm == w.imm && p->va == w.va);
	CHECK(p->rkey == w.rkey && p->compare == w.compare && p->payload_len == w.payload_len);
	CHECK(p->path->src_port == path.src_port && p->path->dst_port == path.dst_port);
	to = (struct run){got, p->payload_len};
	CHECK(payload_pull(&to, 1, p));
	to.addr = want;
	CHECK(usermem_pull(&to, 1, w.runs, w.nruns));
	CHECK(!memcmp(got, want, p->payload_len));
	f->by_reference += p->foreign != NULL;
}

/* Sends the next packet; false if there is no room or none is left. */
static bool send_one(struct flow *f)
{
	struct run runs[RUNS_MAX];
	enum wire_verdict v;
	struct pkt p;
	bool sent = false;

	pthread_mutex_lock(&f->number);
	if (f->next < packets) {
		make_packet(&p, runs, &f->st.path, !f->st.slot, f->next, MAX_INLINE, MAX_REFERENCE);
		v = wire_xmit(f->st.wire, &p);
		CHECK(v == WIRE_SENT || v == WIRE_BUSY);
		sent = v == WIRE_SENT;
		f->next += sent;
	}
	pthread_mutex_unlock(&f->number);
	return sent;
}

static bool sent_all(struct flow *f)
{
	bool all;

	pthread_mutex_lock(&f->number);
	all = f->next == packets;
	pthread_mutex_unlock(&f->number);
	return all;
}

/* One thread of a process: sends in bursts and receives until both directions are done. */
static void *test_process_loop(void *arg)
{
	struct flow *f = arg;
	struct rng rng = {f->st.slot + 1u};

	while (!sent_all(f) || atomic_load(&f->got) < packets) {
		for (uint64_t n = rng_below(&rng, 20); n && send_one(f); n--)
			;
		if (!wire_process_progress(f->st.host))
			sched_yield();
	}
	return NULL;
}

static void flow_start(struct flow *f, struct test_fabric *fabric, uint16_t slot)
{
	*f = (struct flow){.number = PTHREAD_MUTEX_INITIALIZER};
	test_process_up(&f->st, fabric, slot, receive_packet, f);
	test_process_live(&f->st);
	test_process_add_channel(&f->st);
}

static void check_counters(struct test_process *out, struct test_process *in)
{
	CHECK(test_process_counter(out, PORT_XMIT_PACKETS) ==
	      test_process_counter(in, PORT_RCV_PACKETS));
	CHECK(test_process_counter(out, PORT_XMIT_DATA) == test_process_counter(in, PORT_RCV_DATA));
	CHECK(test_process_counter(out, PORT_XMIT_DATA) > 0);
	CHECK(!test_process_counter(out, PORT_XMIT_DISCARDS));
}

/* Two threads each stand for a process; with more, several send and poll on each side. */
static void between_threads(unsigned threads_each)
{
	struct test_fabric *fabric = test_fabric_create();
	static struct flow f[2];
	pthread_t t[8];
	unsigned n = 0;

	flow_start(&f[0], fabric, 0);
	flow_start(&f[1], fabric, 1);
	for (unsigned i = 0; i < threads_each; i++)
		for (int s = 0; s < 2; s++)
			CHECK(!pthread_create(&t[n++], NULL, test_process_loop, &f[s]));
	while (n)
		pthread_join(t[--n], NULL);
	for (int s = 0; s < 2; s++) {
		CHECK(f[s].got == packets);
		check_counters(&f[s].st, &f[!s].st);
		CHECK(wire_max_payload(f[s].st.wire, &f[s].st.path, test_fabric_qpn(!s), 4096,
				       false) == 61440);
	}
	for (int s = 0; s < 2; s++)
		test_process_down(&f[s].st);
}

static void between_processes(void)
{
	struct test_fabric *fabric = test_fabric_create();
	static struct flow f;
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		flow_start(&f, fabric, 1);
		test_process_loop(&f);
		/* The parent may still read what went by reference. */
		while (!atomic_load(&fabric->slots[2].alive))
			usleep(100);
		test_process_down(&f.st);
		_exit(0);
	}
	flow_start(&f, fabric, 0);
	test_process_loop(&f);
	atomic_store(&fabric->slots[2].alive, 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(f.got == packets);
	fprintf(stderr, "between processes: %u of %u packets read from the sender's memory\n",
		f.by_reference, packets);
	test_process_down(&f.st);
}

/* ---- trouble ---- */

static _Atomic(unsigned) ignored;

static void ignore_packet(void *user, const struct pkt *p)
{
	(void)user;
	(void)p;
	ignored++;
}

static struct channel_mem *map_channel(struct test_fabric *fabric)
{
	void *p = mmap(NULL, TEST_FABRIC_CHANNEL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		       fabric->channel_fd, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static enum wire_verdict send_small(struct test_process *st)
{
	struct pkt p = {.opcode = BTH_RC | BTH_ACK,
			.dqpn = test_fabric_qpn(!st->slot),
			.npkts = 1,
			.path = &st->path};

	return wire_xmit(st->wire, &p);
}

/* The ring fills, the sender hears of room, nothing is lost or doubled. */
static void full_ring(void)
{
	struct test_fabric *fabric = test_fabric_create();
	struct test_process a, b;
	unsigned sent = 0, total;

	ignored = 0;
	test_process_up(&a, fabric, 0, ignore_packet, NULL);
	test_process_up(&b, fabric, 1, ignore_packet, NULL);
	while (send_small(&a) == WIRE_SENT) /* opens the channel: b does not know yet */
		sent++;
	CHECK(sent > 8000 && sent < 8200 && atomic_load(&fabric->opened) == 1);
	CHECK(send_small(&a) == WIRE_BUSY && !wire_process_progress(b.host));
	while (wire_process_progress(a.host))
		;
	test_process_add_channel(&b);
	test_process_add_channel(&b); /* again: harmless */
	CHECK(wire_process_progress(b.host) && ignored > 0 && ignored < sent);
	while (wire_process_progress(b.host))
		;
	CHECK(ignored == sent);
	CHECK(wire_process_progress(a.host)); /* room */
	total = sent;
	for (sent = 0; sent < 100; sent++)
		CHECK(send_small(&a) == WIRE_SENT);
	while (wire_process_progress(b.host))
		;
	CHECK(ignored == total + 100);
	test_process_down(&a);
	test_process_down(&b);
}

/* Addressed to the sender's own host, a packet does not reach the other, whose number it names. */
static void wrong_address(void)
{
	struct test_fabric *fabric = test_fabric_create();
	struct test_process a, b;
	struct path wrong;
	struct pkt p = {.opcode = BTH_RC | BTH_SEND_ONLY, .dqpn = test_fabric_qpn(1), .npkts = 1};

	ignored = 0;
	test_process_up(&a, fabric, 0, ignore_packet, NULL);
	test_process_up(&b, fabric, 1, ignore_packet, NULL);
	wrong = a.path;
	wrong.dst_port = wrong.src_port;
	p.path = &wrong;
	CHECK(wire_xmit(a.wire, &p) == WIRE_LOST && !atomic_load(&fabric->opened));
	CHECK(test_process_counter(&a, PORT_XMIT_DISCARDS) == 1);
	p.path = &a.path;
	CHECK(wire_xmit(a.wire, &p) == WIRE_SENT);
	test_process_add_channel(&b);
	while (wire_process_progress(b.host))
		;
	CHECK(ignored == 1);
	test_process_down(&a);
	test_process_down(&b);
}

/* A payload whose memory has gone is not sent, and the ring is as before. */
static void test_payload_gone(void)
{
	struct test_fabric *fabric = test_fabric_create();
	struct test_process a, b;
	struct run run = {(void *)4096, 100};
	struct pkt p = {.opcode = BTH_UD | BTH_SEND_ONLY,
			.dqpn = test_fabric_qpn(1),
			.npkts = 1,
			.payload_len = 100,
			.runs = &run,
			.nruns = 1};

	ignored = 0;
	test_process_up(&a, fabric, 0, ignore_packet, NULL);
	test_process_up(&b, fabric, 1, ignore_packet, NULL);
	p.path = &a.path;
	test_process_add_channel(&b);
	CHECK(wire_xmit(a.wire, &p) == WIRE_FAULT);
	CHECK(send_small(&a) == WIRE_SENT);
	p.payload_len = 1u << 20; /* more than was promised */
	CHECK(wire_xmit(a.wire, &p) == WIRE_LOST);
	while (wire_process_progress(b.host))
		;
	CHECK(ignored == 1);
	test_process_down(&a);
	test_process_down(&b);
}

/* Where a process may not read the other (here: finds nobody alive), payloads go through the ring,
 * in that direction only. */
static void reading_forbidden(void)
{
	struct test_fabric *fabric = test_fabric_create();
	struct channel_mem *mem = map_channel(fabric);
	struct test_process a, b;

	test_process_up(&a, fabric, 0, ignore_packet, NULL);
	test_process_up(&b, fabric, 1, ignore_packet, NULL);
	test_process_live(&b);
	test_process_add_channel(&a);
	CHECK(wire_max_payload(a.wire, &a.path, test_fabric_qpn(1), 4096, true) == 61440);
	test_process_add_channel(&b);
	for (int i = 0; i < 4; i++) {
		wire_process_progress(b.host);
		wire_process_progress(a.host);
	}
	CHECK(atomic_load(&mem->side[1].readable) == READABLE_NO);
	CHECK(atomic_load(&mem->side[0].readable) == READABLE_YES);
	CHECK(wire_max_payload(a.wire, &a.path, test_fabric_qpn(1), 4096, true) == 61440);
	CHECK(wire_max_payload(b.wire, &b.path, test_fabric_qpn(0), 4096, true) ==
	      CHANNEL_REFERENCE_MAX);
	CHECK(wire_max_payload(b.wire, &b.path, test_fabric_qpn(0), 4096, false) == 61440);
	/* The right is lost again: the other direction goes through the ring too, after the next
	 * packet. */
	atomic_store(&mem->side[0].readable, READABLE_NO);
	CHECK(send_small(&a) == WIRE_SENT);
	wire_process_progress(b.host);
	CHECK(wire_max_payload(b.wire, &b.path, test_fabric_qpn(0), 4096, true) == 61440);
	test_process_down(&a);
	test_process_down(&b);
	munmap(mem, TEST_FABRIC_CHANNEL_BYTES);
}

/* ---- receivers that are stopped ---- */

static enum wire_verdict send_datagram(struct test_process *st, bool no_wait)
{
	struct run run = {block, 4096};
	struct pkt p = {.opcode = BTH_UD | BTH_SEND_ONLY,
			.dqpn = test_fabric_qpn(!st->slot),
			.npkts = 1,
			.no_wait = no_wait,
			.path = &st->path,
			.payload_len = 4096,
			.runs = &run,
			.nruns = 1};

	return wire_xmit(st->wire, &p);
}

/* Datagrams wait for a receiver that is slow and not for one that takes nothing. */
static void stopped_receiver(void)
{
	struct test_fabric *fabric = test_fabric_create();
	enum wire_verdict v;
	struct test_process a, b;
	unsigned sent = 0;

	ignored = 0;
	test_process_up(&a, fabric, 0, ignore_packet, NULL);
	test_process_up(&b, fabric, 1, ignore_packet, NULL);
	test_process_add_channel(&b);
	while ((v = send_datagram(&a, false)) == WIRE_SENT)
		sent++;
	CHECK(v == WIRE_BUSY && !test_process_counter(&a, PORT_XMIT_DISCARDS));
	/* others wait: this one is lost at once, without any time having passed */
	CHECK(send_datagram(&a, true) == WIRE_LOST);
	CHECK(test_process_counter(&a, PORT_XMIT_DISCARDS) == 1);
	while ((v = send_datagram(&a, false)) == WIRE_BUSY)
		;
	CHECK(v == WIRE_LOST && send_datagram(&a, false) == WIRE_LOST);
	CHECK(test_process_counter(&a, PORT_XMIT_DISCARDS) == 3);
	while ((v = send_small(&a)) == WIRE_SENT) /* what is left of the room */
		sent++;
	CHECK(v == WIRE_BUSY); /* what is reliable waits all the same */
	/* it goes on, and stops again */
	while (wire_process_progress(b.host))
		;
	CHECK(ignored == sent && wire_process_progress(a.host));
	while ((v = send_datagram(&a, false)) == WIRE_SENT)
		sent++;
	CHECK(v == WIRE_BUSY && sent > ignored);
	test_process_down(&a);
	test_process_down(&b);
}

/* Whatever is written over the channel: no crash, and the other side only stops talking to it. */
static void test_noise(void)
{
	struct rng rng = {3};

	for (int round = 0; round < 300; round++) {
		struct test_fabric *fabric = test_fabric_create();
		struct channel_mem *mem = map_channel(fabric);
		struct test_process a, b;
		uint64_t *words = (uint64_t *)mem;
		uint64_t reach = rng_below(&rng, 2) ? 64 : TEST_FABRIC_CHANNEL_BYTES / 8;

		test_process_up(&a, fabric, 0, ignore_packet, NULL);
		test_process_up(&b, fabric, 1, ignore_packet, NULL);
		test_process_add_channel(&a);
		test_process_add_channel(&b);
		for (int i = 0; i < 200; i++)
			CHECK(send_small(rng_below(&rng, 2) ? &a : &b) == WIRE_SENT);
		for (int i = 0; i < 50; i++) {
			for (int k = 0; k < 20; k++)
				words[rng_below(&rng, reach)] =
					rng_below(&rng, 2) ? rng_next(&rng) : rng_below(&rng, 4096);
			send_small(&a);
			send_small(&b);
			inbox_raise(&fabric->slots[0], 1);
			inbox_raise(&fabric->slots[1], 0);
			wire_process_progress(a.host);
			wire_process_progress(b.host);
		}
		test_process_down(&a);
		test_process_down(&b);
		munmap(mem, TEST_FABRIC_CHANNEL_BYTES);
		close(fabric->channel_fd);
	}
}

/* The peer dies in the middle: what it had sent arrives, then packets to it are lost. */
static void peer_death(void)
{
	struct test_fabric *fabric = test_fabric_create();
	struct test_process a;
	pid_t pid;

	ignored = 0;
	test_process_up(&a, fabric, 0, ignore_packet, NULL);
	test_process_add_channel(&a);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		struct test_process b;

		test_process_up(&b, fabric, 1, ignore_packet, NULL);
		for (int i = 0; i < 1000; i++)
			CHECK(send_small(&b) == WIRE_SENT);
		raise(SIGKILL);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(send_small(&a) == WIRE_SENT); /* nobody knows yet */
	atomic_store(&fabric->slots[1].alive, 0);
	wire_process_drop_channel(a.host, 1);
	wire_process_drop_channel(a.host, 1);
	CHECK(send_small(&a) == WIRE_LOST);
	while (wire_process_progress(a.host))
		;
	CHECK(ignored == 1000);

	/* Another process takes the slot. */
	close(fabric->channel_fd);
	test_fabric_new_channel(fabric);
	atomic_store(&fabric->slots[1].alive, 2);
	CHECK(send_small(&a) == WIRE_SENT);
	test_process_down(&a);
}

/*
 * Two owners of a slot end one after the other, the second while what the first has sent arrives, and
 * the channel is one at which the receiver looks in any case.
 */
static unsigned ends_at;

static void end_with_packet(void *user, const struct pkt *p)
{
	struct test_process *st = user;

	(void)p;
	if (++ignored == ends_at)
		wire_process_drop_channel(st->host, 1);
}

static void two_deaths(void)
{
	struct test_fabric *fabric = test_fabric_create();
	struct test_process a, b;

	ignored = 0;
	ends_at = 2;
	test_process_up(&a, fabric, 0, end_with_packet, &a);
	test_process_add_channel(&a);
	for (unsigned owner = 0; owner < 2; owner++) {
		test_process_up(&b, fabric, 1, ignore_packet, NULL);
		test_process_add_channel(&b);
		CHECK(send_small(&b) == WIRE_SENT);
		if (!owner) {
			CHECK(wire_process_progress(a.host) && ignored == 1);
			CHECK(send_small(&b) == WIRE_SENT);
			wire_process_drop_channel(a.host, 1);
			close(fabric->channel_fd);
			test_fabric_new_channel(fabric);
			test_process_add_channel(&a);
		}
		test_process_down(&b);
	}
	while (wire_process_progress(a.host))
		;
	CHECK(ignored == 3);
	test_process_down(&a);
}

/* Channels come and go while threads send and receive. */
static _Atomic(bool) stop;

static void *send_loop(void *arg)
{
	struct test_process *st = arg;

	while (!atomic_load(&stop)) {
		send_small(st);
		wire_process_progress(st->host);
	}
	return NULL;
}

static void test_churn(void)
{
	struct test_fabric *fabric = test_fabric_create();
	struct test_process a, b;
	pthread_t t[3];

	test_process_up(&a, fabric, 0, ignore_packet, NULL);
	test_process_up(&b, fabric, 1, ignore_packet, NULL);
	atomic_store(&stop, false);
	CHECK(!pthread_create(&t[0], NULL, send_loop, &a));
	CHECK(!pthread_create(&t[1], NULL, send_loop, &a));
	CHECK(!pthread_create(&t[2], NULL, send_loop, &b));
	for (int i = 0; i < 2000; i++) {
		wire_process_drop_channel(a.host, 1);
		if (i % 3 == 0)
			wire_process_drop_channel(b.host, 0);
		sched_yield();
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	test_process_down(&a);
	test_process_down(&b);
}

/* A sleeping engine is woken by the first packet, as struct slot says. */
static void *sleep_until_woken(void *arg)
{
	struct test_process *st = arg;
	struct slot *s = &st->fabric->slots[st->slot];

	for (unsigned before = ignored; ignored < before + 200;) {
		if (wire_process_progress(st->host))
			continue;
		atomic_store(&s->driver, SLOT_NOBODY);
		atomic_thread_fence(memory_order_seq_cst);
		if (!wire_process_progress(st->host)) /* the alarm ends a sleep that nobody ends */
			syscall(SYS_futex, &s->driver, FUTEX_WAIT, SLOT_NOBODY, NULL, NULL, 0);
		atomic_store(&s->driver, SLOT_ENGINE);
	}
	return NULL;
}

static void test_waking(void)
{
	struct test_fabric *fabric = test_fabric_create();
	struct test_process a, b;
	pthread_t t;

	test_process_up(&a, fabric, 0, ignore_packet, NULL);
	test_process_up(&b, fabric, 1, ignore_packet, NULL);
	test_process_add_channel(&b);
	CHECK(!pthread_create(&t, NULL, sleep_until_woken, &b));
	for (int i = 0; i < 200; i++) {
		CHECK(send_small(&a) == WIRE_SENT);
		usleep(100);
	}
	pthread_join(t, NULL);
	test_process_down(&a);
	test_process_down(&b);
}

int main(int argc, char **argv)
{
	struct rng rng = {42};

	if (argc > 1)
		packets = (unsigned)strtoul(argv[1], NULL, 0);
	alarm(120); /* nothing may hang */
	test_fault_catch();
	block = malloc(BLOCK_BYTES);
	CHECK(block);
	for (size_t i = 0; i < BLOCK_BYTES; i++)
		block[i] = (unsigned char)rng_next(&rng);

	between_processes();
	between_threads(1);
	between_threads(3);
	full_ring();
	wrong_address();
	test_payload_gone();
	reading_forbidden();
	stopped_receiver();
	test_noise();
	peer_death();
	two_deaths();
	test_churn();
	test_waking();
	return 0;
}
