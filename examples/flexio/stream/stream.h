/* SPDX-License-Identifier: BSD-2-Clause */
/* What both sides of the example know of the tracer's records: which format is which. */
#pragma once

enum trace_format {
	TRACE_BEGIN,  /* numbers */
	TRACE_SQUARE, /* number, its square */
	TRACE_DETAIL, /* number */
	TRACE_FORMATS,
};
