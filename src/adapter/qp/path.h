/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths: where packets go. */
#pragma once

#include "adapter/core/device.h"

struct wqe_av;

/* Fills a path from an address vector.  A destination that cannot be reached gives a path on which
 * every packet is lost. */
void path_from_ah(const struct adapter *a, const struct ib_ah *ah, struct path *path);
/* The same from a work request's address vector, of which only the first 16 bytes count without the
 * extended bit. */
void path_from_av(const struct adapter *a, const struct wqe_av *av, struct path *path);
/*
 * The UDP port from which a connection's packets come if nobody has chosen one.  It depends on the
 * flow label or, without one, on the two QP numbers, as in the kernel's rdma_get_udp_sport.
 */
uint16_t path_udp_sport(uint32_t flow_label, uint32_t qpn, uint32_t dest_qpn);
/* The path back to the sender of a packet that came along 'path'. */
void path_reverse(const struct path *path, struct path *back);
/* True if a packet that came along 'path' has the GIDs of our own path, in the other direction. */
bool path_has_gids_of(const struct path *path, const struct path *own);
/* On Ethernet, the kind of header in the 40 bytes in front of a datagram. */
enum cqe_roce_header path_header_type(const struct path *path);
