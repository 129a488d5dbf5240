// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/load/objects.h"

#include <errno.h>
#include <stdlib.h>

#include "host.skel.h"
#include "host_plain.skel.h"
#include "switch.skel.h"
#include "switch_plain.skel.h"

/* As ROLE__open() of bpftool's skeleton, but for the choice of the object. */
#define OBJECT_OF(role)                                                                     \
	struct role *role##_object(bool plain)                                              \
	{                                                                                   \
		struct role *o = calloc(1, sizeof(*o));                                     \
		int rc = o ? role##__create_skeleton(o) : -ENOMEM;                          \
                                                                                            \
		if (!rc && plain)                                                           \
			o->skeleton->data = role##_plain__elf_bytes(&o->skeleton->data_sz); \
		if (!rc)                                                                    \
			rc = bpf_object__open_skeleton(o->skeleton, NULL);                  \
		if (!rc)                                                                    \
			return o;                                                           \
		role##__destroy(o);                                                         \
		errno = -rc;                                                                \
		return NULL;                                                                \
	}

OBJECT_OF(bl_host)
OBJECT_OF(bl_switch)
