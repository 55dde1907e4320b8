// SPDX-License-Identifier: BSD-2-Clause
/*
 * Commands find objects by their numbers, whatever else the file has: other objects lie in pages here
 * that nobody may look at meanwhile.
 */
#include <errno.h>
#include <sys/mman.h>

#include "check.h"
#include "driver/devx/devx.h"
#include "driver/uverbs/core/object.h"
#include "uverbs_file.h"

#define OTHERS 3000u
#define NUMBER 5000u /* no other object's */

struct thing {
	struct uobj uobj;
	uint32_t number;
};

static struct uverbs_file u;

static bool thing_is(struct uobj *obj, uint32_t number)
{
	return obj->type == UOBJ_CQ && container_of(obj, struct thing, uobj)->number == number;
}

static uint32_t thing_number(struct uobj *obj)
{
	return container_of(obj, struct thing, uobj)->number;
}

static void thing_activate(struct devx_obj *obj)
{
	(void)obj;
}

static void thing_free(struct uobj *obj)
{
	(void)obj;
}

static const struct uobj_class verbs_class = {
	.type = UOBJ_CQ, .free = thing_free, .number = thing_number};
static const struct devx_class one_class = {.is = thing_is}, two_class = {0},
			       thread_class = {.activate = thing_activate};

static bool is_thread(const struct devx_class *class)
{
	return class->activate;
}

static struct devx_obj *publish(struct devx_obj *obj, const struct devx_class *class,
				uint32_t number)
{
	CHECK(obj);
	devx_obj_init(obj, class, number);
	CHECK(!uobj_publish(&u.file, &obj->uobj, &udevx_class));
	return obj;
}

static struct devx_obj *made(const struct devx_class *class, uint32_t number)
{
	return publish(calloc(1, sizeof(struct devx_obj)), class, number);
}

static bool destroyed(struct devx_obj *obj)
{
	return !uobj_destroy(&obj->uobj, NULL);
}

/* Objects of several kinds have the number, and one after another goes. */
static void test_alike(void)
{
	struct devx_obj *one = made(&one_class, NUMBER), *two = made(&two_class, NUMBER),
			*thread = made(&thread_class, NUMBER);

	CHECK(devx_find(&u.file, &one_class, NUMBER) == &one->uobj);
	CHECK(devx_find(&u.file, &two_class, NUMBER) == &two->uobj);
	CHECK(devx_find_fitting(&u.file, is_thread, NUMBER) == thread);
	CHECK(!devx_find(&u.file, &one_class, NUMBER + 1));
	CHECK(!devx_find_fitting(&u.file, is_thread, NUMBER + 1));
	CHECK(destroyed(two) && !devx_find(&u.file, &two_class, NUMBER));
	CHECK(devx_find(&u.file, &one_class, NUMBER) == &one->uobj);
	CHECK(destroyed(one) && !devx_find(&u.file, &one_class, NUMBER));
	CHECK(destroyed(thread) && !uobj_numbered(&u.file.objects, NUMBER));
}

/* An object of verbs counts as the kind that says so, and one without a number as none. */
static void test_verbs(void)
{
	static const struct uobj_class plain_class = {.type = UOBJ_MR, .free = thing_free};
	struct thing *cq = calloc(1, sizeof(*cq)), *mr = calloc(1, sizeof(*mr));

	CHECK(cq && mr);
	cq->number = mr->number = NUMBER;
	CHECK(!uobj_publish(&u.file, &mr->uobj, &plain_class));
	CHECK(!devx_find(&u.file, &one_class, NUMBER));
	CHECK(!uobj_publish(&u.file, &cq->uobj, &verbs_class));
	CHECK(devx_find(&u.file, &one_class, NUMBER) == &cq->uobj);
	CHECK(!devx_find(&u.file, &two_class, NUMBER));
	CHECK(!uobj_destroy(&cq->uobj, NULL) && !devx_find(&u.file, &one_class, NUMBER));
	CHECK(!uobj_destroy(&mr->uobj, NULL));
}

static void test_many(void)
{
	const size_t bytes = OTHERS * sizeof(struct devx_obj);
	struct devx_obj *others =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct devx_obj *last;

	CHECK(others != MAP_FAILED);
	for (uint32_t i = 0; i < OTHERS; i++)
		publish(&others[i], &one_class, i + 1);
	last = made(&one_class, NUMBER);
	CHECK(!mprotect(others, bytes, PROT_NONE));
	CHECK(devx_find(&u.file, &one_class, NUMBER) == &last->uobj);
	CHECK(!devx_find(&u.file, &two_class, NUMBER));
	CHECK(!devx_find_fitting(&u.file, is_thread, NUMBER));
	CHECK(destroyed(last) && !devx_find(&u.file, &one_class, NUMBER));
	CHECK(!mprotect(others, bytes, PROT_READ | PROT_WRITE));
	CHECK(devx_free_number(&u.file, &one_class) == OTHERS + 1);
	for (uint32_t i = 0; i < OTHERS; i++)
		uobj_unpublish(&others[i].uobj);
	CHECK(!munmap(others, bytes));
	CHECK(devx_free_number(&u.file, &one_class) == 1);
}

int main(void)
{
	uverbs_file_up(&u);
	test_alike();
	test_verbs();
	test_many();
	uverbs_file_down(&u);
	return 0;
}
