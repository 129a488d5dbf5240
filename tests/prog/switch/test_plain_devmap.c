// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The cases of test_devmap.c once more, with the object for plain nodes. */
#define WITH_PLAIN true
#include "tests/prog/switch/test_devmap.c"
