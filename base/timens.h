/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Time namespaces, time_namespaces(7). CLOCK_MONOTONIC of a process in one of them may be shifted
 * against that of the kernel, which the programs in the kernel read. Times in maps and pages that
 * several processes share are the kernel's, so nobody may compare them with a shifted clock.
 *
 * Example: `unshare -T --monotonic=5` starts a process in whose /proc/self/timens_offsets is
 * "monotonic 5 0". Bus time that it computes would be 5 s ahead.
 *
 * A process without /proc is not recognised.
 */
#ifndef BARLINE_BASE_TIMENS_H
#define BARLINE_BASE_TIMENS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Inode number of the kernel's own time namespace (TIME_NS_INIT_INO in linux/nsfs.h). */
#define BL_TIMENS_KERNEL 0xeffffffau

/* What a process in such a namespace is told. */
#define BL_TIMENS_SENTENCE                                                                      \
	"this process is in a time namespace that shifts %s, with which bus time is computed; " \
	"start it without one (unshare -T, timeOffsets of a container)"

/**
 * bl_timens_is_shifted - whether /proc/self/timens_offsets, whose text is @text, shifts @clock,
 * "monotonic" or "boottime". A clock that the text does not name counts as shifted.
 */
static inline bool bl_timens_is_shifted(const char *text, const char *clock)
{
	long long s, ns;
	char name[32];
	int used;

	for (; sscanf(text, " %31s %lld %lld%n", name, &s, &ns, &used) == 3; text += used)
		if (!strcmp(name, clock))
			return s || ns;
	return true;
}

/**
 * bl_timens_shifts - whether @clock of this process is shifted against the kernel's. All threads of
 * a process are in the same time namespace.
 *
 * timens_offsets is about the namespace of the children to come. It is that of the process itself
 * unless the process has called unshare(CLONE_NEWTIME). If such a process was not in the kernel's
 * namespace before, its own offsets cannot be read, and it counts as shifted.
 */
static inline bool bl_timens_shifts(const char *clock)
{
	struct stat own, children;
	char text[256] = "";
	ssize_t n;
	int fd;

	if (stat("/proc/self/ns/time", &own) || own.st_ino == BL_TIMENS_KERNEL)
		return false; /* the former: a kernel without time namespaces */
	fd = open("/proc/self/timens_offsets", O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n < 0 || stat("/proc/self/ns/time_for_children", &children) ||
	    children.st_ino != own.st_ino)
		return true;
	return bl_timens_is_shifted(text, clock);
}

#endif
