#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# instructions.sh - what switch_cost measures, counted: `make bench-instructions`. It runs in a
# guest in virtual time (tests/vm/vm.sh -i), where each instruction of the guest takes 4 ns. The
# columns "bare", "barline" and "added" are instructions per frame here, the same in each run
# and under any load of this machine. So a change of a few of them can be seen, which nanoseconds
# on a shared machine hide. What an instruction costs (caches, predictions) they do not say.
#
# Environment:
#   KERNEL	the kernel (6.12; the programs of the benchmark, which call those of the hook, need
#		more stack than 6.1 has)
#   BUILD	build folder (build)
#
# Exit: that of switch_cost, or of vm.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/.." && pwd)
binary=${BUILD:-$top/build}/bench/switch_cost
[ -x "$binary" ] || { echo "instructions: $binary is not built; run make bench" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
strip -g -o "$work/switch_cost" "$binary"
"$top/tests/vm/vm.sh" -i -k "${KERNEL:-6.12}" -d "$work" -t 1200 -- \
	./switch_cost --runs 1 --repeat 2000 |
	awk '/^frame, ns/ { printf "%-28s %6s %10s %10s %10s\n", "frame, instructions", "ports",
				"bare", "barline", "added"; next }
		$NF ~ /[0-9]\.\.[-0-9]/ { printf "%s %10.1f %10.1f %10.1f\n", substr($0, 1, 35),
				$(NF - 3) / 4, $(NF - 2) / 4, $(NF - 1) / 4
			fflush() }'
