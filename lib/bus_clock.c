// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The clock record of the host for applications: bus time and how wrong it may be
 * (maps/clock_abi.h). An endpoint has the record mapped anyway; others ask the daemon for it.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/timens.h"
#include "maps/host_abi.h"
#include "core/clock_core.h"
#include "bus_clock.h"
#include "daemon.h"
#include "error.h"
#include "internal.h"

struct bl_bus_clock {
	const struct bl_clock *record;
};

/*
 * The monotonic clock is read between two looks at the same seq: the record was the present one at
 * that moment, and so the next reading cannot be before this one, however long this thread stood
 * still in between.
 */
static int read_whole(const struct bl_clock *record, struct bl_clock *c, uint64_t *mono)
{
	int i;

	for (i = 0; i < BL_CLOCK_TRIES; i++) {
		/* pairs with bl_clock_store() */
		__u32 was = BL_READ_ONCE(record->seq);

		BL_BARRIER();
		*c = *record;
		*mono = bl_mono();
		BL_BARRIER();
		if (!(was & 1) && BL_READ_ONCE(record->seq) == was)
			return 0;
	}
	return -EAGAIN;
}

int bl_bus_time_of(const struct bl_clock *record, struct bl_bus_time *t)
{
	struct bl_clock c;
	uint64_t mono;
	int rc;

	if (t->size != sizeof(*t))
		return -EINVAL;
	rc = read_whole(record, &c, &mono);
	if (rc)
		return rc;
	t->mono_ns = mono;
	t->void_after_ns = c.void_after_ns;
	t->tai_offset_s = c.tai_offset_s;
	if (!bl_clock_usable(&c, mono)) {
		t->bus_ns = 0;
		t->bound_ns = UINT64_MAX;
		t->state = BL_BUS_VOID;
		return -ETIME;
	}
	t->bus_ns = bl_clock_at(&c, mono);
	t->bound_ns = bl_clock_bound(&c, mono);
	t->state = c.source == BL_CLOCK_TRUST     ? BL_BUS_TRUSTED
		   : c.state == BL_CLOCK_HOLDOVER ? BL_BUS_HOLDOVER
						  : BL_BUS_SYNCED;
	return 0;
}

int bl_get_bus_time(const struct bl_endpoint *ep, struct bl_bus_time *t)
{
	return bl_bus_time_of(ep->clock, t);
}

static size_t record_size(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (sizeof(struct bl_clock) + page - 1) / page * page;
}

int bl_bus_clock_open(struct bl_bus_clock **out, const char *socket_path)
{
	struct bl_bus_clock *c;
	char path[108];
	int fd, rc;
	void *p;

	*out = NULL;
	bl_clear_init_error();
	if (bl_timens_shifts("monotonic"))
		return bl_set_error(NULL, ENOTSUP, BL_TIMENS_SENTENCE, "CLOCK_MONOTONIC");
	rc = socket_path ? 0 : bl_daemon_path(path, sizeof(path));
	if (rc)
		return rc;
	fd = bl_daemon_map(socket_path ? socket_path : path, BL_SOCK_CLOCK);
	if (fd < 0)
		return fd;
	p = mmap(NULL, record_size(), PROT_READ, MAP_SHARED, fd, 0);
	rc = p == MAP_FAILED ? -errno : 0;
	close(fd);
	if (rc)
		return rc;
	c = malloc(sizeof(*c));
	if (!c) {
		munmap(p, record_size());
		return -ENOMEM;
	}
	c->record = p;
	*out = c;
	return 0;
}

int bl_bus_clock_read(const struct bl_bus_clock *c, struct bl_bus_time *t)
{
	return bl_bus_time_of(c->record, t);
}

void bl_bus_clock_close(struct bl_bus_clock *c)
{
	if (!c)
		return;
	munmap((void *)c->record, record_size());
	free(c);
}
