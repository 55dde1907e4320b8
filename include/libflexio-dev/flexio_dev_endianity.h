/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Byte order: little-endian and big-endian numbers to and from those of the machine.
 *
 * Each macro takes a number of the bits that its name says and gives one of as many bits.
 */
#ifndef _FLEXIO_DEV_ENDIANITY_H_
#define _FLEXIO_DEV_ENDIANITY_H_

#include <stdint.h>

#define __FLEXIO_DEV_KEEP16(x) ((uint16_t)(x))
#define __FLEXIO_DEV_KEEP32(x) ((uint32_t)(x))
#define __FLEXIO_DEV_KEEP64(x) ((uint64_t)(x))
#define __FLEXIO_DEV_SWAP16(x) ((uint16_t)__builtin_bswap16((uint16_t)(x)))
#define __FLEXIO_DEV_SWAP32(x) ((uint32_t)__builtin_bswap32((uint32_t)(x)))
#define __FLEXIO_DEV_SWAP64(x) ((uint64_t)__builtin_bswap64((uint64_t)(x)))

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

#define le16_to_cpu(x) __FLEXIO_DEV_KEEP16(x)
#define le32_to_cpu(x) __FLEXIO_DEV_KEEP32(x)
#define le64_to_cpu(x) __FLEXIO_DEV_KEEP64(x)
#define be16_to_cpu(x) __FLEXIO_DEV_SWAP16(x)
#define be32_to_cpu(x) __FLEXIO_DEV_SWAP32(x)
#define be64_to_cpu(x) __FLEXIO_DEV_SWAP64(x)

#else

#define le16_to_cpu(x) __FLEXIO_DEV_SWAP16(x)
#define le32_to_cpu(x) __FLEXIO_DEV_SWAP32(x)
#define le64_to_cpu(x) __FLEXIO_DEV_SWAP64(x)
#define be16_to_cpu(x) __FLEXIO_DEV_KEEP16(x)
#define be32_to_cpu(x) __FLEXIO_DEV_KEEP32(x)
#define be64_to_cpu(x) __FLEXIO_DEV_KEEP64(x)

#endif

#define cpu_to_le16(x) le16_to_cpu(x)
#define cpu_to_le32(x) le32_to_cpu(x)
#define cpu_to_le64(x) le64_to_cpu(x)
#define cpu_to_be16(x) be16_to_cpu(x)
#define cpu_to_be32(x) be32_to_cpu(x)
#define cpu_to_be64(x) be64_to_cpu(x)

#endif
