/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One open /dev/infiniband/uverbs<N>: what the kernel calls a uverbs file with its context.  The
 * descriptor is a memfd, so that the program maps UAR pages itself and we map the same pages.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/spin.h"
#include "driver/file/cdev_file.h"
#include "driver/uverbs/core/dm_pool.h"
#include "driver/runtime/process.h"
#include "driver/uverbs/core/object.h"

#define UVERBS_PAGE	  4096u
#define UVERBS_FILE_BYTES (64u << 20) /* sparse; every mmap offset lies below */
/* UAR pages begin above the offsets that encode an mmap command (command << 8 | index pages). */
#define UVERBS_UAR_FIRST 0x1000u
#define UVERBS_UARS	 4096u
/* mlx5's mmap command for device memory; the index of its first page follows. */
#define UVERBS_DM_OFFSET ((uint64_t)0x800 * UVERBS_PAGE)

/* Character device numbers of the uverbs class. */
#define UVERBS_MAJOR 231u
#define UVERBS_MINOR 192u

struct uchannel;
struct uuar;

struct ufile {
	struct cdev_file cdev;
	struct process *process;
	struct hca *hca;
	uint8_t *pages; /* our view of the memfd, UVERBS_FILE_BYTES */

	/* One control call at a time; never taken on the data path. */
	pthread_mutex_t lock;
	bool context;	      /* GET_CONTEXT succeeded */
	int context_error;    /* why the first GET_CONTEXT did not succeed */
	bool devx;	      /* GET_CONTEXT asked for DEVX */
	_Atomic(bool) hooked; /* the program's entry points announce their doorbells */
	struct uchannel *async;
	struct uobj_table objects;
	uint64_t uar_used[UVERBS_UARS / 64];
	struct uuar *uar_spare; /* kept for the first request; objects/uar.c */
	struct dm_pool dm;	/* has a lock of its own */
	/* subscriptions to events of the device as a whole; devx/event.c */
	struct devx_subscription *devx_events;
	struct spin clock_busy; /* held by writers of the clock's pages */
};
