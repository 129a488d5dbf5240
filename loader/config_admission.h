/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The key "admission" of a node's configuration, and the keys of its ports that need it. */
#ifndef BARLINE_LOADER_CONFIG_ADMISSION_H
#define BARLINE_LOADER_CONFIG_ADMISSION_H

#include "base/yaml.h"
#include "loader/node_cfg.h"

/** bl_config_admission - reads "admission", if the file has it. The ports have been read before. */
void bl_config_admission(struct bl_yaml *y, struct bl_node_cfg *cfg);

#endif
