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
#include "driver/runtime/process.h"
#include "driver/uverbs/core/dm_pool.h"
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
	bool context; /* GET_CONTEXT succeeded */
	/* For people (exposure/object.h): the number of the context in this process, from 1, and
	 * its row, which may be NULL. */
	uint32_t context_number;
	struct object_row *context_row;
	int context_error;    /* why the first GET_CONTEXT did not succeed */
	bool devx;	      /* GET_CONTEXT asked for DEVX */
	_Atomic(bool) hooked; /* the program's entry points announce their doorbells */
	struct uchannel *async;
	struct uobj_table objects;
	uint64_t uar_used[UVERBS_UARS / 64];
	struct uuar *uar_spare; /* kept for the first request; objects/uar.c */
	struct dm_pool dm;	/* has a lock of its own */
	/* subscriptions to events of the device as a whole; devx/channel.c */
	struct devx_subscription *devx_events;
	struct spin clock_busy; /* held by writers of the clock's pages */
};

/* ---- what the file's port says of itself, for any request that asks ---- */

/*
 * Port 1, which speaks for all ports of a device in what they share: link layer, sizes of tables.
 */
const struct subnet_port *ufile_port(const struct ufile *f);
/* Tells whether the device has a port of that number; they count from 1. */
bool ufile_has_port(const struct ufile *f, uint64_t number) must_check;
/* Row of a port that the device has. */
uint32_t ufile_port_row(const struct ufile *f, uint32_t number);
uint32_t ufile_port_state(const struct ufile *f, uint32_t number); /* enum ib_port_state */
uint8_t ufile_phys_state(const struct ufile *f, uint32_t number);  /* enum smp_phys_state */
uint32_t uverbs_comp_vectors(void);
/* Checks that what mask chooses of attr is within the device's limits: 0 or -EINVAL. */
int ufile_check_qp_attr(const struct ufile *f, const struct qp_attr *attr,
			uint32_t mask) must_check;

/* ---- the device's clock ---- */

/*
 * The device's clock: the system's monotonic clock, so that time stamps of different processes
 * compare, in ticks of the frequency that the model's card has.
 *
 * Two pages of the command descriptor show it (mlx5-abi.h): the counter itself, big-endian, and
 * what is needed to convert time stamps into wall-clock time.  Memory does not tick, so the counter
 * is as old as the last uclock_refresh: the hook of ibv_query_rt_values_ex calls it right before
 * the library reads.  The conversion holds until somebody sets the wall clock; control calls renew
 * it.
 */

#define UCLOCK_PAGE_OFFSET ((uint64_t)0x500 * UVERBS_PAGE) /* MLX5_IB_MMAP_CORE_CLOCK */
#define UCLOCK_INFO_OFFSET ((uint64_t)0x700 * UVERBS_PAGE) /* MLX5_IB_MMAP_CLOCK_INFO, V1 */

struct ufile;

uint32_t uclock_khz(const struct ufile *f);
void uclock_refresh(struct ufile *f);
