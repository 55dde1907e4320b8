/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams of a process of the DPA as objects of DEVX. */
#pragma once

#include "driver/devx/devx.h"

struct dpa_process;
struct dpa_stream;

struct devx_dpa_stream {
	struct devx_obj obj;
	struct dpa_process *process; /* held, because the stream lies in its memory */
	struct dpa_stream *stream;
};

/* Makes what is in a devx_dpa_stream, for devx/general.c. */
int devx_create_dpa_stream(struct devx_call *c, struct devx_obj *obj);

/* Operations of the general command, on a stream of the process; for devx/dpa.c. */
int devx_dpa_stream_read(struct devx_call *c, struct dpa_process *p);
int devx_dpa_stream_level(struct devx_call *c, struct dpa_process *p);
int devx_dpa_stream_close(struct devx_call *c, struct dpa_process *p);
