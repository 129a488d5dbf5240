// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Linked with test_devmap.c, whose cases run once more with the object for plain nodes. */
#include <stdbool.h>

extern const bool with_plain;
const bool with_plain = true;
