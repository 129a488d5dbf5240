#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# soak.sh [BUILD] - run random racks, traffic and accidents for SOAK_SECONDS (default 600) with the
# programs in BUILD (default build). A failure prints the seed that repeats it; SOAK_SEED sets it.
#
#	SOAK_SECONDS=3600 make soak
set -eu
build=${1:-build}
exec "$build/tests/net/test_soak" --seconds "${SOAK_SECONDS:-600}" ${SOAK_SEED:+--seed "$SOAK_SEED"}
