/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message there and back between two ranks of MPI, which both check it: bench/run compiles it with
 * mpicc.
 *
 * pingpong BYTES COUNT: prints "pingpong value us", half of the median round trip, and "pingpong_mean".
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define WARM_UP 200

static unsigned char value(int from, int round, size_t at)
{
	return (unsigned char)(from * 31 + round * 13 + (int)at);
}

static void send_to(int me, unsigned char *buffer, size_t bytes, int round)
{
	for (size_t at = 0; at < bytes; at++)
		buffer[at] = value(me, round, at);
	MPI_Send(buffer, (int)bytes, MPI_BYTE, !me, 0, MPI_COMM_WORLD);
}

static void receive_from(int me, unsigned char *buffer, size_t bytes, int round)
{
	MPI_Recv(buffer, (int)bytes, MPI_BYTE, !me, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (size_t at = 0; at < bytes; at++)
		if (buffer[at] != value(!me, round, at)) {
			fprintf(stderr, "rank %d: wrong data in round %d\n", me, round);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? (size_t)atol(argv[1]) : 8;
	int count = argc > 2 ? atoi(argv[2]) : 1000, me;
	unsigned char *buffer = malloc(bytes);
	double *took = calloc((size_t)count, sizeof(*took)), sum = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	if (!buffer || !took || count < 1)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int round = -WARM_UP; round < count; round++) {
		double start = MPI_Wtime();

		if (!me)
			send_to(me, buffer, bytes, round);
		receive_from(me, buffer, bytes, round);
		if (me)
			send_to(me, buffer, bytes, round);
		if (round >= 0)
			sum += took[round] = MPI_Wtime() - start;
	}
	if (!me) {
		qsort(took, (size_t)count, sizeof(*took), compare);
		printf("pingpong %.2f us\npingpong_mean %.2f us\n", took[count / 2] * 5e5,
		       sum * 5e5 / count);
	}
	free(took);
	free(buffer);
	MPI_Finalize();
	return 0;
}
