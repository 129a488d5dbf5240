// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The cases of test_commit.c once more, with the object for plain nodes. */
#define WITH_PLAIN true
#include "tests/prog/host/test_commit.c"
