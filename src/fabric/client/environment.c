// SPDX-License-Identifier: BSD-2-Clause
/* Remembers where this process's fabric is; see environment.h. */
#include "fabric/client/environment.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static struct fabric_environment environment;

static bool environment_take(const char *name, char *buf, size_t size)
{
	const char *value = getenv(name);

	if (!value || strlen(value) >= size)
		return false;
	memcpy(buf, value, strlen(value) + 1);
	return true;
}

static void environment_read(void)
{
	if (!environment_take("SOFTHCA_DIR", environment.dir, sizeof(environment.dir)))
		return;
	if (environment.dir[0] != '/') {
		environment.dir[0] = '\0';
		return;
	}
	environment_take("SOFTHCA_HOST", environment.host, sizeof(environment.host));
	environment_take("SOFTHCA_DAEMON", environment.daemon, sizeof(environment.daemon));
}

__attribute__((constructor)) static void environment_at_start(void)
{
	environment_read();
}

const struct fabric_environment *fabric_environment(void)
{
	/* A test may have set the variables after the constructor ran. */
	if (!environment.dir[0])
		environment_read();
	return environment.dir[0] ? &environment : NULL;
}

void fabric_environment_renew(void)
{
	environment = (struct fabric_environment){0};
	environment_read();
}
