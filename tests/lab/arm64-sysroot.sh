#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# arm64-sysroot.sh DIR - the arm64 libraries that a static mmrace needs, from
# Debian's packages, unpacked below DIR by an apt state of its own: the
# system's dpkg gets no foreign architecture.  Does nothing when they are there.
set -eu
d=$1
[ -e "$d/root/usr/include/urcu.h" ] && exit 0
mkdir -p "$d/state/lists/partial" "$d/cache/archives/partial" "$d/root"
: >"$d/state/status"
d=$(cd "$d" && pwd)
set -- -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
	-o Dir::State="$d/state" -o Dir::State::status="$d/state/status" \
	-o Dir::Cache="$d/cache" -o APT::Sandbox::User=root
apt-get "$@" update
cd "$d"
apt-get "$@" download liburcu-dev libunwind-dev libjansson-dev liblzma-dev \
	zlib1g-dev
for deb in ./*.deb; do
	dpkg -x "$deb" root
done
rm -f ./*.deb
