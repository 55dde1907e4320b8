/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes: calls, errors, memory, keys, windows, outboxes and UARs.  Included by flexio.h, which
 * says what holds for every function.
 */
#ifndef _FLEXIO_PROCESS_H_
#define _FLEXIO_PROCESS_H_

#ifndef _FLEXIO_SDK_H_
#error "include <libflexio/flexio.h>"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * flexio_process_create() - load an application on a device.
 * @ibv_ctx: the device, opened by ibv_open_device(); it stays open until the process is destroyed
 * @app: the application
 * @process_attr: attributes, or NULL
 * @process_ptr: receives the process
 *
 * Each process has its own image, heap and default outbox.  Fails on a device without a DPA.
 */
flexio_status flexio_process_create(struct ibv_context *ibv_ctx, struct flexio_app *app,
				    const struct flexio_process_attr *process_attr,
				    struct flexio_process **process_ptr);

/**
 * flexio_process_destroy() - stop a process and free it.
 * @process: the process; NULL does nothing and succeeds
 *
 * The call stops every thread of the process, also those that never end by themselves.
 */
flexio_status flexio_process_destroy(struct flexio_process *process);

/**
 * flexio_process_call() - call a device function and wait for its result.
 * @process: the process
 * @host_func: the function, annotated with __dpa_rpc__
 * @func_ret: receives its result
 * @...: its arguments, of the types that it has on the device; one uint64_t for a function of
 *	flexio_func_register()
 *
 * Calls of several threads run at the same time.  Each needs a thread of the process, of which there
 * are 1024 with those of event handlers and command queues.  FLEXIO_STATUS_TIMEOUT if the call takes
 * longer than the limit, FLEXIO_STATUS_FATAL_ERR if the process has ended by an error, in the call or
 * before.
 */
flexio_status flexio_process_call(struct flexio_process *process, flexio_func_t *host_func,
				  uint64_t *func_ret, ...);

/**
 * flexio_process_error_handler_set() - say which device function runs when the process ends by an
 * error.
 * @process: the process
 * @error_handler: the function, annotated with __dpa_global__
 *
 * Fails once a thread of the process has been made.
 */
flexio_status flexio_process_error_handler_set(struct flexio_process *process,
					       flexio_func_t *error_handler);

/**
 * flexio_process_mem_info_get() - state of the heap.
 * @process: the process
 * @info: receives it
 */
flexio_status flexio_process_mem_info_get(const struct flexio_process *process,
					  struct flexio_heap_mem_info *info);

/**
 * flexio_process_udbg_token_get() - token by which a debugger gets access to the process.
 * @process: the process
 *
 * Returns 0 if debuggers are not allowed, or on error.
 */
uint64_t flexio_process_udbg_token_get(struct flexio_process *process);

/**
 * flexio_process_get_pd() - the protection domain of a process.
 * @process: the process
 *
 * Returns the one of flexio_process_attr, or else the library's own; NULL on error.
 */
struct ibv_pd *flexio_process_get_pd(struct flexio_process *process);

/**
 * flexio_process_get_uar() - the UAR of a process, through which its default outbox rings.
 * @process: the process
 *
 * Returns NULL on error.  The UAR belongs to the process, so the program does not destroy it.
 */
struct flexio_uar *flexio_process_get_uar(struct flexio_process *process);

/**
 * flexio_process_get_dumem_id() - number of the umem that is the memory of a process, for queues
 * and keys that a program makes by DEVX commands on DPA memory.
 * @process: the process
 *
 * Returns UINT32_MAX on error.
 */
uint32_t flexio_process_get_dumem_id(struct flexio_process *process);

/**
 * flexio_err_handler_fd() - a descriptor that is readable once the process has ended by an error.
 * @process: the process
 *
 * It is for select(), poll() and epoll, belongs to the process and is not to be read or closed.
 * Returns -1 on error.
 */
int flexio_err_handler_fd(struct flexio_process *process);

/**
 * flexio_err_status_get() - whether the process has ended by an error.
 * @process: the process; NULL: FLEXIO_DEV_NO_ERROR
 *
 * flexio_dev_process_finish() is no error.
 */
enum flexio_err_status flexio_err_status_get(struct flexio_process *process);

/**
 * flexio_coredump_create() - write an ELF core file of all threads and of the memory of a process.
 * @process: the process, which may go on
 * @outfile: the path without the suffix ".NNN.core", where NNN is the number of this program's
 *	process; NULL: "flexio_dev"; a relative one is tried in the current directory and then in
 *	$TMPDIR or /tmp
 *
 * A program with several DPA processes names a file for each, or the last one is left.  The file does
 * not contain what windows show.  The call needs up to three times the size of the file in memory.
 * It takes about a second, in which device code goes on, while calls and functions with objects of
 * the same device context wait.
 */
flexio_status flexio_coredump_create(struct flexio_process *process, const char *outfile);

/**
 * flexio_crash_data() - write a report of a crash to the standard output and to a file.
 * @process: the process
 * @outfile: as for flexio_coredump_create(), with the suffix ".NNN.crash"
 */
flexio_status flexio_crash_data(struct flexio_process *process, const char *outfile);

/**
 * flexio_log_lvl_set() - set the level of the library's own log, of all processes.
 * @lvl: messages of this level and of more urgent ones are shown
 *
 * Returns the level that was set before.
 */
enum flexio_log_lvl flexio_log_lvl_set(enum flexio_log_lvl lvl);

/**
 * flexio_buf_dev_alloc() - allocate memory on the heap of a process.
 * @process: the process
 * @buff_bsize: bytes
 * @dest_daddr_p: receives the address, aligned to at least 64 bytes, or 0 on failure
 *
 * The contents are undefined.
 */
flexio_status flexio_buf_dev_alloc(struct flexio_process *process, size_t buff_bsize,
				   flexio_uintptr_t *dest_daddr_p);

/**
 * flexio_buf_dev_free() - free memory of flexio_buf_dev_alloc() or flexio_copy_from_host().
 * @process: the process
 * @daddr: the address; 0 does nothing and succeeds
 */
flexio_status flexio_buf_dev_free(struct flexio_process *process, flexio_uintptr_t daddr);

/**
 * flexio_host2dev_memcpy() - copy to the heap of a process.
 * @process: the process
 * @src_haddr: the host's bytes
 * @buff_bsize: how many
 * @dest_daddr: where to, in the heap or in variables of the image
 *
 * The device does not know allocations: a copy that leaves the one in which it begins is done, and
 * the log says so once.
 *
 * All device code sees the bytes once the call has returned.
 */
flexio_status flexio_host2dev_memcpy(struct flexio_process *process, void *src_haddr,
				     size_t buff_bsize, flexio_uintptr_t dest_daddr);

/**
 * flexio_copy_from_host() - allocate memory on the heap of a process and copy to it.
 * @process: the process
 * @src_haddr: the host's bytes
 * @buff_bsize: how many
 * @dest_daddr_p: receives the address, to be freed by flexio_buf_dev_free(), or 0 on failure
 */
flexio_status flexio_copy_from_host(struct flexio_process *process, void *src_haddr,
				    size_t buff_bsize, flexio_uintptr_t *dest_daddr_p);

/**
 * flexio_buf_dev_memset() - fill memory on the heap of a process.
 * @process: the process
 * @value: what to store in each byte; its low 8 bits count
 * @buff_bsize: how many bytes
 * @dest_daddr: where, as for flexio_host2dev_memcpy()
 */
flexio_status flexio_buf_dev_memset(struct flexio_process *process, int value, size_t buff_bsize,
				    flexio_uintptr_t dest_daddr);

/**
 * flexio_device_mkey_create() - make a key over memory of a process.
 * @process: the process
 * @fattr: the memory, the rights and the protection domain
 * @mkey: receives the key
 */
flexio_status flexio_device_mkey_create(struct flexio_process *process,
					struct flexio_mkey_attr *fattr, struct flexio_mkey **mkey);

/**
 * flexio_device_mkey_destroy() - destroy a key.
 * @mkey: the key; NULL does nothing and succeeds
 */
flexio_status flexio_device_mkey_destroy(struct flexio_mkey *mkey);

/**
 * flexio_mkey_get_id() - the number of a key, which is its lkey and its rkey.
 * @mkey: the key
 *
 * Returns UINT32_MAX on error.
 */
uint32_t flexio_mkey_get_id(struct flexio_mkey *mkey);

/**
 * flexio_window_create() - make a window through which device code reaches memory of the host.
 * @process: the process
 * @pd: protection domain of the keys that are used with it, of the process's context or of another
 * @window: receives the window
 *
 * A process has 1023 at most.
 */
flexio_status flexio_window_create(struct flexio_process *process, struct ibv_pd *pd,
				   struct flexio_window **window);

/**
 * flexio_window_destroy() - destroy a window; device code that still uses it faults.
 * @window: the window
 */
flexio_status flexio_window_destroy(struct flexio_window *window);

/**
 * flexio_window_get_id() - the number for flexio_dev_window_config(), which has 16 bits.
 * @window: the window
 *
 * Returns UINT32_MAX on error.
 */
uint32_t flexio_window_get_id(struct flexio_window *window);

/**
 * flexio_outbox_create() - make an outbox, through which device code rings doorbells.
 * @process: the process
 * @fattr: attributes
 * @outbox: receives the outbox
 *
 * Threads begin with the default outbox of the process, which has 254 others at most.
 */
flexio_status flexio_outbox_create(struct flexio_process *process, struct flexio_outbox_attr *fattr,
				   struct flexio_outbox **outbox);

/**
 * flexio_outbox_destroy() - destroy an outbox; a thread that has it set rings on until it sets
 * another.
 * @outbox: the outbox
 */
flexio_status flexio_outbox_destroy(struct flexio_outbox *outbox);

/**
 * flexio_outbox_get_id() - the number for flexio_dev_outbox_config(), which has 16 bits.
 * @outbox: the outbox
 *
 * Returns UINT32_MAX on error.
 */
uint32_t flexio_outbox_get_id(struct flexio_outbox *outbox);

/**
 * flexio_outbox_get_uar() - the UAR of an outbox, which is that of its process.
 * @outbox: the outbox
 *
 * Returns NULL on error.
 */
struct flexio_uar *flexio_outbox_get_uar(struct flexio_outbox *outbox);

/**
 * flexio_uar_create() - make a UAR.
 * @process: the process
 * @flexio_uar: receives the UAR
 */
flexio_status flexio_uar_create(struct flexio_process *process, struct flexio_uar **flexio_uar);

/**
 * flexio_uar_destroy() - destroy a UAR of flexio_uar_create() or flexio_uar_extend().
 * @uar: the UAR
 */
flexio_status flexio_uar_destroy(struct flexio_uar *uar);

/**
 * flexio_uar_extend() - let the DPA ring doorbells of another device's queues.
 * @in_uar: a UAR of the process
 * @to_extend: the other device
 * @extended: receives the extended UAR
 *
 * Queues of the other device take flexio_uar_get_id() of the extended UAR; device code calls
 * flexio_dev_outbox_config_uar_extension() with flexio_uar_get_extended_id() before it rings.
 */
flexio_status flexio_uar_extend(struct flexio_uar *in_uar, struct ibv_context *to_extend,
				struct flexio_uar **extended);

/**
 * flexio_uar_get_extended_id() - the number by which device code selects the device of an extended
 * UAR.
 * @uar: the extended UAR
 *
 * Returns UINT32_MAX on error and for a UAR that is not extended.
 */
flexio_uar_device_id flexio_uar_get_extended_id(struct flexio_uar *uar);

/**
 * flexio_uar_get_id() - the number for the attributes of queues.
 * @uar: the UAR
 *
 * Returns UINT32_MAX on error.
 */
uint32_t flexio_uar_get_id(struct flexio_uar *uar);

#ifdef __cplusplus
}
#endif

#endif
