// SPDX-License-Identifier: BSD-2-Clause
/*
 * fork(2).  A process that never opened a device file forks as fast as without us.
 */
#include "preload/libc.h"

#include <pthread.h>

#include "driver/cdev.h"
#include "driver/doorbell/doorbell.h"
#include "driver/hooks/hooks.h"
#include "driver/runtime/process.h"
#include "driver/runtime/share.h"
#include "preload/tree.h"

/* Of the thread that forks: another one may open the first device between the handlers. */
static __thread bool prepared;

static void prepare(void)
{
	prepared = tree_device_opened();
	if (!prepared)
		return;
	/* In this order: whoever holds the process's lock may wait for a grace period, which the
	 * device files' handler holds up. */
	hooks_fork_prepare();
	share_fork_prepare();
	process_fork_prepare();
	cdev_fork_prepare();
}

static void in_parent(void)
{
	if (!prepared)
		return;
	share_fork_parent();
	cdev_fork_parent();
	process_fork_parent();
	hooks_fork_done();
}

static void in_child(void)
{
	if (!prepared)
		return;
	/* First: a thread that is not here may have held its lock, which each mapping takes. */
	doorbell_fork_child();
	share_fork_child();
	tree_device_forked();
	cdev_fork_child();
	process_fork_child();
	hooks_fork_done();
}

static __attribute__((constructor)) void fork_init(void)
{
	if (tree_active())
		pthread_atfork(prepare, in_parent, in_child);
}
