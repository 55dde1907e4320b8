// SPDX-License-Identifier: BSD-2-Clause
/* What programs of generation 24.10 and later write with the host's header, in C and in C++. */
#include <libflexio/flexio_ver.h>
#define FLEXIO_VER_USED FLEXIO_VER(25, 7, 0)
#include <libflexio/flexio.h>

#ifdef __cplusplus
extern "C" {
#endif

flexio_status open_application(struct ibv_context *context, const char *name,
			       struct flexio_app **app);
flexio_status open_application(struct ibv_context *context, const char *name,
			       struct flexio_app **app)
{
	struct flexio_app_select_attr select;
	struct flexio_event_handler_attr handler;

	memset(&handler, 0, sizeof(handler));
	handler.affinity.type = FLEXIO_AFFINITY_FLEXIBLE;
	if (flexio_version_set(FLEXIO_VER_USED))
		return FLEXIO_STATUS_FAILED;
	select.app_name = name;
	select.hw_model_id = FLEXIO_HW_MODEL_DEF;
	select.ibv_ctx = context;
	return flexio_app_get(&select, app);
}

flexio_status open_stream(struct flexio_process *process, struct flexio_msg_stream **stream);
flexio_status open_stream(struct flexio_process *process, struct flexio_msg_stream **stream)
{
	struct flexio_msg_stream_attr attr;
	flexio_msg_stream_attr_t same;

	memset(&attr, 0, sizeof(attr));
	attr.data_bsize = 2048;
	attr.sync_mode = FLEXIO_MSG_DEV_SYNC_MODE_SYNC;
	attr.level = FLEXIO_MSG_DEV_INFO;
	attr.transport_mode = FLEXIO_MSG_TRANSPORT_QP_RC;
	same = attr;
	return flexio_msg_stream_create(process, &same, stdout, NULL, stream);
}

#ifdef __cplusplus
}
#endif
