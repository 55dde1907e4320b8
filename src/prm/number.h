/* SPDX-License-Identifier: BSD-2-Clause */
/* The spaces that the numbers of a device's objects come from. */
#pragma once

enum number_kind { NUMBER_QPN, NUMBER_SRQN, NUMBER_MKEY, NUMBER_PSV, NUMBER_KINDS };
