// SPDX-License-Identifier: BSD-2-Clause
/*
 * What programs write with the host's types, in C and in C++: declarations of stubs, pack functions,
 * initialisers by position, constants in the preprocessor.
 *
 * Nothing runs: it compiles or not.
 */
#include <libflexio/flexio.h>

#ifdef __cplusplus
#define CHECK static_assert
extern "C" {
#else
#define CHECK _Static_assert
#endif

/* A stub is declared by the function's type; its name and its address are the same key. */
extern flexio_func_t device_function;
flexio_func_t *const by_name = device_function;
flexio_func_t *const by_address = &device_function;

/* A pack function is one of that type. */
void pack_arguments(void *argbuf, va_list ap);
flexio_func_arg_pack_fn_t *const packer = pack_arguments;

#if FLEXIO_MSG_DEV_NO_PRINT != 0 || FLEXIO_MSG_DEV_ALWAYS_PRINT != 1 ||                      \
	FLEXIO_MSG_DEV_ERROR != 2 || FLEXIO_MSG_DEV_WARN != 3 || FLEXIO_MSG_DEV_INFO != 4 || \
	FLEXIO_MSG_DEV_DEBUG != 5
#error "levels"
#endif

/* Four fields of a key, two of a process, in the order in which programs write them. */
struct flexio_mkey_attr key_by_position(struct ibv_pd *pd);
struct flexio_mkey_attr key_by_position(struct ibv_pd *pd)
{
	struct flexio_mkey_attr attr = {pd, (flexio_uintptr_t)0x1000, (size_t)64,
					IBV_ACCESS_LOCAL_WRITE};

	return attr;
}

struct flexio_process_attr process_by_position(void);
struct flexio_process_attr process_by_position(void)
{
	struct flexio_process_attr attr = {NULL, 0};

	return attr;
}

/* A cleared queue memory is in DPA memory; the alternatives share their place. */
CHECK(FLEXIO_MEMTYPE_DPA == 0, "the default");
CHECK(offsetof(struct flexio_qmem, daddr) == offsetof(struct flexio_qmem, humem_offset), "qmem");
CHECK(offsetof(struct flexio_cq_attr, emulated_eqn) == offsetof(struct flexio_cq_attr, thread),
      "what a CQ activates");
CHECK(offsetof(struct flexio_wq_attr, sq) == offsetof(struct flexio_wq_attr, rq),
      "kinds of queues");

/* Results are added up by programs. */
int or_together(struct flexio_process *process);
int or_together(struct flexio_process *process)
{
	int failed = 0;

	failed |= flexio_buf_dev_free(process, 0);
	failed |= flexio_process_destroy(process);
	return failed;
}

/* The older names of the default stream, and both names of the modes. */
flexio_status default_stream(struct flexio_process *process);
flexio_status default_stream(struct flexio_process *process)
{
	flexio_msg_stream_attr_t attr;
	pthread_t writer;

	memset(&attr, 0, sizeof(attr));
	attr.data_bsize = 2048;
	attr.sync_mode = FLEXIO_LOG_DEV_SYNC_MODE_SYNC;
	attr.sync_mode = FLEXIO_MSG_DEV_SYNC_MODE_SYNC;
	if (flexio_log_dev_init(process, &attr, stdout, &writer) != FLEXIO_STATUS_SUCCESS ||
	    flexio_log_dev_flush(process) != FLEXIO_STATUS_SUCCESS)
		return FLEXIO_STATUS_FAILED;
	return flexio_log_dev_destroy(process);
}

#ifdef __cplusplus
}
#endif
