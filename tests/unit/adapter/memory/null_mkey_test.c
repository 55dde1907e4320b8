// SPDX-License-Identifier: BSD-2-Clause
/* The zeros of the null key: a gigabyte of addresses, and no memory. */
#include "adapter/memory/mkey.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define KEY	    0x700u
#define PAGE	    4096u
#define STATUS_SKIP 77

static enum mkey_verdict resolve_key(struct null_mkey *n, uint32_t access, uint64_t len,
				     struct runs *runs)
{
	const struct mkey_use u = {.key = KEY, .access = access};

	runs_begin(runs);
	return null_mkey_resolve(n, &u, len, runs);
}

static void test_resolve(void)
{
	struct null_mkey n = {.key = KEY};
	struct runs runs;

	null_mkey_init(&n);
	CHECK(resolve_key(&n, IB_ACCESS_LOCAL_WRITE, 100, &runs) == MKEY_OK &&
	      runs.run[0].addr == RUN_DISCARD && !n.zeros);
	CHECK(resolve_key(&n, 0, 0, &runs) == MKEY_OK && !n.zeros);
	CHECK(resolve_key(&n, 0, IB_MAX_MSG_BYTES, &runs) == MKEY_OK &&
	      runs.run[0].addr == n.zeros);
	CHECK(!n.zeros[0] && !n.zeros[IB_MAX_MSG_BYTES - 1]);
	CHECK(resolve_key(&n, 0, IB_MAX_MSG_BYTES + 1ull, &runs) == MKEY_OUT_OF_RANGE);
	CHECK(resolve_key(&n, IB_ACCESS_REMOTE_READ, 1, &runs) == MKEY_NO_RIGHT);
	null_mkey_release(&n);
}

/* A program that wants all its memory locked, also what is mapped later. */
static int child_locks(void)
{
	struct null_mkey n = {.key = KEY};
	unsigned char there;
	struct runs runs;

	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		fprintf(stderr, "mlockall: %m: not looked at\n");
		return STATUS_SKIP;
	}
	null_mkey_init(&n);
	CHECK(resolve_key(&n, 0, 100, &runs) == MKEY_OK);
	for (uint64_t at = 0; at < IB_MAX_MSG_BYTES; at += 64 * PAGE)
		CHECK(!mincore(n.zeros + at, PAGE, &there) && !(there & 1));
	CHECK(!n.zeros[0]);
	null_mkey_release(&n);
	return 0;
}

static void test_locked(void)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child)
		_exit(child_locks());
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	CHECK(!WEXITSTATUS(status) || WEXITSTATUS(status) == STATUS_SKIP);
}

int main(void)
{
	test_resolve();
	test_locked();
	return 0;
}
