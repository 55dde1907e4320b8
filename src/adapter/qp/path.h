/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths: where packets go and what their headers say. */
#pragma once

#include "adapter/core/device.h"

struct wqe_av;

/* Fills a path from an address vector.  An unreachable destination gives a path that loses every
 * packet. */
void path_from_ah(const struct adapter *a, const struct ib_ah *ah, struct path *path);
/* The same from a work request's address vector; without the extended bit only the first 16 bytes
 * count. */
void path_from_av(const struct adapter *a, const struct wqe_av *av, struct path *path);
/*
 * The UDP port that a connection's packets come from, where nobody has chosen one: of the flow label,
 * and without that of the two numbers, as the kernel's rdma_get_udp_sport.
 */
uint16_t path_udp_sport(uint32_t flow_label, uint32_t qpn, uint32_t dest_qpn);
/* The path back to the sender of a packet that came by that path. */
void path_reverse(const struct path *path, struct path *back);
/* The kind of header, on Ethernet, in the 40 bytes in front of a datagram. */
enum cqe_roce_header path_header_type(const struct path *path);
/* Writes those bytes: the GRH, or for RoCE v2 over IPv4 the IP header at their end. */
void grh_from_path(const struct path *path, uint32_t payload_bytes, uint8_t out[IB_GRH_BYTES]);
