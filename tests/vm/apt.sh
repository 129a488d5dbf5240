# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# apt.sh - packages of a Debian suite, without touching this machine's own apt state and without
# installing anything, for fetch.sh and unpack.sh. The caller sets $cache, a folder, and defines
# unavailable(), which reports that the archive does not answer and does not return.

# private_apt SUITE: sets the array opts for apt-get and apt-cache, and reads the suite's lists.
private_apt() {
	local suite=$1 here uri= signed_by= apt u release codename origin component key
	# Debian's own archive in this machine's apt configuration, or the security archive for a
	# security suite. RELEASE is always known, ORIGIN only once apt has lists.
	here=$(. /etc/os-release; echo "${VERSION_CODENAME-}")
	case $suite in *-security) here+=-security ;; esac
	while IFS='|' read -r u release codename origin component key; do
		[ "$component" = main ] || continue
		[ "$release" = "$here" ] || [ "$codename" = "$here" ] || continue
		[ -z "$uri" ] || [ "$origin" = Debian ] || continue
		uri=$u signed_by=$key
		[ "$origin" != Debian ] || break
	done < <(apt-get indextargets --format \
		'$(REPO_URI)|$(RELEASE)|$(CODENAME)|$(ORIGIN)|$(COMPONENT)|$(SIGNED_BY)' \
		'Created-By: Packages')
	[ -n "$uri" ] || unavailable "apt's configuration names no Debian archive with $here main"
	[[ $signed_by = /* ]] || signed_by=/usr/share/keyrings/debian-archive-keyring.gpg

	apt=$cache/apt-$suite
	mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/empty"
	: >"$apt/status"
	echo "deb [arch=amd64 signed-by=$signed_by] $uri $suite main" >"$apt/sources.list"
	opts=(-qq
		-o "Dir::Etc::SourceList=$apt/sources.list"
		-o "Dir::Etc::SourceParts=$apt/empty"
		-o "Dir::Etc::PreferencesParts=$apt/empty"
		-o "Dir::State=$apt/state"
		-o "Dir::State::status=$apt/status"
		-o "Dir::Cache=$apt/cache"
		-o APT::Architecture=amd64
		-o APT::Architectures=amd64
		-o APT::Sandbox::User=
		-o Acquire::Retries=2
		-o Acquire::http::Timeout=20
		-o Acquire::Languages=none
		-o APT::Update::Error-Mode=any)
	apt-get "${opts[@]}" update >&2 ||
		unavailable "the package mirror does not answer for $suite (apt's words are above)"
}
