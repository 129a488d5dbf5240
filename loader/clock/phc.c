// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See phc.h. */
#include "loader/clock/phc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/ptp_clock.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/ethtool.h"

#define SAMPLES 3 /* of which the narrowest counts */

int bl_phc_path(char *buf, size_t size, const char *interface)
{
	struct ethtool_ts_info t;
	int rc = et_stamps(interface, &t);

	if (rc)
		return rc;
	if (t.phc_index < 0)
		return -ENODEV;
	snprintf(buf, size, "/dev/ptp%d", t.phc_index);
	return 0;
}

int bl_phc_open(struct bl_phc *p, const char *path)
{
	*p = (struct bl_phc){ .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) };
	return p->fd < 0 ? -errno : 0;
}

static int64_t nanoseconds(const struct ptp_clock_time *t)
{
	return (int64_t)((uint64_t)t->sec * 1000000000ULL + t->nsec);
}

static void take_if_narrower(struct bl_phc_reading *r, const struct ptp_clock_time *before,
			     const struct ptp_clock_time *phc, const struct ptp_clock_time *after)
{
	int64_t a = nanoseconds(before), b = nanoseconds(after);
	uint64_t half = b > a ? ((uint64_t)b - (uint64_t)a + 1) / 2 : 0;

	if (half >= r->half_ns)
		return;
	r->half_ns = half;
	r->ahead_ns = nanoseconds(phc) - (a + (int64_t)half);
}

static int read_precise(int fd, struct bl_phc_reading *r)
{
	struct ptp_sys_offset_precise o = {};

	if (ioctl(fd, PTP_SYS_OFFSET_PRECISE, &o))
		return -errno;
	take_if_narrower(r, &o.sys_realtime, &o.device, &o.sys_realtime);
	return 0;
}

static int read_extended(int fd, struct bl_phc_reading *r)
{
	struct ptp_sys_offset_extended o = { .n_samples = SAMPLES };
	int k;

	if (ioctl(fd, PTP_SYS_OFFSET_EXTENDED, &o))
		return -errno;
	for (k = 0; k < SAMPLES; k++)
		take_if_narrower(r, &o.ts[k][0], &o.ts[k][1], &o.ts[k][2]);
	return 0;
}

static int read_plain(int fd, struct bl_phc_reading *r)
{
	struct ptp_sys_offset o = { .n_samples = SAMPLES };
	int k;

	if (ioctl(fd, PTP_SYS_OFFSET, &o))
		return -errno;
	for (k = 0; k < SAMPLES; k++)
		take_if_narrower(r, &o.ts[2 * k], &o.ts[2 * k + 1], &o.ts[2 * k + 2]);
	return 0;
}

int bl_phc_read(struct bl_phc *p, struct bl_phc_reading *r)
{
	static int (*const read[BL_PHC_WAYS])(int fd, struct bl_phc_reading *r) = {
		[BL_PHC_PRECISE] = read_precise,
		[BL_PHC_EXTENDED] = read_extended,
		[BL_PHC_PLAIN] = read_plain,
	};
	int rc;

	for (;;) {
		*r = (struct bl_phc_reading){ .half_ns = UINT64_MAX };
		rc = read[p->way](p->fd, r);
		/* A driver or kernel that does not have one of the ways does not get it later. */
		if ((rc != -EOPNOTSUPP && rc != -ENOTTY) || p->way == BL_PHC_PLAIN)
			return rc;
		p->way++;
	}
}

void bl_phc_close(struct bl_phc *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}
