/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event handlers and command queues.  Included by flexio.h, which says what holds for every
 * function.
 */
#ifndef _FLEXIO_THREAD_H_
#define _FLEXIO_THREAD_H_

#ifndef _FLEXIO_SDK_H_
#error "include <libflexio/flexio.h>"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * flexio_event_handler_create() - make a DPA thread that completions activate.
 * @process: the process
 * @fattr: entry function, affinity and so on
 * @event_handler_ptr: receives the event handler
 *
 * It is not activated before flexio_event_handler_run(); an event that comes earlier waits until
 * then.  Fails if the process has 1024 threads: those of event handlers, of command queues, and one
 * for each call at a time.
 */
flexio_status flexio_event_handler_create(struct flexio_process *process,
					  struct flexio_event_handler_attr *fattr,
					  struct flexio_event_handler **event_handler_ptr);

/**
 * flexio_event_handler_destroy() - stop an event handler and free it.
 * @event_handler: the event handler; no CQ may refer to its thread
 */
flexio_status flexio_event_handler_destroy(struct flexio_event_handler *event_handler);

/**
 * flexio_event_handler_run() - let events activate an event handler.
 * @event_handler: the event handler
 * @user_arg: the argument of its entry function at each activation
 *
 * The call does not execute the handler: the first event does.
 */
flexio_status flexio_event_handler_run(struct flexio_event_handler *event_handler,
				       uint64_t user_arg);

/**
 * flexio_event_handler_get_id() - what flexio_dev_get_thread_id() returns in the handler.
 * @event_handler: the event handler
 *
 * Returns UINT32_MAX on error.
 */
uint32_t flexio_event_handler_get_id(struct flexio_event_handler *event_handler);

/**
 * flexio_event_handler_get_obj_id() - number of the thread's object, for DEVX commands.
 * @event_handler: the event handler
 *
 * Returns UINT32_MAX on error.
 */
uint32_t flexio_event_handler_get_obj_id(struct flexio_event_handler *event_handler);

/**
 * flexio_event_handler_get_thread() - the thread, for flexio_cq_attr.thread.
 * @event_handler: the event handler
 *
 * Returns NULL on error.  The thread belongs to the event handler.
 */
struct flexio_thread *flexio_event_handler_get_thread(struct flexio_event_handler *event_handler);

/**
 * flexio_cmdq_create() - make a command queue, which runs device functions in the background.
 * @process: the process
 * @fattr: workers, tasks of one turn, and state
 * @cmdq: receives the command queue
 */
flexio_status flexio_cmdq_create(struct flexio_process *process, struct flexio_cmdq_attr *fattr,
				 struct flexio_cmdq **cmdq);

/**
 * flexio_cmdq_destroy() - stop the workers of a command queue and free it.
 * @cmdq: the command queue
 *
 * Tasks that have begun come to their end; others are dropped.
 */
flexio_status flexio_cmdq_destroy(struct flexio_cmdq *cmdq);

/**
 * flexio_cmdq_task_add() - add a task.
 * @cmdq: the command queue
 * @host_func: the device function
 * @arg: its argument
 *
 * One worker takes tasks in the order in which they were added; several run side by side.
 */
flexio_status flexio_cmdq_task_add(struct flexio_cmdq *cmdq, flexio_func_t *host_func,
				   uint64_t arg);

/**
 * flexio_cmdq_state_running() - let the tasks of a pending command queue run.
 * @cmdq: the command queue; nothing happens if it is running
 */
flexio_status flexio_cmdq_state_running(struct flexio_cmdq *cmdq);

/**
 * flexio_cmdq_is_empty() - whether all tasks that were added have ended.
 * @cmdq: the command queue
 *
 * Returns 1 if so, otherwise 0, also on error.
 */
int flexio_cmdq_is_empty(struct flexio_cmdq *cmdq);

#ifdef __cplusplus
}
#endif

#endif
