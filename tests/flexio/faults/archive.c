// SPDX-License-Identifier: BSD-2-Clause
/* Device code of an archive; NAME is what the image calls. */
#include <stdint.h>

uint64_t NAME(uint64_t addr);

uint64_t NAME(uint64_t addr)
{
	*(volatile uint64_t *)(uintptr_t)addr = addr; /* archive */
	return 0;
}
