/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What SIOCOUTQ says of a socket is the test's to say: it defines outq_of(). Every other request
 * goes to the kernel.
 */
#ifndef BARLINE_TESTS_SIOCOUTQ_H
#define BARLINE_TESTS_SIOCOUTQ_H

#include <linux/sockios.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int outq_of(int fd); /* bytes */
static int outq_asked;

int ioctl(int fd, unsigned long what, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, what);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (what != SIOCOUTQ)
		return (int)syscall(SYS_ioctl, fd, what, arg);
	outq_asked++;
	*(int *)arg = outq_of(fd);
	return 0;
}

#endif
