/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the statements about umad and issm files (checklist.tsv) are tested with.  Each statement is a
 * function and a process of its own.  There are two programs: one opens, registers, sends and receives
 * by open, ioctl, write and read (by_calls.c), the other by libibumad (by_library.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MAD_BYTES	256u
#define OLD_HEADER	56u
#define NEW_HEADER	64u
#define CLASS_PERF	0x04
#define CLASS_DIRECTED	0x81
#define CLASS_VENDOR	0x31 /* has an OUI and RMPP */
#define CLASS_PLAIN	0x0c /* has neither, and belongs to nobody here */
#define METHOD_GET	0x01
#define METHOD_SEND	0x03
#define METHOD_GET_RESP 0x81
#define RESPONSE_BIT	0x80
#define VENDOR_DATA	40u /* where the data of an RMPP message of that class begins */
#define NO_SUCH_LID	0xb000
#define WAIT_MS		30000
#define OUI_OF_OURS	0x001405u
#define ISSM_BIT	2u
#define ATTRIBUTE_NODE	0x11
#define ATTRIBUTE_PKEYS 0x16

/* ---- the statements, and ports.c ---- */

struct statement {
	unsigned number;
	void (*test)(void);
};
extern const struct statement statements_of_files[], statements_of_agents[],
	statements_of_receiving[], statements_of_sending[], statements_of_layouts[],
	statements_of_issm[];

/* Ends the statement's process with the words of what went wrong, and where. */
#define must(condition, ...) ((condition) ? (void)0 : failed(__FILE__, __LINE__, __VA_ARGS__))
__attribute__((format(printf, 3, 4), noreturn)) void failed(const char *file, int line,
							    const char *format, ...);

/* The number that these words begin with; 0: none. */
extern unsigned failed_statement;

/* What the file says, or "" if it cannot be read; without the end of the line. */
const char *text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Of port 1, 2... of this host's first device. */
uint16_t lid_of(unsigned port);
void gid_of(unsigned port, uint8_t gid[16]);
bool issm_bit_of(unsigned port);

/* ---- by_calls.c or by_library.c ---- */

struct agent {
	uint32_t qpn, class, version, oui, rmpp;
	uint64_t methods[2];
	bool second; /* by REGISTER_AGENT2 */
	uint32_t flags;
};

struct letter {
	uint32_t id, status, timeout_ms, retries;
	uint32_t length; /* what the header says, as it was read */
	uint32_t qpn;
	uint16_t lid, pkey_index; /* pkey_index: new layout only */
	uint8_t sl, path_bits;
	bool grh;
	uint8_t gid_index, hop_limit, traffic_class;
	uint32_t flow_label;
	uint8_t gid[16];
	size_t bytes; /* of mad */
	uint8_t *mad;
};

/* The file of port 1, 2..., which never blocks.  The descriptor or -errno. */
int port_open(unsigned port);
/* An id, or -errno. */
int port_register(int fd, const struct agent *a);
int port_unregister(int fd, uint32_t id);
/* 0 or -errno. */
int port_send(int fd, const struct letter *l);
/* Waits for a message and reads it with room for so much of a MAD.  0; -ENOSPC, with length; -errno. */
int port_receive(int fd, struct letter *l, size_t room);
bool port_waits(int fd); /* a message, now */
int port_close(int fd);
/* Which header is in force: what ours does to find it out. */
size_t port_header(int fd);

/* ---- letters.c: what is sent, and the ways to send it ---- */

struct agent agent_of(uint32_t class); /* to ask only */
struct agent server_of(uint32_t class, uint8_t method);
/* As port_register; it must succeed. */
uint32_t port_agent(int fd, struct agent a);
/* A file of that port, which must open. */
int port_file(unsigned port);

/* A MAD of 256 bytes in a letter to that LID and QP 1 (QP 0: SMPs). */
struct letter letter_to(uint16_t lid, uint32_t class, uint8_t method, uint16_t attribute,
			uint64_t tid);
/* NodeInfo of the own port, by a directed route of no hops. */
struct letter letter_to_self(uint32_t id, uint64_t tid);
/* An RMPP message with so many bytes of data, which its place decides. */
struct letter letter_with_data(uint16_t lid, uint64_t tid, size_t data);
bool letter_has_data(const struct letter *l, size_t data);
void letter_free(struct letter *l);
uint64_t letter_tid(const struct letter *l);
uint16_t letter_status(const struct letter *l);
void letter_is_sent(int fd, const struct letter *l);
struct letter letter_received(int fd);

/* Two ports of this host: who asks is at port 1, who answers at port 2, in a vendor's class. */
struct pair {
	int client, server;
	uint32_t client_id, server_id;
	uint16_t client_lid, server_lid;
};
struct pair pair_open(uint32_t rmpp);
/* The server sends the message that it has got back as an answer. */
void pair_answer(const struct pair *p, const struct letter *request);
void pair_close(struct pair *p);
