#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The soak: random racks, traffic and accidents for SOAK_SECONDS (default 600), built in the build directory $1. A failure prints the seed that repeats it.
#
#	SOAK_SECONDS=3600 make soak
set -eu
build=${1:-build}
exec "$build/tests/net/test_soak" --seconds "${SOAK_SECONDS:-600}" ${SOAK_SEED:+--seed "$SOAK_SEED"}
