/* SPDX-License-Identifier: BSD-2-Clause */
/* /dev/infiniband/uverbs<N>: the file, and the two ways in which requests come to it. */
#pragma once

#include "driver/uverbs/core/spec.h"

/* An opener for cdev.c: returns a descriptor, or a negative errno. */
int uverbs_file_open(const char *name, int flags);
extern const struct cdev_ops uverbs_file_ops;

int uverbs_ioctl(struct ufile *f, unsigned long request, void *arg);
/* A forked child calls this on the parent's file: most methods answer -EIO. */
int uverbs_ioctl_inherited(struct ufile *f, unsigned long request, void *arg);
ssize_t uverbs_write(struct ufile *f, const void *buf, size_t count);

/* What the device can do, as IBV_DEVICE_* and the flags of the extended query. */
uint64_t udevice_cap_flags(bool ethernet);

/* All families. */
extern const struct uverbs_family *const uverbs_families[];
extern const size_t uverbs_families_count;
/* The rows of a method and of a command, or NULL. */
const struct method_spec *uverbs_method(uint16_t object, uint16_t method);
const struct command_spec *uverbs_command(uint32_t number);

extern const struct uverbs_family ucontext_family;
extern const struct uverbs_family udevice_family;
/* The method that carries a command. */
extern const struct method_spec uverbs_invoke_write;
