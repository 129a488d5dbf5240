// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See progs.h.
 *
 * The programs are pinned as DIR/progs/ID/PROGRAM, ID being the checksum in hexadecimal. Programs
 * hold their maps, so that the id of a map in a checksum cannot have become that of another map as
 * long as the pin is there. A folder in which one is missing, since a daemon was killed while it
 * pinned them, is not used.
 *
 * The checksum is no protection: whoever can pin programs there can attach them himself.
 */
#include "loader/load/progs.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "core/siphash_core.h"
#include "loader/load/maps.h"
#include "loader/load/pin.h"
#include "maps/meta_abi.h"

uint32_t bl_prog_id(int fd)
{
	struct bpf_prog_info info = {};
	uint32_t len = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &len) ? 0 : info.id;
}

int bl_prog_enter(int map, uint32_t key, uint32_t what, int prog)
{
	struct bpf_devmap_val has, v = { .ifindex = what, .bpf_prog.fd = prog };

	/* One layout serves both kinds of maps. */
	_Static_assert(sizeof(v) == sizeof(struct bpf_cpumap_val) &&
			       offsetof(struct bpf_devmap_val, bpf_prog) ==
				       offsetof(struct bpf_cpumap_val, bpf_prog),
		       "struct bpf_cpumap_val");
	if (!bpf_map_lookup_elem(map, &key, &has) && has.ifindex == what && has.bpf_prog.id &&
	    has.bpf_prog.id == bl_prog_id(prog))
		return 0;
	return bpf_map_update_elem(map, &key, &v, BPF_ANY) ? -errno : 0;
}

/* ---- the checksum ---- */

static void add(uint64_t *sum, const void *data, size_t size)
{
	*sum = bl_siphash(*sum, size, data, (uint32_t)size, BL_SIP_NONE);
}

static void add_number(uint64_t *sum, uint64_t v)
{
	add(sum, &v, sizeof(v));
}

static void add_program(uint64_t *sum, const struct bpf_program *p)
{
	add(sum, bpf_program__name(p), strlen(bpf_program__name(p)));
	add_number(sum, bpf_program__autoload(p));
	add_number(sum, bpf_program__flags(p));
	add_number(sum, (uint64_t)bpf_program__type(p));
	add_number(sum, (uint64_t)bpf_program__expected_attach_type(p));
}

/* Everything but the maps; constants and variables, which are maps of libbpf's, as they begin. */
static uint64_t sum_of_object(const struct bpf_object_skeleton *skel)
{
	uint64_t sum = BL_ABI_VERSION;
	struct bpf_program *prog;
	struct bpf_map *m;

	add(&sum, skel->data, skel->data_sz);
	bpf_object__for_each_program(prog, *skel->obj)
	{
		add_program(&sum, prog);
	}
	bpf_object__for_each_map(m, *skel->obj)
	{
		size_t size = 0;
		const void *value = bpf_map__is_internal(m) ? bpf_map__initial_value(m, &size)
							    : NULL;

		if (value)
			add(&sum, value, size);
	}
	return sum;
}

/* Adds the maps. Returns false if one is still to be made. */
static bool add_maps(uint64_t *sum, const struct bpf_object_skeleton *skel)
{
	struct bpf_map *m;

	bpf_object__for_each_map(m, *skel->obj)
	{
		struct bpf_map_info info = {};
		uint32_t len = sizeof(info);

		if (bpf_map__is_internal(m))
			continue;
		if (bpf_map__fd(m) < 0 || bpf_obj_get_info_by_fd(bpf_map__fd(m), &info, &len))
			return false;
		add(sum, bpf_map__name(m), strlen(bpf_map__name(m)));
		add_number(sum, info.id);
	}
	return true;
}

/* ---- keeping ---- */

/* The folder of such programs. Returns false if they cannot have been loaded with these maps. */
static bool folder_of(char *buf, size_t size, const struct bl_progs *p, const char *dir)
{
	uint64_t sum = p->sum;

	if (!add_maps(&sum, p->skel))
		return false;
	snprintf(buf, size, "%s/progs/%016" PRIx64, dir, sum);
	return true;
}

/* Enters all programs that are to be loaded, without descriptors. Returns 0 or -E2BIG. */
static int list_programs(struct bl_progs *p)
{
	struct bpf_program *prog;

	p->n = 0;
	bpf_object__for_each_program(prog, *p->skel->obj)
	{
		if (!bpf_program__autoload(prog))
			continue;
		if (p->n == BL_PROGS_MAX)
			return -E2BIG;
		p->of[p->n].prog = prog;
		p->of[p->n++].fd = -1;
	}
	return 0;
}

static void close_kept(struct bl_progs *p)
{
	unsigned int k;

	for (k = 0; k < p->n; k++)
		if (p->of[k].fd >= 0)
			close(p->of[k].fd);
}

/* Whether @fd is a program like @prog. Whoever changes pins by hand may have mixed them up. */
static bool is_program(int fd, const struct bpf_program *prog)
{
	struct bpf_prog_info info = {};
	uint32_t len = sizeof(info);

	return !bpf_obj_get_info_by_fd(fd, &info, &len) &&
	       info.type == (uint32_t)bpf_program__type(prog) &&
	       !strncmp(info.name, bpf_program__name(prog), sizeof(info.name) - 1);
}

/* Opens the pins of all programs, or none. */
static bool open_kept(struct bl_progs *p, const char *dir)
{
	char path[BL_PATH_MAX], file[BL_PATH_MAX + 64];
	unsigned int k;

	if (!folder_of(path, sizeof(path), p, dir))
		return false;
	for (k = 0; k < p->n; k++) {
		snprintf(file, sizeof(file), "%s/%s", path, bpf_program__name(p->of[k].prog));
		p->of[k].fd = bpf_obj_get(file);
		if (p->of[k].fd < 0 || !is_program(p->of[k].fd, p->of[k].prog)) {
			close_kept(p);
			return false;
		}
	}
	return p->n;
}

int bl_progs_load(struct bl_progs *p, struct bpf_object_skeleton *skel, const char *dir,
		  const char *what, struct bl_err *err)
{
	unsigned int k;
	int rc;

	memset(p, 0, sizeof(*p));
	p->skel = skel;
	rc = list_programs(p);
	if (rc)
		return bl_fail(err, -rc, "the %s object has more than %u programs", what,
			       BL_PROGS_MAX);
	p->sum = sum_of_object(skel);
	p->kept = open_kept(p, dir);
	if (p->kept)
		return 0;
	rc = bpf_object__load_skeleton(skel);
	if (rc)
		return bl_load_failed(-rc, what, err);
	for (k = 0; k < p->n; k++)
		p->of[k].fd = bpf_program__fd(p->of[k].prog);
	return 0;
}

int bl_progs_fd(const struct bl_progs *p, const struct bpf_program *prog)
{
	unsigned int k;

	for (k = 0; k < p->n; k++)
		if (p->of[k].prog == prog)
			return p->of[k].fd;
	return -1;
}

int bl_progs_find(const struct bl_progs *p, const char *name)
{
	return bl_progs_fd(p, bpf_object__find_program_by_name(*p->skel->obj, name));
}

void bl_progs_end(struct bl_progs *p)
{
	if (p->kept)
		close_kept(p);
	memset(p, 0, sizeof(*p));
}

/* ---- pins ---- */

/* Removes the folders of all programs but @keep. Returns their number or -errno. */
static int remove_folders(const char *dir, const char *keep)
{
	char path[BL_PATH_MAX], folder[BL_PATH_MAX + 256];
	struct dirent *e;
	int n = 0, rc = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/progs", dir);
	d = opendir(path);
	if (!d)
		return -errno;
	while (!rc && (e = readdir(d))) {
		snprintf(folder, sizeof(folder), "%s/%s", path, e->d_name);
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || !strcmp(folder, keep))
			continue;
		rc = bl_pins_remove(folder);
		n++;
	}
	closedir(d);
	return rc ? rc : n;
}

static int pin_all(const struct bl_progs *p, const char *dir, const char *folder,
		   struct bl_err *err)
{
	char path[BL_PATH_MAX + 64];
	unsigned int k;
	int rc;

	snprintf(path, sizeof(path), "%s/progs", dir);
	rc = bl_pins_folder(path, err);
	if (!rc)
		rc = bl_pins_folder(folder, err);
	for (k = 0; k < p->n && !rc; k++) {
		snprintf(path, sizeof(path), "%s/%s", folder, bpf_program__name(p->of[k].prog));
		rc = bl_pin_over(p->of[k].fd, path, err);
	}
	return rc;
}

void bl_progs_pin(const struct bl_progs *p, const char *dir, const char *name)
{
	char folder[BL_PATH_MAX];
	struct bl_err err;
	int rc = 0;

	/* Maps that the load has made are known only now. */
	if (!folder_of(folder, sizeof(folder), p, dir))
		rc = bl_fail(&err, ENOENT, "the ids of their maps are not known");
	if (!rc && !p->kept)
		rc = pin_all(p, dir, folder, &err);
	if (!rc) {
		rc = remove_folders(dir, folder);
		if (rc < 0)
			bl_fail(&err, -rc, "cannot remove those of an earlier daemon: %s",
				strerror(-rc));
	}
	if (rc < 0)
		bl_log(BL_LOG_WARN,
		       "%s: cannot keep the programs for the next daemon, which will load its "
		       "own: %s",
		       name, err.text);
	else if (p->kept)
		bl_log(BL_LOG_INFO, "%s: goes on with the programs that ran", name);
	else if (rc)
		bl_log(BL_LOG_INFO, "%s: has replaced the programs that ran", name);
}
