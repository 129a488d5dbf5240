/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers and rates on command lines: a table with one row per option says where the value goes and
 * what is allowed, and one function reads it and makes the error message.
 *
 * Example:
 *
 *	static const struct bl_number numbers[] = {
 *		BL_NUMBER(KEY_HOSTS, "hosts", NULL, 1, 64, struct spec, hosts),
 *		BL_NUMBER(KEY_WAIT, "wait", "s", 0.1, 60, struct spec, wait_s),   (a double)
 *		BL_NUMBER_SCALED(KEY_LATE, "late-ms", "ms", 1, 9, struct spec, late_ns, 1000000),
 *		{ 0 }
 *	};
 *
 *	static error_t parse_spec(int key, char *arg, struct argp_state *state)
 *	{
 *		struct spec *s = state->input;
 *		error_t err = bl_number_option(numbers, key, arg, s, state);
 *
 *		if (err != ARGP_ERR_UNKNOWN)
 *			return err;
 *		switch (key) { ...
 *
 * "--hosts 65" fails with: --hosts: "65" is not a number from 1 to 64. "--wait 0.1s" fails with:
 * --wait: "0.1s" is not a number from 0.1 to 60 s.
 */
#ifndef BARLINE_BASE_NUMBER_H
#define BARLINE_BASE_NUMBER_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** enum bl_number_type - The type of the field that a number is stored in. */
enum bl_number_type {
	BL_NUMBER_U16 = 1,
	BL_NUMBER_U32,
	BL_NUMBER_U64,
	BL_NUMBER_S32,
	BL_NUMBER_S64,
	BL_NUMBER_REAL, /* double; the only type that accepts fractions */
	BL_NUMBER_RATE  /* uint64_t, bits per second; accepts the units of base/rate.h */
};

/** struct bl_number - How one option is read. A table of them ends with a row without a name. */
struct bl_number {
	int key;          /* key of the option in its argp */
	const char *name; /* name of the option, without "--" */
	const char *unit; /* unit of the number, for the message; NULL: none */
	enum bl_number_type type;
	size_t offset;           /* of the field in the structure */
	long double least, most; /* both are allowed; of integers, most INT64_MAX: no limit */
	int64_t scale;           /* the number is multiplied by it before it is stored; 0: 1 */
	bool power_of_two;       /* no other numbers are allowed */
};

/* clang-format off */
#define BL_NUMBER_TYPE(field)                      \
	_Generic((field),                          \
		uint16_t: BL_NUMBER_U16,           \
		uint32_t: BL_NUMBER_U32,           \
		unsigned long: BL_NUMBER_U64,      \
		unsigned long long: BL_NUMBER_U64, \
		int: BL_NUMBER_S32,                \
		long: BL_NUMBER_S64,               \
		long long: BL_NUMBER_S64,          \
		double: BL_NUMBER_REAL)
/* clang-format on */

/* A row whose type is that of @field_ in @struct_. */
#define BL_NUMBER_SCALED(key_, name_, unit_, least_, most_, struct_, field_, scale_)     \
	{                                                                                \
		.key = (key_), .name = (name_), .unit = (unit_),                         \
		.type = BL_NUMBER_TYPE(((struct_ *)0)->field_),                          \
		.offset = offsetof(struct_, field_), .least = (least_), .most = (most_), \
		.scale = (scale_)                                                        \
	}
#define BL_NUMBER(key_, name_, unit_, least_, most_, struct_, field_) \
	BL_NUMBER_SCALED(key_, name_, unit_, least_, most_, struct_, field_, 1)
#define BL_NUMBER_POWER_OF_TWO(key_, name_, unit_, least_, most_, struct_, field_)       \
	{                                                                                \
		.key = (key_), .name = (name_), .unit = (unit_),                         \
		.type = BL_NUMBER_TYPE(((struct_ *)0)->field_),                          \
		.offset = offsetof(struct_, field_), .least = (least_), .most = (most_), \
		.power_of_two = true                                                     \
	}
/* A rate within the limits of base/rate.h; @field_ is a uint64_t. */
#define BL_NUMBER_RATE_OF(key_, name_, struct_, field_)                 \
	{                                                               \
		.key = (key_), .name = (name_), .type = BL_NUMBER_RATE, \
		.offset = offsetof(struct_, field_)                     \
	}

/**
 * bl_read_integer - Reads an integer from all of @s: decimal, octal with a leading 0, or
 * hexadecimal with 0x. Returns false if @s is something else or not within @least and @most.
 */
bool bl_read_integer(const char *s, long long least, long long most, long long *v);
/** bl_read_real - Same for a number that may have a fraction and an exponent. */
bool bl_read_real(const char *s, double least, double most, double *v);

/**
 * bl_number_read - Reads @arg as row @n demands and stores it in the structure at @base.
 * Returns 0, or -EINVAL with a message in @why; then the structure is unchanged.
 */
int bl_number_read(const struct bl_number *n, const char *arg, void *base, char *why, size_t size);

/**
 * bl_number_option - Reads the number of option @key, for the parser of an argp. An error ends the
 * process with argp_error().
 * @table: rows, up to one without a name
 * @base: structure whose fields the rows name
 * Returns 0, or ARGP_ERR_UNKNOWN if the table has no row for @key.
 */
error_t bl_number_option(const struct bl_number *table, int key, const char *arg, void *base,
			 struct argp_state *state);

#endif
