// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The library from other languages (bindings/): their structs have the layout that the compiler
 * gives those of barline.h, and programs in them talk in a rack.
 */
#include "tests/net/apps/program.h"
#include "tests/net/loader/restart.h"

#define PYTHON "/usr/bin/python3"
#define SCRIPT "tests/net/apps/bindings.py"

/* Sets what Python needs to find the binding and the library. */
static void set_python(void)
{
	char path[512];

	CHECK(barline_path(path, sizeof(path) - 32), "where am I?");
	strcpy(strrchr(path, '/'), "/libbarline.so");
	setenv("BARLINE_LIBRARY", path, 1);
	setenv("PYTHONPATH", "bindings/python", 1);
	setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
}

struct member {
	const char *type, *name;
	size_t offset, size;
};

/* clang-format off */
#define S(t)	{ #t, "sizeof", 0, sizeof(struct t) }
#define M(t, m) { #t, #m, offsetof(struct t, m), sizeof(((struct t *)0)->m) }
/* clang-format on */

static const struct member members[] = {
	S(bl_addr),
	M(bl_addr, ip),
	M(bl_addr, port),
	S(bl_options),
	M(bl_options, port),
	M(bl_options, ring_bytes),
	M(bl_options, send_buffer),
	M(bl_options, family),
	M(bl_options, socket_path),
	S(bl_bus_time),
	M(bl_bus_time, size),
	M(bl_bus_time, bus_ns),
	M(bl_bus_time, bound_ns),
	M(bl_bus_time, mono_ns),
	M(bl_bus_time, void_after_ns),
	M(bl_bus_time, tai_offset_s),
	M(bl_bus_time, state),
	S(bl_msg),
	M(bl_msg, dst),
	M(bl_msg, data),
	M(bl_msg, len),
	M(bl_msg, cookie),
	S(bl_flow_hint),
	M(bl_flow_hint, bytes),
	M(bl_flow_hint, deadline_us),
	M(bl_flow_hint, coflow),
	M(bl_flow_hint, flags),
	M(bl_flow_hint, reserved),
	S(bl_pending),
	M(bl_pending, dst),
	M(bl_pending, frames),
	M(bl_pending, messages),
	M(bl_pending, cookie),
	S(bl_delivery),
	M(bl_delivery, ts),
	M(bl_delivery, src),
	M(bl_delivery, data),
	M(bl_delivery, len),
	S(bl_stale),
	M(bl_stale, size),
	M(bl_stale, undecided),
	M(bl_stale, ts),
	S(bl_stats),
	M(bl_stats, size),
	M(bl_stats, peers),
	M(bl_stats, scatterings),
	M(bl_stats, messages_sent),
	M(bl_stats, frames_sent),
	M(bl_stats, messages_delivered),
	M(bl_stats, frames_received),
	M(bl_stats, late_dropped),
	M(bl_stats, duplicates),
	M(bl_stats, lost_frames),
	M(bl_stats, malformed),
	M(bl_stats, send_failed),
	M(bl_stats, again),
	M(bl_stats, credits_sent),
	M(bl_stats, credits_received),
	M(bl_stats, probes_sent),
	M(bl_stats, naks_sent),
	M(bl_stats, barrier),
	M(bl_stats, queued_frames),
	M(bl_stats, sleeps),
	M(bl_stats, wakeups),
	M(bl_stats, reliable_delivered),
	M(bl_stats, retransmits),
	M(bl_stats, commit),
	M(bl_stats, prepared_frames),
	M(bl_stats, discarded),
	M(bl_stats, recalls_sent),
	M(bl_stats, recalled),
	M(bl_stats, forwarded),
	M(bl_stats, refused),
	M(bl_stats, reconnects),
	M(bl_stats, strangers),
	M(bl_stats, senders),
	M(bl_stats, memory),
	M(bl_stats, memory_max),
	M(bl_stats, no_room),
	M(bl_stats, unanswered),
	M(bl_stats, ring_full),
	M(bl_stats, sent_ts),
};

/* A struct that grows has another size, so a member that is missing here is noticed, too. */
static void check_layout(const char *command)
{
	char type[32], name[32];
	size_t offset, size, i, n = 0;
	FILE *f;

	f = popen(command, "r");
	assert_non_null(f);
	while (fscanf(f, "%31s %31s %zu %zu", type, name, &offset, &size) == 4) {
		for (i = 0; i < sizeof(members) / sizeof(members[0]); i++)
			if (!strcmp(members[i].type, type) && !strcmp(members[i].name, name))
				break;
		if (i == sizeof(members) / sizeof(members[0]))
			fail_msg("there is no %s.%s", type, name);
		if (members[i].offset != offset || members[i].size != size)
			fail_msg("%s.%s is at %zu with %zu bytes, and at %zu with %zu in `%s`",
				 type, name, members[i].offset, members[i].size, offset, size,
				 command);
		n++;
	}
	assert_int_equal(pclose(f), 0);
	assert_int_equal(n, sizeof(members) / sizeof(members[0]));
}

static void python__layout(void **state)
{
	(void)state;
	set_python();
	check_layout(PYTHON " " SCRIPT " --layout");
}

static void rust__layout(void **state)
{
	char path[512];

	(void)state;
	assert_true(barline_path(path, sizeof(path) - 32));
	strcpy(strrchr(path, '/'), "/bindings/rust --layout");
	check_layout(path);
}

/* Python and Rust declare each function that the library exports. */
static void bindings__complete(void **state)
{
	static char python[1 << 17], rust[1 << 17];
	char line[256], name[64], what[96];
	FILE *f = fopen("bindings/python/barline.py", "r");
	unsigned int n = 0;

	(void)state;
	assert_true(f && fread(python, 1, sizeof(python) - 1, f));
	fclose(f);
	f = fopen("bindings/rust/src/sys.rs", "r");
	assert_true(f && fread(rust, 1, sizeof(rust) - 1, f));
	fclose(f);
	f = fopen("lib/libbarline.map", "r");
	assert_non_null(f);
	for (; fgets(line, sizeof(line), f);) {
		if (sscanf(line, " %63[a-z_0-9];", name) != 1 || strncmp(name, "bl_", 3))
			continue;
		n++;
		snprintf(what, sizeof(what), "\"%s\": (", name);
		if (!strstr(python, what))
			fail_msg("barline.py lacks %s", name);
		snprintf(what, sizeof(what), "pub fn %s(", name);
		if (!strstr(rust, what))
			fail_msg("sys.rs lacks %s", name);
	}
	fclose(f);
	assert_true(n >= 30);
}

static struct program p[2];

static void run_two(const char *const first[], unsigned int n)
{
	char addr[2][64], absent[64], line[2][256];
	const char *argv[8] = { 0 };
	unsigned int i;
	int status;

	open_rack(2);
	for (i = 0; i < 2; i++)
		program_addr(i, 61700, addr[i]);
	program_addr(1, 61900, absent);
	memcpy(argv, first, n * sizeof(argv[0]));
	for (i = 0; i < 2; i++) {
		argv[n] = addr[i];
		argv[n + 1] = addr[!i];
		argv[n + 2] = absent;
		program_start(&p[i], i, argv);
	}
	for (i = 0; i < 2; i++) {
		UNTIL("waits for the programs", program_ended(&p[i], &status));
		CHECK(program_said(&p[i], "done") && !status, "status %#x: %s", status, p[i].text);
		CHECK(program_line(&p[i], "order ", line[i]), "%s", p[i].text);
	}
	CHECK(!strcmp(line[0], line[1]), "they have delivered in different orders");
	daemons_end();
}

RACK_TEST(python__two_hosts)
{
	set_python();
	run_two((const char *[]){ PYTHON, SCRIPT }, 2);
}

RACK_TEST(cpp__two_hosts)
{
	run_two((const char *[]){ "bindings/cpp" }, 1);
}

RACK_TEST(rust__two_hosts)
{
	run_two((const char *[]){ "bindings/rust" }, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bindings__complete), cmocka_unit_test(python__layout),
		cmocka_unit_test(rust__layout),       cmocka_unit_test(python__two_hosts),
		cmocka_unit_test(cpp__two_hosts),     cmocka_unit_test(rust__two_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
