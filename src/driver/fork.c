// SPDX-License-Identifier: BSD-2-Clause
/* fork(2): calls the parts of the driver that have something to do around it, in their order. */
#include "base/thread.h"
#include "base/explain.h"
#include "base/descriptor.h"
#include "base/hazard.h"
#include "dpa/debugger.h"
#include "driver/cdev.h"
#include "driver/doorbell/doorbell.h"
#include "driver/emulation/function.h"
#include "driver/file/cdev_file.h"
#include "driver/hooks/hooks.h"
#include "driver/runtime/process.h"
#include "driver/uverbs/core/event.h"

void cdev_fork_prepare(void)
{
	no_cancellation();

	hooks_fork_prepare();
	process_fork_prepare();
	uverbs_event_fork_lock();
	dpa_debugger_fork_lock();
}

void cdev_fork_parent(void)
{
	no_cancellation();

	dpa_debugger_fork_unlock();
	uverbs_event_fork_unlock();
	process_fork_parent();
	hooks_fork_done();
}

void cdev_fork_child(void)
{
	no_cancellation();

	explain_fork_child();
	/* First, as a thread that is not here may have held its lock, which each mapping takes. */
	doorbell_fork_child();
	hazard_fork_child();
	dpa_debugger_fork_unlock();
	uverbs_event_fork_child();
	function_fork_child();
	cdev_table_fork_child();
	hidden_fork_child();
	process_fork_child();
	hooks_fork_done();
}
