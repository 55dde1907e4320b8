// SPDX-License-Identifier: BSD-2-Clause
/*
 * A slot changes hands while a process gets to know its owner: nothing of the one that has ended is
 * taken for its successor's.
 */
#include "base/hazard.h"
#include "test_fabric.h"

static struct test_process a, b;
static unsigned received;

static void ignore_packet(void *user, const struct pkt *p)
{
	(void)user;
	(void)p;
}

static void count_packet(void *user, const struct pkt *p)
{
	(void)user;
	(void)p;
	received++;
}

/* The owner of slot 1 ends, of which process a is told, and another one comes. */
static void change_hands(struct test_fabric *fabric)
{
	uint32_t alive = atomic_exchange(&fabric->slots[1].alive, 0);

	wire_process_drop_channel(a.host, 1);
	close(fabric->channel_fd);
	test_fabric_new_channel(fabric);
	atomic_store(&fabric->slots[1].alive, alive + 1);
	fabric->meanwhile = NULL;
}

static enum wire_verdict send_one(void)
{
	const struct pkt p = {
		.opcode = BTH_RC | BTH_ACK, .dqpn = test_fabric_qpn(1), .path = &a.path};

	return wire_xmit(a.wire, &p);
}

static void expect_arrives(void)
{
	unsigned before = received;

	CHECK(send_one() == WIRE_SENT);
	CHECK(wire_process_progress(b.host) && received == before + 1);
}

/* The new owner opens its channel first. */
static void test_channel_of_the_ended(struct test_fabric *fabric)
{
	test_process_up(&a, fabric, 0, ignore_packet, NULL);
	test_process_up(&b, fabric, 1, count_packet, NULL);
	fabric->meanwhile = change_hands;
	CHECK(send_one() == WIRE_LOST && !fabric->meanwhile);
	test_process_add_channel(&b);
	test_process_add_channel(&a);
	expect_arrives();
	test_process_down(&b);
	test_process_down(&a);
}

/* We ask for the new owner's channel. */
static void test_asked_again(struct test_fabric *fabric)
{
	test_process_up(&a, fabric, 0, ignore_packet, NULL);
	test_process_up(&b, fabric, 1, count_packet, NULL);
	fabric->meanwhile = change_hands;
	CHECK(send_one() == WIRE_LOST && !fabric->meanwhile);
	test_process_add_channel(&b);
	expect_arrives();
	test_process_down(&b);
	test_process_down(&a);
}

/* ---- what it lays open ---- */

static struct test_fabric *changes; /* as soon as what the owner lays open is mapped */

struct remote *__real_remote_open(struct slot *slots, uint16_t slot, uint16_t me);
struct remote *__wrap_remote_open(struct slot *slots, uint16_t slot, uint16_t me);

struct remote *__wrap_remote_open(struct slot *slots, uint16_t slot, uint16_t me)
{
	struct remote *f = __real_remote_open(slots, slot, me);

	CHECK(f);
	if (changes) {
		change_hands(changes);
		changes = NULL;
		test_process_add_channel(&a);
	}
	return f;
}

static bool is_reached(void)
{
	bool found;

	hazard_enter();
	found = wire_remote(a.wire, &a.path, test_fabric_qpn(1));
	hazard_leave();
	return found;
}

static void test_mapped_of_the_ended(struct test_fabric *fabric)
{
	fabric->expose = true;
	fabric->slots[1].pid = getpid();
	test_process_up(&a, fabric, 0, ignore_packet, NULL);
	test_process_up(&b, fabric, 1, count_packet, NULL);
	changes = fabric;
	wire_remote_connect(a.wire, &a.path, test_fabric_qpn(1));
	CHECK(!changes && !is_reached());
	wire_remote_connect(a.wire, &a.path, test_fabric_qpn(1));
	CHECK(is_reached());
	test_process_down(&b);
	test_process_down(&a);
}

int main(void)
{
	struct test_fabric *fabric = test_fabric_create();

	test_channel_of_the_ended(fabric);
	test_asked_again(fabric);
	test_mapped_of_the_ended(fabric);
	return 0;
}
