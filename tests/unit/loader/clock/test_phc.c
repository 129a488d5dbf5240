// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The reading of a PTP hardware clock (loader/clock/phc.c), with a driver that has some of the
 * kernel's three ways to read both clocks. The NIC's clock is 37 s ahead.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/ptp_clock.h>

#include "base/ethtool.h"
#include "loader/clock/phc.h"

#define AHEAD 37

static unsigned long has[BL_PHC_WAYS]; /* the requests that the driver knows */
static int refusal, phc_index, stamps_rc, calls;
/* widths of the readings of one request, ns; the system clock is read first at START */
static const uint32_t widths[3] = { 900, 301, 2000 };
static const struct ptp_clock_time start = { .sec = 1700000000, .nsec = 999999000 };

int __wrap_ioctl(int fd, unsigned long request, void *arg);
int __wrap_et_stamps(const char *ifname, struct ethtool_ts_info *t);

/* @t and @ns later. */
static struct ptp_clock_time later(struct ptp_clock_time t, uint64_t ns)
{
	uint64_t nsec = t.nsec + ns;

	t.sec += (int64_t)(nsec / 1000000000);
	t.nsec = (uint32_t)(nsec % 1000000000);
	return t;
}

static struct ptp_clock_time by_phc(struct ptp_clock_time t)
{
	t.sec += AHEAD;
	return t;
}

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	struct ptp_sys_offset_precise *precise = arg;
	struct ptp_sys_offset_extended *extended = arg;
	struct ptp_sys_offset *plain = arg;
	struct ptp_clock_time t = start;
	unsigned int k;

	assert_int_equal(fd, 5);
	calls++;
	for (k = 0; k < BL_PHC_WAYS && has[k] != request; k++)
		;
	if (k == BL_PHC_WAYS) {
		errno = refusal;
		return -1;
	}
	if (request == PTP_SYS_OFFSET_PRECISE) {
		precise->sys_realtime = start;
		precise->device = by_phc(start);
		return 0;
	}
	for (k = 0; k < 3; k++) {
		if (request == PTP_SYS_OFFSET_EXTENDED) {
			assert_int_equal(extended->n_samples, 3);
			extended->ts[k][0] = t;
			extended->ts[k][1] = by_phc(later(t, widths[k] / 2));
			extended->ts[k][2] = later(t, widths[k]);
		} else {
			assert_int_equal(plain->n_samples, 3);
			plain->ts[2 * k] = t;
			plain->ts[2 * k + 1] = by_phc(later(t, widths[k] / 2));
			plain->ts[2 * k + 2] = later(t, widths[k]);
		}
		t = later(t, widths[k]);
	}
	return 0;
}

int __wrap_et_stamps(const char *ifname, struct ethtool_ts_info *t)
{
	assert_string_equal(ifname, "eth0");
	t->phc_index = phc_index;
	return stamps_rc;
}

static void bl_phc_read__ways(void **state)
{
	static const struct {
		unsigned long has[BL_PHC_WAYS];
		int refusal, calls, rc;
		uint64_t half;
	} t[] = {
		{ { PTP_SYS_OFFSET_PRECISE, PTP_SYS_OFFSET_EXTENDED }, EOPNOTSUPP, 1, 0, 0 },
		{ { PTP_SYS_OFFSET_EXTENDED, PTP_SYS_OFFSET }, EOPNOTSUPP, 2, 0, 151 },
		{ { PTP_SYS_OFFSET_EXTENDED }, ENOTTY, 2, 0, 151 },
		{ { PTP_SYS_OFFSET }, EOPNOTSUPP, 3, 0, 151 },
		{ { 0 }, EOPNOTSUPP, 3, -EOPNOTSUPP, 0 },
		/* The clock is gone: another way would not help. */
		{ { PTP_SYS_OFFSET }, ENODEV, 1, -ENODEV, 0 },
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		struct bl_phc p = { .fd = 5 };
		struct bl_phc_reading r;

		memcpy(has, t[k].has, sizeof(has));
		refusal = t[k].refusal;
		calls = 0;
		assert_int_equal(bl_phc_read(&p, &r), t[k].rc);
		assert_int_equal(calls, t[k].calls);
		if (t[k].rc)
			continue;
		assert_int_equal(r.half_ns, t[k].half);
		/* The middle of an odd width is half a nanosecond off. */
		assert_in_range(r.ahead_ns, AHEAD * 1000000000LL - 1, AHEAD * 1000000000LL);
		/* The way that was found is taken again. */
		assert_int_equal(bl_phc_read(&p, &r), 0);
		assert_int_equal(calls, t[k].calls + 1);
	}
}

static void bl_phc_path__of_an_interface(void **state)
{
	char path[32] = "";

	(void)state;
	phc_index = 12;
	assert_int_equal(bl_phc_path(path, sizeof(path), "eth0"), 0);
	assert_string_equal(path, "/dev/ptp12");
	phc_index = -1;
	assert_int_equal(bl_phc_path(path, sizeof(path), "eth0"), -ENODEV);
	stamps_rc = -EOPNOTSUPP;
	assert_int_equal(bl_phc_path(path, sizeof(path), "eth0"), -EOPNOTSUPP);
}

static void bl_phc_open__and_close(void **state)
{
	struct bl_phc p;

	(void)state;
	assert_int_equal(bl_phc_open(&p, "/dev/no/clock"), -ENOENT);
	assert_int_equal(p.fd, -1);
	bl_phc_close(&p);
	assert_int_equal(bl_phc_open(&p, "/dev/null"), 0);
	assert_true(p.fd >= 0);
	bl_phc_close(&p);
	assert_int_equal(p.fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_phc_read__ways),
		cmocka_unit_test(bl_phc_path__of_an_interface),
		cmocka_unit_test(bl_phc_open__and_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
