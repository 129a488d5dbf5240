// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See note.h, and maps/note_abi.h.
 *
 * A map that is frozen (BPF_MAP_FREEZE) cannot be mapped for writing, nor written by bpf(2), while
 * programs go on writing it; a mapping that was made for reading cannot be made writable by
 * mprotect() (bpf_map_mmap() in kernel/bpf/syscall.c clears VM_MAYWRITE). That is so from Linux 5.5
 * on. A descriptor that is open for reading only is no way out: mmap() of it loses VM_SHARED, and
 * the kernel refuses it for a map.
 */
#include "loader/order/note.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "loader/load/maps.h"

#include "note.skel.h"

int bl_note_open(int clock_fd, int page_fd, int failures_fd, struct bl_err *err)
{
	struct bl_note *skel = bl_note__open();
	int rc, fd;

	if (!skel)
		return bl_fail(err, errno, "cannot open the program bl_note: %s", strerror(errno));
	rc = bpf_map__reuse_fd(skel->maps.clock, clock_fd);
	if (!rc)
		rc = bpf_map__reuse_fd(skel->maps.host_page, page_fd);
	if (!rc)
		rc = bpf_map__reuse_fd(skel->maps.failures, failures_fd);
	if (rc)
		rc = bl_fail(err, -rc, "cannot use the maps of the host again: %s", strerror(-rc));
	else if ((rc = bl_note__load(skel)))
		rc = bl_load_failed(-rc, "note", err);
	fd = rc ? rc : fcntl(bpf_program__fd(skel->progs.bl_note), F_DUPFD_CLOEXEC, 3);
	if (!rc && fd < 0)
		fd = bl_fail(err, errno, "cannot keep the program bl_note: %s", strerror(errno));
	bl_note__destroy(skel);
	return fd;
}

int bl_note_freeze(int fd, const char *name, struct bl_err *err)
{
	uint32_t zero = 0;
	static char value[sizeof(struct bl_failures)]; /* the largest that is frozen */

	if (!bpf_map_freeze(fd))
		return 0;
	/*
	 * It is frozen (EBUSY or EPERM, by version of the kernel), or somebody maps it for writing
	 * (EBUSY). A frozen map refuses an update.
	 */
	if ((errno == EBUSY || errno == EPERM) && !bpf_map_lookup_elem(fd, &zero, value) &&
	    bpf_map_update_elem(fd, &zero, value, BPF_NOEXIST) && errno == EPERM)
		return 0;
	return bl_fail(err, EBUSY, "cannot make the map %s read-only: is it mapped for writing?",
		       name);
}

int bl_note(int fd, struct bl_note_arg *a)
{
	LIBBPF_OPTS(bpf_test_run_opts, o, .ctx_in = a, .ctx_size_in = sizeof(*a));
	int rc;

	a->done = 0;
	rc = bpf_prog_test_run_opts(fd, &o);
	return rc ? rc : a->done ? 0 : -EINVAL;
}
