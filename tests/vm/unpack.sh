#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# unpack.sh SUITE PACKAGE... - get Debian packages and print the folder in which they are unpacked,
# all in one. Nothing is installed, and dependencies are not followed. Packages come as fetch.sh
# gets kernels.
#
# The cache is that of fetch.sh. What is in it is used without asking the mirror; remove the folder
# to get newer packages.
#
# Exit: 0 ready, 69 the mirror does not answer or has no such package, 126 anything else.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

[ $# -ge 2 ] || { echo "usage: unpack.sh SUITE PACKAGE..." >&2; exit 126; }
suite=$1
shift
cache=${VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/barline-vm}
dir=$(IFS=+; echo "$*")
[ ${#dir} -lt 200 ] || dir=$(sha1sum <<<"$dir" | cut -c 1-40) # file names have 255 bytes
dir=$cache/$suite-$dir

unavailable() { echo "vm: $suite: $*" >&2; exit 69; }

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
[ -e "$dir" ] && { echo "$dir"; exit 0; }
. "$here/apt.sh"
private_apt "$suite"
new=$(mktemp -d "$cache/new.XXXXXX")
trap 'rm -rf "$new"' EXIT
(cd "$new" && apt-get "${opts[@]}" download "$@" >&2) ||
	unavailable "the package mirror does not hand out $* (apt's words are above)"
mkdir "$new/out"
for deb in "$new"/*.deb; do dpkg-deb -x "$deb" "$new/out"; done
mv "$new/out" "$dir"
echo "$dir"
