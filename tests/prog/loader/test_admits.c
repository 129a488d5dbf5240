// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl_admits (bpf/bpf_util.h): of a node that is started without admission, the verifier follows
 * less, because it knows that the branches of admission are not taken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <bpf/bpf.h>

#include "host.skel.h"
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

static __u32 load_switch(bool admits)
{
	struct bl_switch *sk = bl_switch__open();
	__u32 n;

	assert_non_null(sk);
	assert_true(sk->rodata->bl_admits); /* with admission, unless the loader says otherwise */
	sk->rodata->bl_admits = admits;
	assert_int_equal(bl_switch__load(sk), 0);
	n = verified_insns(sk->obj);
	bl_switch__destroy(sk);
	return n;
}

static __u32 load_host(bool admits)
{
	struct bl_host *sk = bl_host__open();
	__u32 n;

	assert_non_null(sk);
	assert_true(sk->rodata->bl_admits);
	sk->rodata->bl_admits = admits;
	assert_int_equal(bl_host__load(sk), 0);
	n = verified_insns(sk->obj);
	bl_host__destroy(sk);
	return n;
}

static void switch__without_admission_less_is_verified(void **state)
{
	__u32 with = load_switch(true), without = load_switch(false);

	print_message("  %u instructions verified, %u without admission\n", with, without);
	assert_true(without < with);
}

static void host__without_admission_less_is_verified(void **state)
{
	__u32 with = load_host(true), without = load_host(false);

	print_message("  %u instructions verified, %u without admission\n", with, without);
	assert_true(without < with);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(switch__without_admission_less_is_verified),
		cmocka_unit_test(host__without_admission_less_is_verified),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
