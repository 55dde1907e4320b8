/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of objects: handles of every sort of wrong, destruction and its refusals. */
#include "driver/uverbs/core/object.h"

#include <errno.h>
#include <stdlib.h>

#include "check.h"
#include "uverbs_file.h"

#define MANY (UOBJ_CHUNK * 2 + 3)

struct thing {
	struct uobj uobj;
};

static unsigned freed, collected;
static struct uverbs_file u;

/* By then nobody can find it. */
static void thing_free(struct uobj *obj)
{
	freed++;
	CHECK(!uobj_any(&u.file, obj->handle));
}

static void thing_collect(struct uobj *obj, struct uevents *events)
{
	(void)obj;
	CHECK(freed > collected);
	collected++;
	events->comp = 3;
}

static const struct uobj_class plain_class = {.type = UOBJ_PD, .free = thing_free};
static const struct uobj_class rich_class = {
	.type = UOBJ_CQ, .free = thing_free, .collect = thing_collect};

static struct thing *thing_new(const struct uobj_class *class)
{
	struct thing *t = calloc(1, sizeof(*t));

	CHECK(t && !uobj_publish(&u.file, &t->uobj, class));
	CHECK(t->uobj.type == class->type && t->uobj.file == &u.file);
	return t;
}

static void test_handles(void)
{
	struct thing *a = thing_new(&plain_class), *b = thing_new(&rich_class);
	uint32_t ha = a->uobj.handle, hb = b->uobj.handle;
	int err = 0;

	CHECK(ha != hb);
	CHECK(uobj_find(&u.file, UOBJ_PD, ha, &err) == &a->uobj && !err);
	CHECK(!uobj_find(&u.file, UOBJ_CQ, ha, &err) && err == -EINVAL);
	CHECK(!uobj_find(&u.file, UOBJ_PD, hb, &err) && err == -EINVAL);
	CHECK(uobj_any(&u.file, hb) == &b->uobj);
	CHECK(uobj_peek(&u.file.objects, UOBJ_CQ, hb) == &b->uobj);
	CHECK(!uobj_peek(&u.file.objects, UOBJ_PD, hb));
	/* never given out, beyond the table, and what only looks like ours in 32 bits */
	const uint64_t wrong[] = {hb + 1,     UOBJ_CHUNK,      (uint64_t)UOBJ_CHUNKS * UOBJ_CHUNK,
				  UINT32_MAX, ha | 1ull << 32, UINT64_MAX};
	for (size_t i = 0; i < array_size(wrong); i++) {
		err = 0;
		CHECK(!uobj_find(&u.file, UOBJ_PD, wrong[i], &err) && err == -ENOENT);
		CHECK(!uobj_any(&u.file, wrong[i]));
	}
	CHECK(!uobj_destroy(&a->uobj, NULL));
	/* stale, until the handle is another object's */
	CHECK(!uobj_find(&u.file, UOBJ_PD, ha, &err) && err == -ENOENT);
	a = thing_new(&rich_class);
	CHECK(a->uobj.handle == ha);
	CHECK(!uobj_find(&u.file, UOBJ_PD, ha, &err) && err == -EINVAL);
	CHECK(!uobj_destroy(&a->uobj, NULL) && !uobj_destroy(&b->uobj, NULL));
}

/* Over the limits of chunks; given back in another order, all handles are used again. */
static void test_many(void)
{
	static struct thing *things[MANY];
	static bool given[MANY];
	struct rng rng = {7};

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < MANY; i++) {
			things[i] = thing_new(&plain_class);
			CHECK(things[i]->uobj.handle < MANY && !given[things[i]->uobj.handle]);
			given[things[i]->uobj.handle] = true;
		}
		for (size_t left = MANY; left; left--) {
			size_t i = rng_below(&rng, left);

			given[things[i]->uobj.handle] = false;
			CHECK(!uobj_destroy(&things[i]->uobj, NULL));
			things[i] = things[left - 1];
		}
	}
	CHECK(u.file.objects.limit == MANY);
}

static void test_destruction(void)
{
	struct uevents events = {9, 9};
	struct thing *t = thing_new(&rich_class);
	int err;

	freed = collected = 0;
	t->uobj.users = 1;
	CHECK(uobj_destroy(&t->uobj, &events) == -EBUSY && !freed);
	t->uobj.users = 0;
	CHECK(events.comp == 9 && uobj_find(&u.file, UOBJ_CQ, t->uobj.handle, &err));
	CHECK(!uobj_destroy(&t->uobj, &events) && freed == 1 && collected == 1);
	CHECK(events.comp == 3 && !events.async);
}

int main(void)
{
	uverbs_file_up(&u);
	test_handles();
	test_many();
	test_destruction();
	uverbs_file_down(&u);
	return 0;
}
