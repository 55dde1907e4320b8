/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A shared receive queue of an XRC domain, as initiators in other processes see it.  Their requests
 * name it, and the word says under which protection domain they are executed.  It is one word, so
 * that readers see all of it at once:
 *
 *     there:1 | 0:7 | number, its upper bits:8 | XRC domain:24 | protection domain:24
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SRQ_WORD_NUMBER	      0xffffffu
#define SRQ_WORD_DOMAIN_SHIFT 24u
#define SRQ_WORD_UPPER_SHIFT  48u
#define SRQ_WORD_THERE	      (1ull << 63)

/* The word without the protection domain.  The lower bits of the queue's number are the word's
 * place. */
static inline uint64_t srq_word_of(uint32_t srqn, uint32_t xrcdn)
{
	return SRQ_WORD_THERE | (uint64_t)(srqn >> 16 & 0xff) << SRQ_WORD_UPPER_SHIFT |
	       (uint64_t)xrcdn << SRQ_WORD_DOMAIN_SHIFT;
}

/* The whole word; 0: the numbers are too large for it. */
static inline uint64_t srq_word_make(uint32_t srqn, uint32_t xrcdn, uint32_t pdn)
{
	return xrcdn <= SRQ_WORD_NUMBER && pdn <= SRQ_WORD_NUMBER ? srq_word_of(srqn, xrcdn) | pdn
								  : 0;
}

/* True if the word is that of this queue, of this domain. */
static inline bool srq_word_is(uint64_t word, uint32_t srqn, uint32_t xrcdn)
{
	return (word & ~(uint64_t)SRQ_WORD_NUMBER) == srq_word_of(srqn, xrcdn);
}

static inline uint32_t srq_word_domain(uint64_t word)
{
	return (uint32_t)(word >> SRQ_WORD_DOMAIN_SHIFT) & SRQ_WORD_NUMBER;
}

static inline uint32_t srq_word_pdn(uint64_t word)
{
	return (uint32_t)word & SRQ_WORD_NUMBER;
}
