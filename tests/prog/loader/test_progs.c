// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * loader/load/progs.c: which programs a daemon goes on with. Two programs of a host stand for all;
 * they are pinned in a bpffs of a private mount namespace.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "loader/load/attach.h"
#include "loader/load/maps.h"
#include "loader/load/pin.h"
#include "loader/load/progs.h"
#include "maps/switch_abi.h"
#include "host.skel.h"

#define DIR_NAME "/sys/fs/bpf/node"

static struct bl_progs progs;
static struct bl_host *skel;

/* Opens the object, as a daemon does that takes over what is pinned. */
static void open_object(const char *const *anew)
{
	struct bpf_program *p;
	struct bl_err err;

	skel = bl_host__open();
	assert_non_null(skel);
	bpf_object__for_each_program(p, skel->obj)
	{
		bpf_program__set_autoload(p, false);
	}
	bpf_program__set_autoload(skel->progs.bl_fence, true);
	bpf_program__set_autoload(skel->progs.bl_host_queue, true);
	bpf_program__set_autoload(skel->progs.bl_host_hint, true);
	if (bl_maps_reuse(skel->obj, DIR_NAME, anew, &err))
		fail_msg("%s", err.text);
}

/* Loads what is open, or keeps what runs. Returns whether it kept it. */
static bool load(void)
{
	struct bl_err err;

	if (bl_progs_load(&progs, skel->skeleton, DIR_NAME, "host", &err))
		fail_msg("%s", err.text);
	assert_true(bl_prog_id(bl_progs_fd(&progs, skel->progs.bl_fence)));
	assert_int_equal(bl_progs_find(&progs, "bl_host_queue"),
			 bl_progs_fd(&progs, skel->progs.bl_host_queue));
	/* these are not loaded */
	assert_int_equal(bl_progs_fd(&progs, skel->progs.bl_host_xdp), -1);
	assert_int_equal(bl_progs_find(&progs, "bl_host_xdp"), -1);
	assert_int_equal(bl_progs_find(&progs, "no_program"), -1);
	return progs.kept;
}

static uint32_t fence_id(void)
{
	return bl_prog_id(bl_progs_fd(&progs, skel->progs.bl_fence));
}

/* The daemon has attached the programs; then it ends. Returns the id of bl_fence. */
static uint32_t end(void)
{
	uint32_t id = fence_id();
	struct bl_err err;

	if (bl_maps_pin(skel->obj, DIR_NAME, &err))
		fail_msg("%s", err.text);
	bl_progs_pin(&progs, DIR_NAME, "h1");
	bl_progs_end(&progs);
	bl_host__destroy(skel);
	return id;
}

/* Counts the folders of programs, and copies the path of one of them. */
static unsigned int folders(char *path, size_t size)
{
	struct dirent *e;
	unsigned int n = 0;
	DIR *d = opendir(DIR_NAME "/progs");

	assert_non_null(d);
	while ((e = readdir(d))) {
		if (*e->d_name == '.')
			continue;
		n++;
		snprintf(path, size, DIR_NAME "/progs/%s", e->d_name);
	}
	closedir(d);
	return n;
}

/* The path of a program's pin. */
static const char *pin_of(const char *program)
{
	static char path[512];
	char folder[400];

	assert_int_equal(folders(folder, sizeof(folder)), 1);
	snprintf(path, sizeof(path), "%s/%s", folder, program);
	assert_int_equal(access(path, F_OK), 0);
	return path;
}

/* The id of the program that is pinned as bl_fence. */
static uint32_t fence_of_pin(void)
{
	int fd = bpf_obj_get(pin_of("bl_fence"));
	uint32_t id = bl_prog_id(fd);

	close(fd);
	return id;
}

/* A first daemon. Returns the id of its bl_fence. */
static uint32_t first(void)
{
	open_object(NULL);
	assert_false(load());
	return end();
}

/* The next daemon, whose object is open, loads its own, and leaves them to the next one. */
static void expect_loaded(uint32_t old)
{
	char path[400];
	uint32_t id;

	assert_false(load());
	id = end();
	assert_int_not_equal(id, old);
	assert_int_equal(folders(path, sizeof(path)), 1);
	open_object(NULL);
}

static int make_node(void **state)
{
	struct bl_err err;

	(void)state;
	return bl_dir_make(DIR_NAME, &err);
}

static int remove_node(void **state)
{
	(void)state;
	return bl_dir_remove(DIR_NAME) || !access(DIR_NAME, F_OK);
}

static void load__same_are_kept(void **state)
{
	uint32_t id = first();
	char path[400];
	unsigned int k;

	(void)state;
	for (k = 0; k < 2; k++) {
		open_object(NULL);
		assert_true(load());
		assert_int_equal(fence_id(), id);
		assert_int_equal(end(), id);
		assert_int_equal(folders(path, sizeof(path)), 1);
	}
}

static void load__other_constant(void **state)
{
	uint32_t id = first();

	(void)state;
	open_object(NULL);
	skel->rodata->bl_auth++;
	expect_loaded(id);
	/* and back */
	assert_false(load());
	end();
}

static void load__other_flags(void **state)
{
	uint32_t id = first();

	(void)state;
	open_object(NULL);
	bpf_program__set_autoload(skel->progs.bl_host_local, true);
	expect_loaded(id);
	/* and back */
	assert_false(load());
	id = end();
	open_object(NULL);
	bpf_program__set_flags(skel->progs.bl_fence, BPF_F_TEST_RND_HI32);
	expect_loaded(id);
	bl_host__destroy(skel);
}

static void load__map_made_anew(void **state)
{
	static const char *const anew[] = { BL_MAP_META, NULL };
	uint32_t id = first();

	(void)state;
	open_object(anew);
	expect_loaded(id);
	/* It is the map of the last programs now. */
	assert_true(load());
	end();
}

/* Somebody has put another map in the place of one; the programs that run do not see that. */
static void load__map_replaced(void **state)
{
	uint32_t id = first();
	struct bl_err err;
	int fd;

	(void)state;
	open_object(NULL);
	fd = bpf_map_create(bpf_map__type(skel->maps.epoch), "epoch", 4,
			    bpf_map__value_size(skel->maps.epoch),
			    bpf_map__max_entries(skel->maps.epoch), NULL);
	assert_true(fd >= 0);
	assert_int_equal(bl_pin_over(fd, DIR_NAME "/maps/epoch", &err), 0);
	close(fd);
	bl_host__destroy(skel);
	open_object(NULL);
	expect_loaded(id);
	bl_host__destroy(skel);
}

/* A daemon was killed while it pinned them. */
static void load__pin_is_missing(void **state)
{
	uint32_t id = first();

	(void)state;
	assert_int_equal(unlink(pin_of("bl_host_queue")), 0);
	open_object(NULL);
	expect_loaded(id);
	assert_true(load());
	end();
}

static void load__pin_of_another_program(void **state)
{
	uint32_t id = first();
	struct bl_err err;
	unsigned int k;
	int fd;

	(void)state;
	for (k = 0; k < 2; k++) { /* of the same type, and of another one */
		fd = bpf_obj_get(pin_of(k ? "bl_fence" : "bl_host_hint"));
		assert_true(fd >= 0);
		assert_int_equal(bl_pin_over(fd, pin_of("bl_host_queue"), &err), 0);
		close(fd);
		open_object(NULL);
		expect_loaded(id);
		id = fence_of_pin();
		bl_host__destroy(skel);
	}
}

static void load__folder_was_removed(void **state)
{
	uint32_t id = first();

	(void)state;
	assert_int_equal(bl_pins_remove(DIR_NAME "/progs"), 0);
	open_object(NULL);
	expect_loaded(id);
	assert_true(load());
	end();
}

static int private_bpffs(void **state)
{
	(void)state;
	return unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	       mount("bpf", "/sys/fs/bpf", "bpf", 0, "mode=0700");
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, make_node, remove_node)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(load__same_are_kept),
		T(load__other_constant),
		T(load__other_flags),
		T(load__map_made_anew),
		T(load__map_replaced),
		T(load__pin_is_missing),
		T(load__pin_of_another_program),
		T(load__folder_was_removed),
	};

	bl_libbpf_listen();
	return cmocka_run_group_tests(tests, private_bpffs, NULL);
}
