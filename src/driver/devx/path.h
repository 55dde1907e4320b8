/* SPDX-License-Identifier: BSD-2-Clause */
/* The address path of a QP context as the device's address vector, and back. */
#pragma once

#include "driver/devx/devx.h"

/*
 * The path itself says which MAC the packets go to, unlike an address handle of verbs.  -EINVAL for
 * a port or a source GID that is not there.
 */
int devx_path_decode(const struct ufile *f, const uint8_t *ads, struct ib_ah *out) must_check;
void devx_path_encode(const struct ufile *f, const struct ib_ah *ah, uint8_t *ads);
/* Gives the path's port; 0 stands for the only one. */
int devx_path_port(const uint8_t *ads, uint8_t *port) must_check;
