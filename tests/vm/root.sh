# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# root.sh - what the root file systems of guests have in common, for vm.sh and for the racks of
# tests/machines. The caller sets $root, an empty folder.

# need_packages PROGRAM:PACKAGE...: prints the Debian packages of programs that this machine lacks.
need_packages() {
	local need missing=
	for need; do
		PATH=$PATH:/sbin:/usr/sbin command -v "${need%%:*}" >/dev/null ||
			missing+=" ${need##*:}"
	done
	printf '%s' "$missing"
}

# with_libraries FILE...: copies the libraries that the files load, as ldd lists them, to the same
# absolute paths in the guest. Libxdp reads its dispatcher from a file beside it.
with_libraries() {
	local lib
	for lib in $(ldd "$@" 2>/dev/null | grep -oE '/[^ ):]+' | sort -u); do
		[ -e "$root$lib" ] && continue
		case $lib in *.so|*.so.*) ;; *) continue ;; esac
		mkdir -p "$root${lib%/*}"
		cp -L "$lib" "$root$lib"
		case $lib in
		*/libxdp.so.*)
			mkdir -p "$root/usr/lib/$(uname -m)-linux-gnu/bpf"
			cp -L "/usr/lib/$(uname -m)-linux-gnu/bpf/xdp-dispatcher.o" \
				"$root/usr/lib/$(uname -m)-linux-gnu/bpf/"
			;;
		esac
	done
}

# the libraries that programs of this tree load when they use them (base/library/library.h)
with_loaded_libraries() {
	local name path list
	list=$(dirname "${BASH_SOURCE[0]}")/../../base/library/library.h
	for name in $(sed -n 's/^\tX([A-Z]*, "\([^"]*\)".*/\1/p' "$list"); do
		path=$(PATH=$PATH:/sbin ldconfig -p | sed -n "s|.*$name .*=> ||p" | head -n 1)
		[ -n "$path" ] && [ ! -e "$root$path" ] || continue
		mkdir -p "$root${path%/*}"
		cp -L "$path" "$root$path"
		with_libraries "$path"
	done
}

# with_folder FOLDER: with_libraries for all programs in it, and what they may load later.
with_folder() {
	local file
	with_loaded_libraries
	while IFS= read -r -d '' file; do
		with_libraries "$file"
	done < <(find "$1/" -type f -perm -100 -print0)
}

# base_root TOOL...: busybox, dash, and the programs of this machine that are named, as far as it
# has them.
base_root() {
	local tool file
	mkdir -p "$root"/{bin,sbin,usr/bin,usr/sbin,etc}
	cp "$(command -v busybox)" "$root/bin/busybox"
	cp "$(command -v dash)" "$root/bin/dash"
	with_libraries "$(command -v dash)"
	for tool; do
		file=$(PATH=$PATH:/sbin:/usr/sbin command -v "$tool") || continue
		# busybox --install does not replace existing files.
		cp -L "$file" "$root/sbin/$tool"
		with_libraries "$file"
	done
	echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
	echo '127.0.0.1 localhost' >"$root/etc/hosts"
}

# pack_root: the archive of $root on the standard output, for the kernel.
pack_root() { (cd "$root" && find . | cpio --quiet -o -H newc -R 0:0); }
