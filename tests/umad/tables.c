// SPDX-License-Identifier: BSD-2-Clause
/*
 * Changes what a switch's forwarding table says of one LID, by a directed route, as a subnet manager
 * would, and prints the port that stood there.
 * Usage: tables_mads LID PORT HOP...     the hops lead to the switch
 */
#include "checklist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ATTRIBUTE_FORWARDING 0x19
#define METHOD_SET	     0x02
#define BLOCK		     64u
#define AT_HOPS		     7
#define AT_MODIFIER	     20
#define AT_DATA		     64
#define AT_PATH		     128

/* The answer is in *l. */
static void exchange(int fd, struct letter *l)
{
	struct letter got;

	letter_is_sent(fd, l);
	got = letter_received(fd);
	/* The highest bit says that it has come back. */
	must(got.status == 0 && (letter_status(&got) & 0x7fff) == 0, "status %u, %#x", got.status,
	     letter_status(&got));
	memcpy(l->mad + AT_DATA, got.mad + AT_DATA, BLOCK);
	letter_free(&got);
}

int main(int argc, char **argv)
{
	int fd = port_file(1);
	uint32_t id = port_agent(fd, agent_of(CLASS_DIRECTED));
	struct letter l = letter_to_self(id, 1);
	unsigned lid;
	uint8_t *entry;

	must(argc > 3 && argc < 60, "see the head of tables.c");
	lid = (unsigned)atoi(argv[1]);
	l.mad[17] = ATTRIBUTE_FORWARDING;
	l.mad[AT_HOPS] = (uint8_t)(argc - 3);
	l.mad[AT_MODIFIER + 2] = (uint8_t)(lid / BLOCK >> 8);
	l.mad[AT_MODIFIER + 3] = (uint8_t)(lid / BLOCK);
	for (int i = 3; i < argc; i++)
		l.mad[AT_PATH + i - 2] = (uint8_t)atoi(argv[i]);
	exchange(fd, &l);
	entry = l.mad + AT_DATA + lid % BLOCK;
	printf("%u\n", *entry);
	*entry = (uint8_t)atoi(argv[2]);
	l.mad[3] = METHOD_SET;
	l.mad[15]++; /* another transaction */
	exchange(fd, &l);
	must(*entry == (uint8_t)atoi(argv[2]), "the table says %u", *entry);
	return 0;
}
