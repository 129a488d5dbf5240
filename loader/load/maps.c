// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See maps.h. */
#include "loader/load/maps.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/log.h"
#include "base/privileges.h"
#include "loader/load/pin.h"
#include "maps/switch_abi.h"

static char said[2048]; /* the end of what libbpf printed; it has the verifier's reason */

static int keep_libbpf_message(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char line[1024];
	size_t have = strlen(said), len;
	int n;

	if (level != LIBBPF_WARN)
		return 0;
	n = vsnprintf(line, sizeof(line), fmt, ap);
	len = n < 0 ? 0 : n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1;
	if (have + len >= sizeof(said)) {
		size_t drop = have + len - sizeof(said) + 1;

		memmove(said, said + drop, have - drop + 1);
		have -= drop;
	}
	memcpy(said + have, line, len + 1);
	return 0;
}

void bl_libbpf_listen(void)
{
	said[0] = 0;
	libbpf_set_print(keep_libbpf_message);
}

const char *bl_libbpf_said(void)
{
	return said;
}

int bl_load_failed(int errnum, const char *what, struct bl_err *err)
{
	struct bl_err missing;
	char all[128];

	if (*said)
		bl_log(BL_LOG_ERR, "%s", said);
	/* Without CAP_PERFMON the verifier refuses the programs as if they were wrong. */
	if (bl_caps_need("this process", BL_CAPS_LOAD, &missing))
		return bl_fail(err, EPERM, "the kernel refused the %s programs: %s", what,
			       missing.text);
	if (errnum == EPERM)
		return bl_fail(err, EPERM,
			       "the kernel refused the %s programs: %s, though the process has %s; "
			       "do kernel lockdown, a container or a filter of system calls forbid "
			       "bpf(2)?",
			       what, strerror(errnum),
			       bl_caps_text(BL_CAPS_LOAD, all, sizeof(all)));
	return bl_fail(err, errnum,
		       "the kernel refused the %s programs: %s; its message is in the log; barline "
		       "needs Linux 6.1 or newer",
		       what, strerror(errnum));
}

/*
 * Returns 0, or -EPROTO if a pinned map has another shape than the object's. A greater number of
 * entries is accepted for the one map that the loader sizes.
 */
static int check_pinned_shape(const struct bpf_map *m, const struct bpf_map_info *i,
			      const char *path, struct bl_err *err)
{
	bool sized = !strcmp(bpf_map__name(m), BL_MAP_SW_IFIDX);
	/* The kernel sets this flag on device maps by itself. */
	uint32_t flags = i->type == BPF_MAP_TYPE_DEVMAP
				 ? i->map_flags & ~(uint32_t)BPF_F_RDONLY_PROG
				 : i->map_flags;

	if (i->type == bpf_map__type(m) && i->key_size == bpf_map__key_size(m) &&
	    i->value_size == bpf_map__value_size(m) && flags == bpf_map__map_flags(m) &&
	    (sized ? i->max_entries >= bpf_map__max_entries(m)
		   : i->max_entries == bpf_map__max_entries(m)))
		return 0;
	return bl_fail(err, EPROTO,
		       "the pinned map %s has another layout than this build's (type %u, value %u "
		       "bytes, %u entries); detach the node and "
		       "start again",
		       path, i->type, i->value_size, i->max_entries);
}

int bl_maps_reuse(struct bpf_object *obj, const char *dir, const char *const *anew,
		  struct bl_err *err)
{
	struct bpf_map *m;

	bpf_object__for_each_map(m, obj)
	{
		const char *const *a = anew;
		struct bpf_map_info info = {};
		uint32_t len = sizeof(info);
		char path[BL_PATH_MAX];
		int fd, rc;

		if (bpf_map__is_internal(m))
			continue;
		while (a && *a && strcmp(*a, bpf_map__name(m)))
			a++;
		if (a && *a)
			continue;
		snprintf(path, sizeof(path), "%s/maps/%s", dir, bpf_map__name(m));
		fd = bpf_obj_get(path);
		if (fd < 0) {
			if (errno == ENOENT)
				continue;
			return bl_fail(err, errno, "cannot open the pinned map %s: %s", path,
				       strerror(errno));
		}
		rc = bpf_obj_get_info_by_fd(fd, &info, &len)
			     ? bl_fail(err, errno, "cannot look into %s: %s", path, strerror(errno))
			     : check_pinned_shape(m, &info, path, err);
		if (!rc && bpf_map__reuse_fd(m, fd))
			rc = bl_fail(err, errno, "cannot use the pinned map %s again: %s", path,
				     strerror(errno));
		close(fd); /* libbpf keeps a duplicate */
		if (rc)
			return rc;
	}
	return 0;
}

static int pin_map(struct bpf_map *m, const char *dir, struct bl_err *err)
{
	struct bpf_map_info mine = {}, theirs = {};
	uint32_t len = sizeof(mine), len2 = sizeof(theirs);
	char path[BL_PATH_MAX];
	int fd, same = 0;

	snprintf(path, sizeof(path), "%s/maps/%s", dir, bpf_map__name(m));
	fd = bpf_obj_get(path);
	if (fd >= 0) {
		same = !bpf_obj_get_info_by_fd(fd, &theirs, &len2) &&
		       !bpf_obj_get_info_by_fd(bpf_map__fd(m), &mine, &len) && mine.id == theirs.id;
		close(fd);
	}
	return same ? 0 : bl_pin_over(bpf_map__fd(m), path, err);
}

int bl_maps_pin(struct bpf_object *obj, const char *dir, struct bl_err *err)
{
	struct bpf_map *m, *meta = NULL;
	int rc;

	bpf_object__for_each_map(m, obj)
	{
		if (bpf_map__is_internal(m))
			continue;
		if (!strcmp(bpf_map__name(m), BL_MAP_META)) {
			meta = m;
			continue;
		}
		rc = pin_map(m, dir, err);
		if (rc)
			return rc;
	}
	return meta ? pin_map(meta, dir, err) : 0;
}

int bl_map_find(struct bpf_object *obj, const char *name, uint32_t value_size, struct bpf_map **map,
		struct bl_err *err)
{
	struct bpf_map *m = bpf_object__find_map_by_name(obj, name);

	*map = m;
	if (!m)
		return bl_fail(err, ENOENT,
			       "the programs of this build have no map %s; rebuild everything",
			       name);
	if (value_size && bpf_map__value_size(m) != value_size)
		return bl_fail(err, EPROTO,
			       "the map %s has values of %u bytes, not %u; rebuild everything",
			       name, bpf_map__value_size(m), value_size);
	return 0;
}

int bl_map_set(int fd, uint32_t key, const void *value, const char *name, struct bl_err *err)
{
	if (bpf_map_update_elem(fd, &key, value, BPF_ANY))
		return bl_fail(err, errno, "cannot write entry %u of the map %s: %s", key, name,
			       strerror(errno));
	return 0;
}
