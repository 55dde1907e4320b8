/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPI_Alltoall over all ranks, with data that each rank checks: bench/run compiles it with mpicc.
 *
 * alltoall BYTES FIRST COUNT: prints "first value us" and "alltoall value us", the mean time of one in
 * the first rounds, in which libraries touch their memory for the first time, and in the rounds after
 * them.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* What a rank sends to another one in a round. */
static unsigned char value(int from, int to, int round, size_t at)
{
	return (unsigned char)(from * 31 + to * 7 + round * 13 + (int)at);
}

static void fill(unsigned char *out, int ranks, int me, int round, size_t bytes)
{
	for (int to = 0; to < ranks; to++)
		for (size_t at = 0; at < bytes; at++)
			out[(size_t)to * bytes + at] = value(me, to, round, at);
}

static void check(const unsigned char *in, int ranks, int me, int round, size_t bytes)
{
	for (int from = 0; from < ranks; from++)
		for (size_t at = 0; at < bytes; at++)
			if (in[(size_t)from * bytes + at] != value(from, me, round, at)) {
				fprintf(stderr, "rank %d: wrong data of rank %d\n", me, from);
				MPI_Abort(MPI_COMM_WORLD, 1);
			}
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? (size_t)atol(argv[1]) : 8;
	int first = argc > 2 ? atoi(argv[2]) : 100;
	int count = argc > 3 ? atoi(argv[3]) : 100, ranks, me;
	unsigned char *in, *out;
	double took[2] = {0};

	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	in = calloc((size_t)ranks, bytes);
	out = calloc((size_t)ranks, bytes);
	if (!in || !out)
		MPI_Abort(MPI_COMM_WORLD, 1);
	/* The very first one connects everybody. */
	for (int round = -1; round < first + count; round++) {
		double start;

		fill(out, ranks, me, round, bytes);
		start = MPI_Wtime();
		MPI_Alltoall(out, (int)bytes, MPI_BYTE, in, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
		took[round >= first] += round < 0 ? 0 : MPI_Wtime() - start;
		check(in, ranks, me, round, bytes);
	}
	if (!me)
		printf("first %.1f us\nalltoall %.1f us\n", took[0] * 1e6 / first,
		       took[1] * 1e6 / count);
	free(in);
	free(out);
	MPI_Finalize();
	return 0;
}
