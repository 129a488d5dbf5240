/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A captured frame as a line, as a JSON object, and as the comment of a packet in a pcapng file. */
#ifndef BARLINE_CLI_CAPTURE_TEXT_H
#define BARLINE_CLI_CAPTURE_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/capture/attach.h"
#include "core/capture_core.h"

/** dir_name - "in" or "out". */
const char *dir_name(unsigned int dir);

/** opcode_name - name of an opcode; "other" for 0, "unknown" if no opcode has this number. */
const char *opcode_name(unsigned int opcode);

/** opcode_number - the opcode of this name, 0 for "other"; -1: there is none. */
int opcode_number(const char *name);

/** reason_number - the reason of this name; -1: there is none. */
int reason_number(const char *name);

/** frame_find - finds the headers among the bytes behind the event. */
void frame_find(const struct bl_capture_event *e, struct bl_capture_head *h);

/** frame_comment - writes where the frame was, why it ended so, and its barriers. Returns @buf. */
char *frame_comment(const struct capture *c, const struct bl_capture_event *e, char *buf,
		    size_t size);

/** frame_line - one line for people, without its end. Returns @buf. */
char *frame_line(const struct capture *c, const struct bl_capture_event *e, char *buf, size_t size);

/** frame_json - the same as an object. */
json_t *frame_json(const struct capture *c, const struct bl_capture_event *e);

#endif
