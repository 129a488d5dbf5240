// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See sysfs.h. */
#include "loader/load/sysfs.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/privileges.h"

/*
 * A sysfs mount shows the network namespace of the process that mounted it. So a new instance is
 * made here, which is attached nowhere in the file system.
 */
static int kept = -1; /* bl_sysfs_keep(); written before the process has threads */

int bl_sysfs_open(void)
{
	int fs, mnt = -1;

	if (kept >= 0)
		return fcntl(kept, F_DUPFD_CLOEXEC, 3);
	fs = bl_caps_effective() & BL_CAP(CAP_SYS_ADMIN) ? fsopen("sysfs", FSOPEN_CLOEXEC) : -1;
	if (fs >= 0) {
		if (!fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
			mnt = fsmount(fs, FSMOUNT_CLOEXEC, 0);
		close(fs);
	}
	return mnt >= 0 ? mnt : open("/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

void bl_sysfs_keep(void)
{
	kept = bl_sysfs_open();
}
