/* SPDX-License-Identifier: BSD-2-Clause */
/* How the tables of ioctl methods are written. */
#pragma once

#include "driver/uverbs/objects.h"

#define OPT	   .optional = 1
#define IN(n)	   ATTR_PTR_IN, .min = (n), .max = (n)
#define OUT(n)	   ATTR_PTR_OUT, .min = (n), .max = (n)
#define IN_MIN(n)  ATTR_PTR_IN, .min = (n), .max = UINT16_MAX
#define OUT_MIN(n) ATTR_PTR_OUT, .min = (n), .max = UINT16_MAX
/* A number: always 8 bytes, whatever the width of what it stands for. */
#define CONST_IN ATTR_PTR_IN, .min = 8, .max = 8
/* Bits, which libraries send as 4 or as 8 bytes: for ureq_flags. */
#define FLAGS_IN   ATTR_PTR_IN, .min = 4, .max = 8
#define IDR(what)  ATTR_IDR, .object = (what)
#define CHANNEL(k) ATTR_FD, .object = (k)

#define METHOD(object_id, method_id, fn, list)                                                     \
	{                                                                                          \
		.object = (object_id), .method = (method_id), .name = #method_id, .attrs = (list), \
		.nattrs = array_size(list), .run = (fn)                                            \
	}
#define INHERITED_METHOD(object_id, method_id, fn, list)                                           \
	{                                                                                          \
		.object = (object_id), .method = (method_id), .name = #method_id, .attrs = (list), \
		.nattrs = array_size(list), .run = (fn), .inherited = true                         \
	}
#define UHW_METHOD(object_id, method_id, fn, list)                                                 \
	{                                                                                          \
		.object = (object_id), .method = (method_id), .name = #method_id, .attrs = (list), \
		.nattrs = array_size(list), .run = (fn), .uhw = true                               \
	}

/* The methods of DEVX, devx/method_table.c. */
extern const struct method_spec devx_methods[];
extern const size_t devx_methods_count;
