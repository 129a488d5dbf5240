/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The changes of a reload as JSON, for status sockets. */
#ifndef BARLINE_BASE_CHANGES_JSON_H
#define BARLINE_BASE_CHANGES_JSON_H

#include <jansson.h>

#include "base/changes.h"

/**
 * bl_changes_json - Returns a new array of objects: what ("changed" or "refused"), setting, was,
 * now, change, why. @refused: the reload was refused, so only those are listed that it could not
 * apply.
 */
json_t *bl_changes_json(const struct bl_changes *c, bool refused);

#endif
