/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is known of network drivers, as far as it matters to the order: nic_drivers.c. */
#ifndef BARLINE_NIC_DRIVERS_H
#define BARLINE_NIC_DRIVERS_H

/* Where a driver puts frames that an XDP program redirects to it or returns. */
enum bl_xdp_rings {
	BL_RINGS_UNKNOWN,
	BL_RINGS_SHARED, /* into the transmit queues of the kernel */
	BL_RINGS_APART,  /* into rings of their own, which the kernel's queues do not wait for */
	BL_RINGS_MIXED,  /* into rings of their own where there are enough of them */
	BL_RINGS_NONE,   /* it has no native XDP */
};

/** struct bl_nic_driver - what is known of a driver. */
struct bl_nic_driver {
	const char *name;
	enum bl_xdp_rings rings;
	const char *native; /* the first Linux with native XDP; "": none has it */
	const char *note;   /* what to mind, a sentence; "": nothing */
};

/** bl_nic_driver - the entry of the driver @name; NULL: it is not in the table. */
const struct bl_nic_driver *bl_nic_driver(const char *name);
/** bl_nic_drivers - the table; @n receives its length. */
const struct bl_nic_driver *bl_nic_drivers(unsigned int *n);
/** bl_xdp_rings_name - "shared", "apart", "mixed", "none" or "unknown". */
const char *bl_xdp_rings_name(enum bl_xdp_rings r);

#endif
