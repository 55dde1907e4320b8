/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls on umad and issm files with one mistake each, or two, of which the kernel reports the first. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define NEW_HEADER 64u
#define OLD_HEADER 56u
#define MAD_BYTES  256u
#define WAIT_MS	   30000
#define OUR_OUI	   0x001405u

extern uint8_t *nowhere; /* a page that nobody may touch; the one before it may be */

/* The call returned 'ret', and should have failed with 'error', or not at all if that is 0. */
void call_gave(const char *what, long ret, int error);
/* The first port's file, with the new layout unless 'old'. */
int umad_file(int old);
/* An agent that asks, of that class; its id. */
uint32_t umad_agent(int fd, unsigned qpn, unsigned class, unsigned rmpp);
/* A NodeInfo question to the own port, ready for write() with the new layout. */
struct question {
	_Alignas(8) uint8_t bytes[NEW_HEADER + MAD_BYTES];
};
struct question question_of(uint32_t id, uint32_t tid);
int question_answered(int fd);

void errnos_of_register(void);
void errnos_of_write(void);
void errnos_of_read(void);
void errnos_of_files(void);
void errnos_of_issm(void);
void errnos_of_ethernet(void);
