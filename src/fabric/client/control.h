/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control thread reads everything that the daemon sends: it hands replies to the threads that
 * wait for them, and notifications to the upcalls.
 */
#pragma once

#include "fabric/client/connection.h"

/* 0, or a negative errno if memory or threads are short. */
int client_control_start(struct fabric_client *c) must_check;
/* Ends the connection and waits for the thread's end.  Cleans up if the daemon had gone. */
void client_control_stop(struct fabric_client *c);
