/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbells without a device: a page of a memfd, mapped twice as by program and device, and queues
 * that count how often they are served.
 */
#pragma once

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "driver/doorbell/doorbell.h"
#include "prm/uar.h"

#define DOORBELL_DEVICE_QUEUES 20u

struct doorbell_queue {
	struct doorbell_user user;
	_Atomic(uint32_t) posted; /* its record */
	_Atomic(uint32_t) done;
	_Atomic(uint32_t) served;
};

struct doorbell_device {
	int fd;
	uint8_t *program, *device;
	_Atomic(bool) hooks;
	struct doorbell_page *page;
	struct doorbell_queue queues[DOORBELL_DEVICE_QUEUES];
	uint32_t named; /* the last that a register named */
	uint16_t named_pi;
	struct doorbell_engine engine;
	sem_t kicked;
	_Atomic(bool) stop;
};

void doorbell_device_open(struct doorbell_device *r, bool hooks, unsigned queues);
void doorbell_device_close(struct doorbell_device *r);
/* One more mapping of the page. */
uint8_t *doorbell_device_map(int fd);
/* A register named this queue pair: serves it. */
void doorbell_device_named(void *user, uint32_t qpn, uint16_t pi);
void doorbell_queue_serve(struct doorbell_user *u);
/* As a program does: the record, then the register. */
void doorbell_device_post(struct doorbell_device *r, uint8_t *page, unsigned queue, unsigned half);
/* All that was posted has been served. */
bool doorbell_device_done(const struct doorbell_device *r);
