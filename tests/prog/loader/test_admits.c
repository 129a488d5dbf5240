// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl_admits (bpf/bpf_util.h) and bl_auth (bpf/auth.h): of a node that is started without admission,
 * or without authentication of links, the verifier follows less, because it knows that their
 * branches are not taken. And in no program does it follow too many paths, since a daemon that
 * starts waits for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/utsname.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "loader/load/objects.h"
#include "host.skel.h"
#include "maps/auth_abi.h"
#include "switch.skel.h"

/* Returns how many instructions the verifier followed in the programs of @obj, which is loaded. */
static __u32 verified_insns(struct bpf_object *obj)
{
	struct bpf_program *p;
	__u32 sum = 0;

	bpf_object__for_each_program(p, obj)
	{
		struct bpf_prog_info info = {};
		__u32 len = sizeof(info);

		assert_int_equal(bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &len), 0);
		assert_true(info.verified_insns > 0);
		sum += info.verified_insns;
	}
	return sum;
}

/*
 * The verifier may follow the instructions of a loaded program this often on average. The most is
 * 10.5, of bl_switch_xdp with admission (2026-11, Linux 6.18).
 */
#define STATES_MAX 12

/* Kernels before 6.8 verify every global function, whether it is called or not. */
static bool verifies_what_is_not_called(void)
{
	struct utsname u;
	int major, minor;

	assert_int_equal(uname(&u), 0);
	assert_int_equal(sscanf(u.release, "%d.%d", &major, &minor), 2);
	return major < 6 || (major == 6 && minor < 8);
}

/* Fails if the verifier distinguished too many states in a program of @obj, which is loaded. */
static void expect_few_states(struct bpf_object *obj)
{
	struct bpf_program *p;

	if (verifies_what_is_not_called())
		return; /* functions that were verified and are not in the program any more */
	bpf_object__for_each_program(p, obj)
	{
		struct bpf_prog_info info = {};
		__u32 len = sizeof(info), insns;

		assert_int_equal(bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &len), 0);
		insns = info.xlated_prog_len / sizeof(struct bpf_insn);
		if (info.verified_insns > STATES_MAX * insns)
			fail_msg("of %s, which has %u instructions, the verifier followed %u; see "
				 "docs/design-notes.md, \"What a load costs\"",
				 bpf_program__name(p), insns, info.verified_insns);
	}
}

static __u32 load_switch(bool admits, bool auth)
{
	struct bl_switch *sk = bl_switch__open();
	__u32 n;

	assert_non_null(sk);
	assert_true(sk->rodata->bl_admits); /* with admission, unless the loader says otherwise */
	assert_false(sk->rodata->bl_auth);  /* without, unless the loader says otherwise */
	sk->rodata->bl_admits = admits;
	sk->rodata->bl_auth = auth ? BL_AUTH_LINKS : BL_AUTH_OFF;
	assert_int_equal(bl_switch__load(sk), 0);
	expect_few_states(sk->obj);
	n = verified_insns(sk->obj);
	bl_switch__destroy(sk);
	return n;
}

static __u32 load_host(bool admits, bool auth)
{
	struct bl_host *sk = bl_host__open();
	__u32 n;

	assert_non_null(sk);
	assert_true(sk->rodata->bl_admits);
	assert_false(sk->rodata->bl_auth); /* without, unless the loader says otherwise */
	sk->rodata->bl_admits = admits;
	sk->rodata->bl_auth = auth ? BL_AUTH_LINKS : BL_AUTH_OFF;
	assert_int_equal(bl_host__load(sk), 0);
	expect_few_states(sk->obj);
	n = verified_insns(sk->obj);
	bl_host__destroy(sk);
	return n;
}

/*
 * Fails unless less is verified without something than with it. On kernels that verify all global
 * functions, all of it is verified in any case, and how many paths they prune differs by some
 * percent (2.4 % on Linux 6.1): there, it must not be much more.
 */
static void expect_less(__u32 without, __u32 with)
{
	assert_true(verifies_what_is_not_called() ? without < with + with / 20 : without < with);
}

static void switch__without_admission_less_is_verified(void **state)
{
	__u32 with = load_switch(true, false), without = load_switch(false, false);

	print_message("  %u instructions verified, %u without admission\n", with, without);
	expect_less(without, with);
}

static void host__without_admission_less_is_verified(void **state)
{
	__u32 with = load_host(true, false), without = load_host(false, false);

	print_message("  %u instructions verified, %u without admission\n", with, without);
	expect_less(without, with);
}

static void switch__authentication_is_verified_only_if_on(void **state)
{
	__u32 with = load_switch(true, true), without = load_switch(true, false);

	print_message("  %u instructions verified, %u without authentication\n", with, without);
	expect_less(without, with);
}

static void host__authentication_is_verified_only_if_on(void **state)
{
	__u32 with = load_host(true, true), without = load_host(true, false);

	print_message("  %u instructions verified, %u without authentication\n", with, without);
	expect_less(without, with);
}

/* ---- the objects of plain nodes (loader/load/objects.h) ---- */

static void expect_same_maps(const struct bpf_object *a, const struct bpf_object *b)
{
	const struct bpf_map *m, *other = NULL;

	bpf_object__for_each_map(m, a)
	{
		other = bpf_object__next_map(b, other);
		assert_non_null(other);
		assert_string_equal(bpf_map__name(m), bpf_map__name(other));
		assert_int_equal(bpf_map__type(m), bpf_map__type(other));
		assert_int_equal(bpf_map__key_size(m), bpf_map__key_size(other));
		assert_int_equal(bpf_map__value_size(m), bpf_map__value_size(other));
		assert_int_equal(bpf_map__max_entries(m), bpf_map__max_entries(other));
		assert_int_equal(bpf_map__map_flags(m), bpf_map__map_flags(other));
	}
	assert_null(bpf_object__next_map(b, other));
}

/* Fails unless the variables in the read-only data of both have the same places. */
static void expect_same_rodata(const struct bpf_object *a, const struct bpf_object *b)
{
	const struct btf *of[] = { bpf_object__btf(a), bpf_object__btf(b) };
	const struct btf_type *sec[2];
	const struct btf_var_secinfo *v[2];
	unsigned int i, k;

	for (k = 0; k < 2; k++) {
		sec[k] = btf__type_by_id(of[k], btf__find_by_name_kind(of[k], ".rodata",
								       BTF_KIND_DATASEC));
		assert_non_null(sec[k]);
		v[k] = btf_var_secinfos(sec[k]);
	}
	assert_int_equal(btf_vlen(sec[0]), btf_vlen(sec[1]));
	for (i = 0; i < btf_vlen(sec[0]); i++) {
		const char *name[2];

		for (k = 0; k < 2; k++) {
			const struct btf_type *var = btf__type_by_id(of[k], v[k][i].type);

			name[k] = btf__name_by_offset(of[k], var->name_off);
		}
		assert_string_equal(name[0], name[1]);
		assert_int_equal(v[0][i].offset, v[1][i].offset);
		assert_int_equal(v[0][i].size, v[1][i].size);
	}
}

/*
 * Fails unless the plain object @b has the programs of @a. Those named in @shorter must have become
 * shorter by at least a third: the number of instructions that the kernel is given, dead ones, too.
 */
static void expect_shorter(const struct bpf_object *a, const struct bpf_object *b,
			   const char *const *shorter)
{
	struct bpf_program *p, *other = NULL;
	unsigned int found = 0, want = 0;
	const char *const *s;

	bpf_object__for_each_program(p, a)
	{
		other = bpf_object__next_program(b, other);
		assert_non_null(other);
		assert_string_equal(bpf_program__name(p), bpf_program__name(other));
		assert_string_equal(bpf_program__section_name(p), bpf_program__section_name(other));
		for (s = shorter; *s; s++) {
			if (strcmp(*s, bpf_program__name(p)) != 0)
				continue;
			print_message("  %s: %zu instructions, plain %zu\n", *s,
				      bpf_program__insn_cnt(p), bpf_program__insn_cnt(other));
			assert_true(bpf_program__insn_cnt(other) <
				    bpf_program__insn_cnt(p) * 2 / 3);
			found++;
		}
	}
	assert_null(bpf_object__next_program(b, other));
	while (shorter[want])
		want++;
	assert_int_equal(found, want);
}

static void host__plain_is_like_the_other(void **state)
{
	static const char *const shorter[] = { "bl_host_xdp", "bl_host_egress", NULL };
	struct bl_host *all = bl_host_object(false), *plain = bl_host_object(true);

	(void)state;
	assert_non_null(all);
	assert_non_null(plain);
	expect_same_maps(all->obj, plain->obj);
	expect_same_rodata(all->obj, plain->obj);
	/* A program and the functions that it calls are put together when it is loaded. */
	assert_int_equal(bl_host__load(all), 0);
	assert_int_equal(bl_host__load(plain), 0);
	expect_shorter(all->obj, plain->obj, shorter);
	expect_few_states(plain->obj);
	bl_host__destroy(all);
	bl_host__destroy(plain);
}

static void switch__plain_is_like_the_other(void **state)
{
	static const char *const shorter[] = { "bl_switch_xdp", "bl_switch_devmap", NULL };
	struct bl_switch *all = bl_switch_object(false), *plain = bl_switch_object(true);

	(void)state;
	assert_non_null(all);
	assert_non_null(plain);
	expect_same_maps(all->obj, plain->obj);
	expect_same_rodata(all->obj, plain->obj);
	assert_int_equal(bl_switch__load(all), 0);
	assert_int_equal(bl_switch__load(plain), 0);
	expect_shorter(all->obj, plain->obj, shorter);
	expect_few_states(plain->obj);
	bl_switch__destroy(all);
	bl_switch__destroy(plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host__plain_is_like_the_other),
		cmocka_unit_test(switch__plain_is_like_the_other),
		cmocka_unit_test(switch__without_admission_less_is_verified),
		cmocka_unit_test(host__without_admission_less_is_verified),
		cmocka_unit_test(switch__authentication_is_verified_only_if_on),
		cmocka_unit_test(host__authentication_is_verified_only_if_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
