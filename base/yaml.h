/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Strict YAML files: yaml.c. */
#ifndef BARLINE_YAML_H
#define BARLINE_YAML_H

#include <cyaml/cyaml.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

/**
 * bl_yaml_load - @out: what libcyaml made of it by @top; free with bl_yaml_free(). Returns 0 or
 * -errno; then @err begins with file and line.
 */
int bl_yaml_load(const char *path, const cyaml_schema_value_t *top, void **out, struct bl_err *err);
void bl_yaml_free(const cyaml_schema_value_t *top, void *data);
/**
 * bl_yaml_line - line of the @nth "key:" in the file, from 1; 0: not found. Comments do not count.
 */
int bl_yaml_line(const char *path, const char *key, unsigned int nth);
/** bl_yaml_bad - the value of the @nth "key:" is wrong. Returns -EINVAL. */
int bl_yaml_bad(const char *path, const char *key, unsigned int nth, struct bl_err *err,
		const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/** bl_mac_parse - six pairs of hex digits, with colons. */
bool bl_mac_parse(const char *s, uint8_t mac[6]);

#endif
