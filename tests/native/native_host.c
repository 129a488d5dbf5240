// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The programs of a host, compiled natively: see native.h. */
#include "bpf/host/host.bpf.c"
