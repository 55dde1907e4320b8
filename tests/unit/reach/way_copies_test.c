// SPDX-License-Identifier: BSD-2-Clause
/* Which requests the kernel's copy routine keeps whole, by what is known of the machine. */
#include "reach/way_internal.h"

#include <sys/utsname.h>

#include "check.h"

static bool machine_is(struct way_machine m, bool any, uint64_t most)
{
	const struct way_copies c = way_copies_of(&m);

	return c.any == any && c.most == most;
}

int main(void)
{
	const struct way_machine here = way_machine_here();
	struct utsname name;

	/* nothing is known: not even words of 8 bytes */
	CHECK(machine_is((struct way_machine){0}, false, 0));
	CHECK(machine_is((struct way_machine){.erms = true, .fsrm = true, .major = 6, .minor = 18},
			 false, 0));
	/* the routine is the instruction that was hammered */
	CHECK(machine_is((struct way_machine){true, true, true, 6, 4}, true, 0));
	CHECK(machine_is((struct way_machine){true, true, true, 7, 0}, true, 0));
	/* it is that for long copies alone */
	CHECK(machine_is((struct way_machine){true, true, true, 6, 3}, false, UINT64_MAX));
	CHECK(machine_is((struct way_machine){true, true, true, 5, 10}, false, UINT64_MAX));
	/* it is another instruction for those */
	CHECK(machine_is((struct way_machine){true, true, false, 6, 18}, false, 63));
	CHECK(machine_is((struct way_machine){true, true, false, 5, 10}, false, 63));
	/* plain moves */
	CHECK(machine_is((struct way_machine){true, false, false, 6, 18}, false, UINT64_MAX));
	/* a kernel without a number that is understood */
	CHECK(machine_is((struct way_machine){true, true, true, 0, 0}, false, UINT64_MAX));

	CHECK(!uname(&name) && name.release[0] == (char)('0' + here.major % 10));
#if !defined(__x86_64__)
	CHECK(!here.x86);
#endif
	return 0;
}
