/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `softhca run --view=mount`: the device tree of a host is mounted over /sys and /dev, in a mount
 * namespace of the program and its children.  Programs that make their own system calls (Go, static
 * programs) see the tree only so (docs/design/files.md).
 */
#pragma once

#include "base/compiler.h"
#include "tool/tool.h"

/* Moves this process, which has no other thread, into such a namespace.  0, or an exit status after
 * an error line. */
int mount_view_enter(const struct session *s, const char *host) must_check;

/*
 * What softhca-view (tree_server.c) has open: a socket, on which it sends a byte once it runs and waits for
 * one that says that the file system is mounted, and /dev/fuse.
 */
#define VIEW_SOCKET_FD 3
#define VIEW_FUSE_FD   4
