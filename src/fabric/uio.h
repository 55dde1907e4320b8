/* SPDX-License-Identifier: BSD-2-Clause */
/* What the device tree and the files of emulated PCI functions agree on. */
#pragma once

/* One of the numbers that the kernel gives out as it goes. */
#define UIO_MAJOR 241u
