// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See running.h. */
#include "loader/running.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/config.h"
#include "loader/config_rows.h"
#include "loader/load/pin.h"
#include "loader/node_priv.h"

#define FORMAT     1
#define FIRST_LINE "# barline configuration in force, format "

static void running_path(char *buf, size_t size, enum bl_role role, uint64_t ino)
{
	snprintf(buf, size, "%s/%s-%" PRIu64 "-config.yaml", BL_RUN_DIR, bl_role_name(role), ino);
}

int bl_config_copy(struct bl_node_cfg *to, const struct bl_node_cfg *from, struct bl_err *err)
{
	struct bl_port_cfg *ports = calloc(from->ports_count + 1, sizeof(*ports));
	struct bl_fdb_cfg *fdb = calloc(from->fdb_count + 1, sizeof(*fdb));

	if (!ports || !fdb) {
		free(ports);
		free(fdb);
		return bl_fail(err, ENOMEM, "out of memory");
	}
	*to = *from;
	to->ports = ports;
	to->fdb = fdb;
	if (from->ports_count)
		memcpy(ports, from->ports, from->ports_count * sizeof(*ports));
	if (from->fdb_count)
		memcpy(fdb, from->fdb, from->fdb_count * sizeof(*fdb));
	return 0;
}

/* A lab hands the file of Fastpass over in memory; the word stands for it. */
static const char *const in_memory = "in-memory";

int bl_running_write(const struct bl_node *n, struct bl_err *err)
{
	struct bl_node_cfg c = n->given;
	char path[128], making[132];
	struct bl_config_rows rows;
	FILE *f = NULL;
	int rc, fd;

	if (c.admission.fp && !*c.admission.fp_path)
		snprintf(c.admission.fp_path, sizeof(c.admission.fp_path), "%s", in_memory);
	rc = bl_config_rows(&c, false, &rows, err);
	if (rc)
		return rc;
	running_path(path, sizeof(path), n->cfg.role, n->netns_ino);
	snprintf(making, sizeof(making), "%s~", path);
	fd = open(making, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (f) {
		fprintf(f, FIRST_LINE "%d\n", FORMAT);
		bl_config_print(f, &rows);
	} else if (fd >= 0) {
		close(fd);
	}
	bl_config_rows_free(&rows);
	if (f && !fflush(f) && !fclose(f) && !rename(making, path))
		return 0;
	rc = bl_fail(err, errno, "cannot write %s: %s", path, strerror(errno));
	unlink(making);
	return rc;
}

/* Returns 0, or -errno: there is no such file, or one of another format. */
static int check_format(const char *path, struct bl_err *err)
{
	char line[128] = "";
	int format = 0;
	FILE *f = fopen(path, "re");

	if (!f)
		return errno == ENOENT
			       ? bl_fail(err, ENOENT,
					 "%s is missing: the daemon of that node is of a version "
					 "that does not write it; restart it",
					 path)
			       : bl_fail(err, errno, "cannot read %s: %s", path, strerror(errno));
	if (fgets(line, sizeof(line), f))
		sscanf(line, FIRST_LINE "%d", &format);
	fclose(f);
	return format == FORMAT ? 0
				: bl_fail(err, EPROTO,
					  "%s has format %d, and this build reads format %d; "
					  "restart "
					  "the daemon of that node",
					  path, format, FORMAT);
}

int bl_running_load(enum bl_role role, uint64_t ino, struct bl_node_cfg *c, struct bl_err *err)
{
	char path[128];
	int rc;

	running_path(path, sizeof(path), role, ino);
	rc = check_format(path, err);
	*c = (struct bl_node_cfg){ .role = role };
	return rc ? rc : bl_config_load(c, path, err);
}

void bl_running_forget(enum bl_role role, uint64_t ino)
{
	char path[128];

	running_path(path, sizeof(path), role, ino);
	unlink(path);
}
