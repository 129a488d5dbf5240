// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The secret that arbiters and hosts share, in a file of its own or not; see fastpass_file.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/fastpass_file_priv.h"

/* Parses 32 hex digits. Returns false if @text is something else, or all zeros. */
static bool parse_secret(const char *text, uint64_t secret[2])
{
	unsigned long long hi, lo;

	if (strlen(text) != 32 || strspn(text, "0123456789abcdefABCDEF") != 32 ||
	    sscanf(text, "%16llx%16llx", &hi, &lo) != 2 || (!hi && !lo))
		return false;
	secret[0] = hi;
	secret[1] = lo;
	return true;
}

/*
 * Reads the secret from a file of its own. A relative path is relative to the directory of the file
 * that names it. A file that every user can read is refused, since it is no secret.
 */
static int load_secret(const char *path, const char *beside, uint64_t secret[2], struct bl_err *err)
{
	const char *slash = *path == '/' ? NULL : strrchr(beside, '/');
	char whole[512], text[64] = "";
	struct stat st;
	ssize_t n;
	int fd, rc;

	snprintf(whole, sizeof(whole), "%.*s%s", slash ? (int)(slash - beside + 1) : 0, beside,
		 path);
	fd = open(whole, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		rc = bl_fail(err, errno, "cannot read the secret in %s: %s", whole,
			     strerror(errno));
		if (fd >= 0)
			close(fd);
		return rc;
	}
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	if (st.st_mode & S_IRWXO)
		return bl_fail(err, EACCES,
			       "every user of this machine can read the secret in %s; `chmod o= "
			       "%s`",
			       whole, whole);
	if (!parse_secret(text, secret))
		return bl_fail(err, EINVAL,
			       "%s has no secret, which is 32 hex digits and not all zeros; "
			       "`barline arbiter secret FILE` makes one",
			       whole);
	return 0;
}

void bl_fp_secret_read(struct bl_fp_file *f, struct bl_yaml *y, const char *path)
{
	const char *text = bl_yaml_text(y, y->root, "secret", 32),
		   *file = bl_yaml_text(y, y->root, "secret_file", 255);
	struct bl_err why;

	f->insecure = bl_yaml_truth(y, y->root, "insecure");
	if (!!text + !!file + f->insecure > 1)
		bl_yaml_refuse(y, y->root, f->insecure ? "insecure" : "secret_file",
			       "give one of secret_file, secret and insecure");
	else if (text && !parse_secret(text, f->secret))
		bl_yaml_refuse(y, y->root, "secret",
			       "a secret is 32 hex digits that are not all zeros, for example from "
			       "`openssl rand -hex 16`");
	else if (file && load_secret(file, path, f->secret, &why))
		bl_yaml_refuse(y, y->root, "secret_file", "%s", why.text);
}

int bl_fp_secret_make(const char *path, struct bl_err *err)
{
	uint64_t secret[2] = { 0, 0 };
	char text[40];
	int fd, rc = 0, len;

	while (!secret[0] && !secret[1])
		if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
			return bl_fail(err, EIO, "the kernel has no random numbers");
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return bl_fail(err, errno, "cannot make %s: %s", path, strerror(errno));
	len = snprintf(text, sizeof(text), "%016llx%016llx\n", (unsigned long long)secret[0],
		       (unsigned long long)secret[1]);
	if (write(fd, text, (size_t)len) != len || fsync(fd))
		rc = bl_fail(err, errno, "cannot write %s: %s", path, strerror(errno));
	close(fd);
	if (rc)
		unlink(path);
	return rc;
}
