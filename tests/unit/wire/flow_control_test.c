// SPDX-License-Identifier: BSD-2-Clause
/*
 * Who controls the flows of a port: one process for all of its host, until it says so or has died; and that it
 * hears of each row once.
 */
#include "wire/flow_control.h"

#include "test_fabric.h"
#include "wire/inbox.h"

#define PORT 0u

static struct test_process a, b;

static struct {
	unsigned calls;
	uint16_t slot;
	uint64_t rows; /* one bit each, of the first 64 */
} told;

static void on_changed(void *user, uint16_t slot, uint32_t row)
{
	CHECK(user == &told);
	told.calls++;
	told.slot = slot;
	told.rows |= UINT64_C(1) << row;
}

static void on_changed_else(void *user, uint16_t slot, uint32_t row)
{
	(void)user;
	(void)slot;
	(void)row;
	CHECK(!"another function");
}

static void ignore_packet(void *user, const struct pkt *p)
{
	(void)user;
	(void)p;
}

/* The two slots belong to processes of that many hosts. */
static struct test_fabric *fabric_of(unsigned hosts)
{
	struct test_fabric *f = test_fabric_create();

	atomic_store(&f->registry->slot_host_plus_1[1], hosts);
	atomic_store(&f->registry->slots_used[0], 3);
	return f;
}

static void both_up(struct test_fabric *f)
{
	test_process_up(&a, f, 0, ignore_packet, NULL);
	test_process_up(&b, f, 1, ignore_packet, NULL);
}

static void both_down(void)
{
	test_process_down(&b);
	test_process_down(&a);
}

static uint64_t word_of(const struct test_fabric *f, unsigned slot)
{
	return atomic_load(&f->slots[slot].flows_by[PORT]);
}

/* Is the slot controlled by that one, and observed as often as that makes it? */
static void expect_by(const struct test_fabric *f, unsigned slot, const struct slot *by)
{
	uint64_t word = word_of(f, slot);

	CHECK(!word == !by && atomic_load(&f->slots[slot].observers) == !!by);
	CHECK(!word || flow_control_slot(f->slots, word) == by);
}

static void test_one_for_all(void)
{
	struct test_fabric *f = fabric_of(1);
	uint64_t first;

	both_up(f);
	expect_by(f, 0, NULL);
	CHECK(!flow_control_begin(a.host, PORT, on_changed, &told));
	expect_by(f, 0, &f->slots[0]);
	expect_by(f, 1, &f->slots[0]);
	CHECK(!word_of(f, 0) == !word_of(f, 1) && !atomic_load(&f->slots[1].flows_by[PORT + 1]));
	/* neither another process nor another function */
	CHECK(flow_control_begin(b.host, PORT, on_changed_else, NULL) == -EBUSY);
	CHECK(flow_control_begin(a.host, PORT, on_changed_else, NULL) == -EBUSY);
	expect_by(f, 1, &f->slots[0]);
	first = word_of(f, 1);
	flow_control_end(a.host, PORT);
	expect_by(f, 0, NULL);
	expect_by(f, 1, NULL);
	/* Flows of the time before are told apart. */
	CHECK(!flow_control_begin(a.host, PORT, on_changed, &told));
	CHECK(word_of(f, 1) && word_of(f, 1) != first);
	flow_control_end(a.host, PORT);
	CHECK(!flow_control_begin(b.host, PORT, on_changed, &told));
	expect_by(f, 0, &f->slots[1]);
	flow_control_end(b.host, PORT);
	both_down();
}

static void test_another_host(void)
{
	struct test_fabric *f = fabric_of(2);

	both_up(f);
	CHECK(!flow_control_begin(a.host, PORT, on_changed, &told));
	expect_by(f, 0, &f->slots[0]);
	expect_by(f, 1, NULL);
	CHECK(!flow_control_begin(b.host, PORT, on_changed, &told));
	expect_by(f, 1, &f->slots[1]);
	flow_control_end(b.host, PORT);
	expect_by(f, 0, &f->slots[0]);
	flow_control_end(a.host, PORT);
	both_down();
}

/* One that comes later, and is gone again. */
static void test_join(void)
{
	struct test_fabric *f = fabric_of(1);

	test_process_up(&a, f, 0, ignore_packet, NULL);
	CHECK(!flow_control_begin(a.host, PORT, on_changed, &told));
	atomic_store(&f->slots[1].flows_by[PORT], 0);
	atomic_store(&f->slots[1].observers, 0);
	test_process_up(&b, f, 1, ignore_packet, NULL);
	expect_by(f, 1, &f->slots[0]);
	flow_control_end(a.host, PORT);
	expect_by(f, 1, NULL);
	both_down();
}

/* The one that controls is killed: its words stay until somebody looks at them. */
static void test_dead(void)
{
	struct test_fabric *f = fabric_of(1);
	uint64_t word;

	both_up(f);
	CHECK(!flow_control_begin(a.host, PORT, on_changed, &told));
	word = word_of(f, 1);
	atomic_store(&f->slots[0].alive, 0);
	atomic_store(&f->registry->slots_used[0], 2);
	CHECK(!flow_control_slot(f->slots, word) && word_of(f, 1) == word);
	/* whoever finds it, once */
	flow_control_forget(&f->slots[1], PORT, word);
	expect_by(f, 1, NULL);
	flow_control_forget(&f->slots[1], PORT, word);
	expect_by(f, 1, NULL);
	/* or whoever begins to control */
	atomic_store(&f->slots[1].flows_by[PORT], word);
	atomic_store(&f->slots[1].observers, 1);
	CHECK(!flow_control_begin(b.host, PORT, on_changed, &told));
	expect_by(f, 1, &f->slots[1]);
	/* The slot has a new owner, which the old word does not mean. */
	atomic_store(&f->slots[0].alive, 2);
	CHECK(!flow_control_slot(f->slots, word));
	flow_control_end(b.host, PORT);
	both_down();
}

static void row_changes(struct test_fabric *f, unsigned row)
{
	atomic_fetch_or(&f->slots[1].flows_happened[row / 64], UINT64_C(1) << row % 64);
	inbox_raise_flows(&f->slots[0], 1);
}

static void test_told(void)
{
	struct test_fabric *f = fabric_of(1);

	both_up(f);
	CHECK(!flow_control_begin(a.host, PORT, on_changed, &told));
	row_changes(f, 3);
	row_changes(f, 3);
	row_changes(f, 60);
	(void)wire_process_progress(a.host);
	CHECK(told.calls == 2 && told.slot == 1 &&
	      told.rows == (UINT64_C(1) << 3 | UINT64_C(1) << 60));
	/* not again, before something happens */
	(void)wire_process_progress(a.host);
	flow_control_look(a.host);
	CHECK(told.calls == 2);
	row_changes(f, 3);
	flow_control_look(a.host);
	CHECK(told.calls == 3);
	/* nor any more, when it controls nothing */
	flow_control_end(a.host, PORT);
	row_changes(f, 5);
	(void)wire_process_progress(a.host);
	CHECK(told.calls == 3);
	both_down();
}

int main(void)
{
	test_one_for_all();
	test_another_host();
	test_join();
	test_dead();
	test_told();
	return 0;
}
