// SPDX-License-Identifier: BSD-2-Clause
/*
 * The list of objects: what is found is what was added, and finding or destroying one looks at few
 * of the others.  Each object has a page of its own here, and pages that are looked at fault.
 */
#include <signal.h>
#include <sys/mman.h>

#include "check.h"
#include "flexio/internal.h"

#define PAGE	4096u
#define OBJECTS 600u
/* Neighbours in lists, and what shares the place of an address in the table. */
#define LOOKS 40u

static uint8_t *pages;
static unsigned looks;

static void on_fault(int signum, siginfo_t *info, void *ucontext)
{
	uintptr_t at = (uintptr_t)info->si_addr - (uintptr_t)pages;

	(void)signum, (void)ucontext;
	if (at >= OBJECTS * PAGE)
		_Exit(3);
	looks++;
	(void)mprotect(pages + at / PAGE * PAGE, PAGE, PROT_READ | PROT_WRITE);
}

static struct flx_object *object_at(unsigned i)
{
	return (struct flx_object *)(void *)(pages + (size_t)i * PAGE);
}

static void hide(void)
{
	looks = 0;
	CHECK(!mprotect(pages, (size_t)OBJECTS * PAGE, PROT_NONE));
}

static void show(const char *what)
{
	CHECK(!mprotect(pages, (size_t)OBJECTS * PAGE, PROT_READ | PROT_WRITE));
	CHECK_SAY(looks <= LOOKS, "%s: looked at %u of %u objects", what, looks, OBJECTS);
}

static bool known(void *object, enum flx_kind kind)
{
	FLX_HOLD(hold);

	return flx_check(&hold, object, kind, "test", "object");
}

static void test_check(unsigned i)
{
	bool found;

	hide();
	found = known(object_at(i), FLX_MKEY);
	show("check");
	CHECK(found && !object_at(i)->users);
	CHECK(!known(object_at(i), FLX_CQ));
	CHECK(!known(pages + (size_t)i * PAGE + 8, FLX_MKEY));
}

static void claim(unsigned i)
{
	FLX_HOLD(hold);
	bool counted = i % 16 == 0, found;

	if (counted)
		hide();
	found = flx_claim(&hold, object_at(i), FLX_MKEY, "test", "object");
	if (counted)
		show("claim");
	CHECK(found);
}

/* Destroys the oldest first, and adds some again, as a device that refuses to destroy them does. */
static void test_claim(void)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		claim(i);
		if (i % 5 == 0)
			flx_object_add(object_at(i), FLX_MKEY, NULL);
		CHECK(known(object_at(i), FLX_MKEY) == (i % 5 == 0));
	}
	for (unsigned i = 0; i < OBJECTS; i += 5)
		flx_object_remove(object_at(i));
	CHECK(!flx_object_next(FLX_MKEY, NULL));
}

int main(void)
{
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};

	CHECK(!sigaction(SIGSEGV, &act, NULL));
	pages = mmap(NULL, (size_t)OBJECTS * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED);
	for (unsigned i = 0; i < OBJECTS; i++)
		flx_object_add(object_at(i), FLX_MKEY, NULL);
	CHECK(flx_object_next(FLX_MKEY, NULL) == object_at(OBJECTS - 1));
	test_check(0);
	test_check(OBJECTS / 2);
	test_check(OBJECTS - 1);
	test_claim();
	return 0;
}
