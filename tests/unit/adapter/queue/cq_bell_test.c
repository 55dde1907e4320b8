// SPDX-License-Identifier: BSD-2-Clause
/*
 * Completion queues as a DPA has them: armed by value or always, collapsed, of every depth, with
 * bells that name them by number.  The numbers are those of the statements about Flex IO that hold
 * because of the device.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "adapter_device.h"
#include "base/clock.h"
#include "check.h"

#define REGION	   77u
#define ENTRIES	   8u
#define MOST	   (1u << 16)
#define PATIENT_NS 30000000000ull

/* A queue, with a guard on both sides of its ring. */
struct bell_case {
	struct test_device device;
	struct adapter *a;
	struct cq *cq;
	uint32_t cqn;
	struct cqe64 *ring; /* of entries + 2: the first and the last are the guards */
	uint32_t entries;
	be32 dbrec[2];
	uint32_t ci;
	int events;
	int async;
};

static void bell_event(void *user)
{
	((struct bell_case *)user)->events++;
}

static void bell_async(void *user, enum ib_event event)
{
	CHECK(event == IB_EVENT_CQ_ERR);
	((struct bell_case *)user)->async++;
}

static void bell_case_up(struct bell_case *t, struct cq_attr attr)
{
	memset(t, 0, sizeof(*t));
	device_up(&t->device);
	t->a = t->device.adapter[0];
	t->entries = attr.entries ? attr.entries : ENTRIES;
	t->ring = malloc((t->entries + 2) * sizeof(*t->ring));
	CHECK(t->ring);
	/* As a program of a DPA does it: the owner bit alone says that an entry is not new. */
	memset(t->ring, 0xff, (t->entries + 2) * sizeof(*t->ring));
	attr.buf = t->ring + 1;
	attr.entries = t->entries;
	attr.cqe_bytes = CQE_BYTES;
	attr.dbrec = t->dbrec;
	attr.event = bell_event;
	attr.async = bell_async;
	attr.user = t;
	attr.region = REGION;
	CHECK(!cq_create(t->a, &attr, &t->cq));
	t->cqn = cq_number(t->cq);
}

static bool is_untouched(const struct cqe64 *entry)
{
	const uint8_t *at = (const void *)entry;

	for (size_t i = 0; i < sizeof(*entry); i++)
		if (at[i] != 0xff)
			return false;
	return true;
}

static void bell_case_down(struct bell_case *t)
{
	CHECK(is_untouched(&t->ring[0]) && is_untouched(&t->ring[t->entries + 1]));
	CHECK(!cq_destroy(t->cq));
	free(t->ring);
	device_down(&t->device);
}

/* Completions come. */
static void complete_some(struct bell_case *t, unsigned n)
{
	while (n--)
		CHECK(cq_bell_empty(t->a, REGION, t->cqn));
}

/* The program takes what is there, by the owner bits, and says so. */
static unsigned take_all(struct bell_case *t)
{
	unsigned n = 0;

	while ((t->ring[1 + (t->ci & (t->entries - 1))].op_own & 1) == !!(t->ci & t->entries)) {
		t->ci++;
		t->dbrec[DBREC_CQ_CI] = be32_of(t->ci & 0xffffff);
		n++;
	}
	return n;
}

static void arm(struct bell_case *t, uint32_t ci)
{
	CHECK(cq_bell_arm(t->a, REGION, t->cqn, ci & 0xffffff));
}

static void test_138_owner_bits(void)
{
	struct bell_case t;

	bell_case_up(&t, (struct cq_attr){.arming = CQ_ARM_VALUE});
	CHECK(!take_all(&t));
	for (unsigned i = 0; i < 3 * ENTRIES; i++) {
		const struct cqe64 *entry = &t.ring[1 + i % ENTRIES];

		CHECK((entry->op_own & 1) == !(i / ENTRIES & 1));
		complete_some(&t, 1);
		CHECK((entry->op_own & 1) == (i / ENTRIES & 1));
		CHECK(take_all(&t) == 1);
	}
	bell_case_down(&t);
}

static void test_144_not_armed(void)
{
	struct bell_case t;
	struct cq_counters counters;

	bell_case_up(&t, (struct cq_attr){.arming = CQ_ARM_VALUE});
	complete_some(&t, 2);
	CHECK(!t.events);
	cq_query(t.cq, &counters);
	CHECK(!counters.armed && counters.producer == 2);
	/* what is there is told at once */
	arm(&t, 0);
	CHECK(t.events == 1);
	bell_case_down(&t);
}

static void test_145_armed_from_the_beginning(void)
{
	struct bell_case t;
	struct cq_counters counters;

	bell_case_up(&t, (struct cq_attr){.arming = CQ_ARM_VALUE, .armed = true});
	cq_query(t.cq, &counters);
	CHECK(counters.armed);
	complete_some(&t, 1);
	CHECK(t.events == 1);
	/* once */
	complete_some(&t, 2);
	CHECK(t.events == 1);
	CHECK(take_all(&t) == 3);
	arm(&t, t.ci);
	CHECK(t.events == 1);
	complete_some(&t, 2);
	CHECK(t.events == 2);
	bell_case_down(&t);
}

/* What comes between the last look and the bell is not lost, on whichever side of a wrap. */
static void test_099_stale_index(void)
{
	struct bell_case t;

	bell_case_up(&t, (struct cq_attr){.arming = CQ_ARM_VALUE, .armed = true});
	complete_some(&t, 1);
	CHECK(t.events == 1 && take_all(&t) == 1);
	complete_some(&t, 1);
	CHECK(t.events == 1);
	arm(&t, t.ci);
	CHECK(t.events == 2);
	CHECK(take_all(&t) == 1);
	/* behind by more than there ever was: 24 bits around zero */
	arm(&t, 0xfffffe);
	CHECK(t.events == 3);
	/* ahead: the one of that index, not those before it */
	arm(&t, t.ci + 2);
	complete_some(&t, 2);
	CHECK(t.events == 3);
	complete_some(&t, 1);
	CHECK(t.events == 4);
	bell_case_down(&t);
}

static void test_146_always_armed(void)
{
	struct bell_case t;

	bell_case_up(&t, (struct cq_attr){.arming = CQ_ARM_ALWAYS});
	for (int i = 1; i <= 20; i++) {
		complete_some(&t, 1);
		CHECK(t.events == i && take_all(&t) == 1);
	}
	arm(&t, t.ci - 3);
	CHECK(t.events == 20);
	bell_case_down(&t);
}

static void test_147_collapsed(void)
{
	struct bell_case t;

	bell_case_up(&t, (struct cq_attr){.arming = CQ_ARM_ALWAYS,
					  .collapsed = true,
					  .overrun_ignore = true});
	for (unsigned i = 0; i < 3 * ENTRIES; i++) {
		complete_some(&t, 1);
		CHECK(t.ring[1].op_own == (i / ENTRIES & 1));
	}
	CHECK(t.events == 3 * ENTRIES && !t.async);
	for (unsigned i = 1; i < ENTRIES; i++)
		CHECK(is_untouched(&t.ring[1 + i]));
	bell_case_down(&t);
}

static void test_148_overrun_ignored(void)
{
	struct bell_case t;

	bell_case_up(&t, (struct cq_attr){.arming = CQ_ARM_ALWAYS, .overrun_ignore = true});
	complete_some(&t, 10 * ENTRIES);
	CHECK(t.events == 10 * ENTRIES && !t.async);
	bell_case_down(&t);
}

static void test_149_overrun(void)
{
	struct cqe64 before[ENTRIES];
	struct cq_counters counters;
	struct bell_case t;

	bell_case_up(&t, (struct cq_attr){.arming = CQ_ARM_ALWAYS});
	complete_some(&t, ENTRIES);
	cq_query(t.cq, &counters);
	CHECK(t.events == ENTRIES && !t.async && !counters.overrun);
	memcpy(before, t.ring + 1, sizeof(before));
	complete_some(&t, 3);
	cq_query(t.cq, &counters);
	CHECK(t.async == 1 && t.events == ENTRIES && counters.overrun);
	CHECK(!memcmp(before, t.ring + 1, sizeof(before)));
	/* it stays: nothing comes any more */
	CHECK(take_all(&t) == ENTRIES);
	complete_some(&t, 1);
	CHECK(!take_all(&t) && t.async == 1);
	bell_case_down(&t);
}

/* The index of a bell is as good as that of the record. */
static void test_151_bell_consumes(void)
{
	struct bell_case t;

	bell_case_up(&t, (struct cq_attr){.arming = CQ_ARM_VALUE});
	for (unsigned i = 1; i <= 5; i++) {
		complete_some(&t, ENTRIES);
		arm(&t, i * ENTRIES);
	}
	CHECK(!t.async);
	/* ahead of what there is frees nothing */
	arm(&t, 6 * ENTRIES);
	complete_some(&t, ENTRIES + 1);
	CHECK(t.async == 1);
	bell_case_down(&t);
}

static void test_152_nobody_listens(void)
{
	struct bell_case t;
	struct cqe64 ring[2];
	be32 dbrec[2] = {0};
	struct cq_attr attr = {
		.buf = ring,
		.entries = 2,
		.cqe_bytes = CQE_BYTES,
		.dbrec = dbrec,
		.arming = CQ_ARM_VALUE,
		.armed = true,
		.region = REGION,
	};
	struct cq *cq;

	bell_case_up(&t, (struct cq_attr){.arming = CQ_ARM_VALUE});
	memset(ring, 0xff, sizeof(ring));
	CHECK(!cq_create(t.a, &attr, &cq));
	CHECK(cq_bell_empty(t.a, REGION, cq_number(cq)) && !ring[0].op_own);
	CHECK(cq_bell_arm(t.a, REGION, cq_number(cq), 0));
	cq_moderate(cq, 2, 0);
	CHECK(!cq_destroy(cq));
	bell_case_down(&t);
}

static void test_154_depths(void)
{
	for (uint32_t entries = 1; entries <= MOST; entries *= 2) {
		struct bell_case t;
		unsigned n = 0;

		bell_case_up(&t, (struct cq_attr){.entries = entries,
						  .arming = CQ_ARM_VALUE,
						  .armed = true});
		while (n < 2 * entries + 1) {
			complete_some(&t, 1);
			if (n++ % 2 || entries == 1)
				take_all(&t);
		}
		take_all(&t);
		CHECK(t.ci == n && !t.async && t.events == 1);
		bell_case_down(&t);
	}
}

static void test_156_moderated_by_count(void)
{
	struct bell_case t;

	bell_case_up(&t, (struct cq_attr){.arming = CQ_ARM_ALWAYS});
	cq_moderate(t.cq, 4, 0);
	for (unsigned i = 1; i <= 16; i++) {
		complete_some(&t, 1);
		CHECK(t.events == (int)(i / 4) && take_all(&t) == 1);
	}
	bell_case_down(&t);

	bell_case_up(&t, (struct cq_attr){.arming = CQ_ARM_VALUE, .armed = true});
	cq_moderate(t.cq, 4, 0);
	for (unsigned i = 1; i <= 16; i++) {
		complete_some(&t, 1);
		CHECK(t.events == (int)(i / 4));
		if (i % 4 == 0) {
			CHECK(take_all(&t) == 4);
			arm(&t, t.ci);
		}
	}
	bell_case_down(&t);
}

static void test_157_moderated_from_the_newest(void)
{
	struct bell_case t;
	uint64_t newest;

	bell_case_up(&t, (struct cq_attr){.arming = CQ_ARM_VALUE, .armed = true});
	cq_moderate_newest(t.cq, true);
	cq_moderate(t.cq, 100, 4000);
	complete_some(&t, 1);
	usleep(2000);
	newest = clock_ns();
	complete_some(&t, 1);
	while (!t.events && clock_ns() < newest + PATIENT_NS)
		(void)adapter_progress(t.a, NULL);
	CHECK(t.events == 1 && clock_ns() >= newest + 4000000);
	bell_case_down(&t);
}

static void test_157_moderated_by_time(void)
{
	struct bell_case t;
	uint64_t start;

	bell_case_up(&t, (struct cq_attr){.arming = CQ_ARM_VALUE, .armed = true});
	cq_moderate(t.cq, 100, 2000);
	start = clock_ns();
	complete_some(&t, 3);
	CHECK(!t.events);
	while (!t.events && clock_ns() < start + PATIENT_NS)
		(void)adapter_progress(t.a, NULL);
	CHECK(t.events == 1 && clock_ns() >= start + 2000000);
	/* not armed: no second one */
	complete_some(&t, 1);
	usleep(3000);
	(void)adapter_progress(t.a, NULL);
	CHECK(t.events == 1);
	bell_case_down(&t);
}

/* Numbers come from programs. */
static void test_231_foreign_bells(void)
{
	struct bell_case t, other;
	uint32_t cqn;

	bell_case_up(&t, (struct cq_attr){.arming = CQ_ARM_VALUE, .armed = true});
	bell_case_up(&other, (struct cq_attr){.arming = CQ_ARM_VALUE, .armed = true});
	CHECK(!cq_bell_empty(t.a, REGION + 1, t.cqn) && !cq_bell_arm(t.a, REGION + 1, t.cqn, 0));
	CHECK(!cq_bell_empty(t.a, 0, t.cqn));
	/* the same row of the table */
	CHECK(!cq_bell_empty(t.a, REGION, t.cqn + 256) && !cq_bell_arm(t.a, REGION, ~0u, 0));
	CHECK(!t.events && !other.events && is_untouched(&t.ring[1]));
	cqn = other.cqn;
	bell_case_down(&other);
	CHECK(!cq_bell_empty(t.a, REGION, cqn + 1000));
	bell_case_down(&t);
}

/* ---- queues come and go while somebody rings ---- */

struct ringer {
	struct adapter *a;
	_Atomic(uint32_t) cqn;
	_Atomic(bool) stop;
	_Atomic(uint32_t) heard;
};

static void *ring_on(void *user)
{
	struct ringer *r = user;

	while (!atomic_load(&r->stop)) {
		uint32_t cqn = atomic_load(&r->cqn);

		if (cq_bell_empty(r->a, REGION, cqn) && cq_bell_arm(r->a, REGION, cqn, 0))
			atomic_fetch_add(&r->heard, 1);
	}
	return NULL;
}

static void test_bells_and_ends(void)
{
	struct bell_case t;
	struct ringer r = {0};
	pthread_t thread;

	bell_case_up(&t, (struct cq_attr){.arming = CQ_ARM_VALUE, .overrun_ignore = true});
	r.a = t.a;
	CHECK(!pthread_create(&thread, NULL, ring_on, &r));
	for (unsigned i = 0; i < 200 || !atomic_load(&r.heard); i++) {
		struct cq_attr attr = {
			.buf = t.ring + 1,
			.entries = ENTRIES,
			.cqe_bytes = CQE_BYTES,
			.dbrec = t.dbrec,
			.overrun_ignore = true,
			.arming = CQ_ARM_VALUE,
			.region = REGION,
		};
		struct cq *cq;

		CHECK(!cq_create(t.a, &attr, &cq));
		atomic_store(&r.cqn, cq_number(cq));
		if (i % 4 == 0)
			usleep(100);
		CHECK(!cq_destroy(cq));
	}
	atomic_store(&r.stop, true);
	CHECK(!pthread_join(thread, NULL));
	bell_case_down(&t);
}

int main(void)
{
	test_099_stale_index();
	test_138_owner_bits();
	test_144_not_armed();
	test_145_armed_from_the_beginning();
	test_146_always_armed();
	test_147_collapsed();
	test_148_overrun_ignored();
	test_149_overrun();
	test_151_bell_consumes();
	test_152_nobody_listens();
	test_154_depths();
	test_156_moderated_by_count();
	test_157_moderated_by_time();
	test_157_moderated_from_the_newest();
	test_231_foreign_bells();
	test_bells_and_ends();
	return 0;
}
