// SPDX-License-Identifier: BSD-2-Clause
/* The other end as a program of its own: take ADDRESS PORT. */
#include <stdio.h>
#include <stdlib.h>

#include "target.h"

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "take ADDRESS PORT\n");
		return 2;
	}
	return target_run(argv[1], (uint16_t)atoi(argv[2]));
}
