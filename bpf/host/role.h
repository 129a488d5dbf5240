/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Selects the host role in bpf/role.h. Every header of bpf/host/ includes this one first. */
#ifndef BARLINE_HOST_ROLE_H
#define BARLINE_HOST_ROLE_H

#ifdef BARLINE_ROLE_H
#error "include bpf/host/role.h before any other header of bpf/"
#endif
#define BL_ROLE_HOST
#include "bpf/role.h"

#endif
