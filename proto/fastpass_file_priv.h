/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files behind fastpass_file.h share: fastpass_file.c reads the YAML file,
 * fastpass_secret.c the secret that it names, fastpass_defaults.c fills in what it leaves out and
 * checks the whole, and fastpass_query.c answers what others ask of it.
 */
#ifndef BARLINE_FASTPASS_FILE_PRIV_H
#define BARLINE_FASTPASS_FILE_PRIV_H

#include "base/yaml.h"
#include "proto/fastpass_file.h"

/* Names of the values of path_field, by enum bl_path_field. */
extern const char *const bl_fp_path_fields[BL_FIELD_COUNT];

/**
 * bl_fp_secret_read - Reads secret, secret_file and insecure. A mistake is refused in @y. @path: of
 * the file, for a secret_file beside it.
 */
void bl_fp_secret_read(struct bl_fp_file *f, struct bl_yaml *y, const char *path);

#endif
