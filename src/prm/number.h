/* SPDX-License-Identifier: BSD-2-Clause */
/* The number spaces from which a device's objects get their numbers. */
#pragma once

enum number_kind { NUMBER_QPN, NUMBER_SRQN, NUMBER_MKEY, NUMBER_PSV, NUMBER_KINDS };
