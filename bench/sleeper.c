/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preloaded into other people's programs: gives them a second thread, which sleeps for good, as most
 * programs have one.  The programs are those whose name begins as SLEEPER_IN says, so that none
 * that starts them gets one.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *sleeper_run(void *arg)
{
	for (;;)
		pause();
	return arg;
}

__attribute__((constructor)) static void sleeper_start(void)
{
	const char *in = getenv("SLEEPER_IN");
	pthread_t thread;

	if (in && !strncmp(program_invocation_short_name, in, strlen(in)) &&
	    pthread_create(&thread, NULL, sleeper_run, NULL))
		abort();
}
