// SPDX-License-Identifier: BSD-2-Clause
/*
 * pthread_cancel: a thread that sleeps in the place of libc's read (driver/runtime/drive.h) has to
 * hear of it.
 */
#include "preload/libc.h"

#include <pthread.h>

#include "driver/cdev.h"

exported int pthread_cancel(pthread_t thread)
{
	int err = real(pthread_cancel)(thread);

	if (!err)
		cdev_cancelled();
	return err;
}
