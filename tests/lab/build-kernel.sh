#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# build-kernel.sh - build the lab's guest kernel from Debian's kernel source.
#
#   build-kernel.sh [-v 6.1|6.12] [-c EXTRA.config] [-j JOBS] [-s] [-p]
#     -v  which linux-source package (default 6.1)
#     -c  another config fragment, merged last (may be given once)
#     -s  skip apt-get (the packages are there already)
#     -p  plain: without the planted bugs
# Result: build/lab/bzImage-VERSION[-plain], build/lab/config-VERSION[-plain]. Needs root
# for apt-get (not with -s), about 2.5 GB below build/lab/work and one long coffee.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(cd "$here/../.." && pwd)/build/lab
ver=6.1 extra= jobs=2 apt=1 plain=
while getopts v:c:j:sp o; do
	case $o in
	v) ver=$OPTARG;; c) extra=$(cd "$(dirname "$OPTARG")" && pwd)/$(basename "$OPTARG");;
	j) jobs=$OPTARG;; s) apt=0;; p) plain=-plain;;
	*) sed -n '3,13s/^# \{0,1\}//p' "$0" >&2; exit 2;;
	esac
done
t0=$(date +%s)
say() { echo "build-kernel: [$(( $(date +%s) - t0 )) s] $*"; }
work=$out/work/$ver$plain
mkdir -p "$work" "$out"

if [ $apt = 1 ]; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get -qq -o DPkg::Lock::Timeout=600 update
	apt-get -qq -o DPkg::Lock::Timeout=600 install -y --no-install-recommends \
		build-essential bc bison flex libelf-dev libssl-dev cpio xz-utils \
		kmod python3 qemu-system-x86 busybox-static >"$work/apt.log" 2>&1
	say "packages installed"
fi

src=$work/linux-source-$ver
if [ ! -e "$src/Makefile" ]; then
	(cd "$work" && apt-get -qq download "linux-source-$ver" 2>"$work/download.log")
	deb=$(ls -t "$work/linux-source-${ver}_"*.deb | head -1)
	rm -rf "$work/deb"
	dpkg -x "$deb" "$work/deb"
	tar -C "$work" -xf "$work/deb/usr/src/linux-source-$ver.tar.xz"
	rm -rf "$work/deb"
	say "source unpacked: $(basename "$deb")"
fi

if [ -z "$plain" ]; then
	python3 "$here/plant/apply.py" "$src"
fi

build=$work/build
mkdir -p "$build"
m="make -s -C $src O=$build ARCH=x86_64"
$m tinyconfig >"$work/config.log" 2>&1
# shellcheck disable=SC2086
(cd "$build" && "$src/scripts/kconfig/merge_config.sh" -m -O . .config \
	"$here/lab.config" $extra) >>"$work/config.log" 2>&1
$m olddefconfig >>"$work/config.log" 2>&1
# what was asked for and did not come out; a name unknown to this version is
# listed too, and is no error
for f in "$here/lab.config" $extra; do
	while read -r l; do
		case $l in
		CONFIG_*) grep -qxF "$l" "$build/.config" || say "config: not set: $l";;
		'# CONFIG_'*' is not set') n=${l#\# }; n=${n% is not set}
			grep -q "^$n=" "$build/.config" && say "config: still set: $n" || :;;
		esac
	done <"$f"
done
for need in SMP NUMA MIGRATION HUGETLBFS TRANSPARENT_HUGEPAGE USERFAULTFD STACKTRACE; do
	grep -q "^CONFIG_$need=y" "$build/.config" || { say "config: $need missing"; exit 1; }
done
say "configured: $(grep -c '=y$' "$build/.config") options on"

# HOSTCFLAGS etc. stay the kernel's own; -w keeps the log short
if ! nice -n 5 make -s -C "$src" O="$build" ARCH=x86_64 -j"$jobs" bzImage >"$work/build.log" 2>&1; then
	tail -20 "$work/build.log"; say "make failed, see $work/build.log"; exit 1
fi
times >"$work/times"
cp "$build/arch/x86/boot/bzImage" "$out/bzImage-$ver$plain"
cp "$build/.config" "$out/config-$ver$plain"
say "built build/lab/bzImage-$ver$plain: $(stat -c %s "$out/bzImage-$ver$plain") bytes, cpu time $(tail -1 "$work/times")"
