/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of all kinds of descriptors on sockets of RDMA netlink (netlink_is), as the functions of libc of
 * these names. */
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

int socket_bind(int fd, const struct sockaddr *address, socklen_t length);
ssize_t socket_read(int fd, void *buf, size_t n);
ssize_t socket_write(int fd, const void *buf, size_t n);
ssize_t socket_readv(int fd, const struct iovec *vector, int count);
ssize_t socket_writev(int fd, const struct iovec *vector, int count);
