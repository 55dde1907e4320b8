// SPDX-License-Identifier: BSD-2-Clause
/*
 * Two ranks that talk in turns and check what they get, compiled by mpicc when the test runs.  After
 * some rounds rank 0 makes a file 'armed' in its directory, and waits for a file 'broken' before it goes on.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS	50
#define LONG	60000
#define WAIT_MS 30000

static char data[LONG];

static void talk(int rank, int bytes)
{
	for (int i = 0; i < ROUNDS; i++) {
		memset(data, rank ? 0 : i + 1, (size_t)bytes);
		if (!rank)
			MPI_Send(data, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(data, bytes, MPI_CHAR, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (data[0] != i + 1 || data[bytes - 1] != i + 1)
			MPI_Abort(MPI_COMM_WORLD, 3);
		if (rank)
			MPI_Send(data, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	talk(rank, 100);
	talk(rank, LONG);
	if (!rank) {
		close(open("armed", O_CREAT | O_WRONLY, 0600));
		for (int ms = 0; access("broken", F_OK) && ms < WAIT_MS; ms += 10)
			usleep(10000);
	}
	talk(rank, 100);
	talk(rank, LONG);
	MPI_Finalize();
	if (!rank)
		puts("all rounds");
	return 0;
}
