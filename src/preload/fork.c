// SPDX-License-Identifier: BSD-2-Clause
/*
 * fork(2).  A process that never opened a device file forks as fast as without us.
 */
#include "preload/libc.h"

#include <pthread.h>

#include "base/checkers.h"
#include "driver/cdev.h"
#include "preload/spawn.h"
#include "preload/tree.h"

/* Each thread has its own, because another may open the first device between the handlers. */
static __thread bool prepared;

static void fork_prepare(void)
{
	cdev_serving_fork_lock();
	prepared = tree_device_opened();
	if (prepared)
		cdev_fork_prepare();
	tsan_no_jump();
}

static void fork_in_parent(void)
{
	if (prepared)
		cdev_fork_parent();
	cdev_serving_fork_unlock();
	tsan_no_jump();
}

static void fork_in_child(void)
{
	if (prepared) {
		cdev_fork_child();
		tree_device_forked();
	}
	cdev_serving_fork_unlock();
	spawn_fork_child();
	tsan_no_jump();
}

static __attribute__((constructor)) void fork_init(void)
{
	if (tree_active())
		pthread_atfork(fork_prepare, fork_in_parent, fork_in_child);
}
