#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# man3.sh FOLDER VERSION - write the pages of section 3, and the links to them, into FOLDER.
# man3.sh --list         - print the names of pages and links.
set -euo pipefail
cd "$(dirname "$0")/../.."
usage='usage: man3.sh FOLDER VERSION | --list'
out=${1:?$usage}
[ "$out" = --list ] || version=${2:?$usage}

# one line per page
pages() {
	awk '/^#/ { next } /^\t/ { line = line " " $0; next } { if (line) print line; line = $0 }
		END { print line }' docs/man3/pages
}

names() {
	local s

	for s in $1; do
		case $s in
		*:* | BL_*) ;;
		*) echo "$s" ;;
		esac
	done
}

date=$(sed -n 's/^\.Dd //p' docs/libbarline.3)
[ "$out" = --list ] || { mkdir -p "$out" && rm -f "$out"/*.3; }
while IFS=: read -r page rest; do
	symbols=${rest%%|*}
	if [ "$out" = --list ]; then
		names "$symbols"
		continue
	fi
	awk -v page="$page" -v symbols="$symbols" -v see="${rest#*|}" -v version="$version" \
		-v date="$date" -f docs/man3/man3.awk lib/barline.h >"$out/$page.3"
	for s in $(names "$symbols"); do
		[ "$s" = "$page" ] || echo ".so man3/$page.3" >"$out/$s.3"
	done
done < <(pages)
