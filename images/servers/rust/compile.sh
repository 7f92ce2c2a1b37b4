#!/bin/sh
# Compiles a workspace into /out, for the architecture that is named as Debian does.
set -eu
architecture=$1
# Cargo trusts modification times: a file older than the cached build would count as built.
find . -name '*.rs' -exec touch {} +
if [ "$architecture" = "$(dpkg --print-architecture)" ]; then
	cargo build --release --locked --target-dir /target
	built=/target/release
else
	case $architecture in
		amd64) cpu=x86_64 ;;
		arm64) cpu=aarch64 ;;
		*) echo "nobody has said how to compile for $architecture: images/servers/rust/compile.sh" >&2; exit 1 ;;
	esac
	export "CARGO_TARGET_$(echo $cpu | tr a-z A-Z)_UNKNOWN_LINUX_GNU_LINKER=$cpu-linux-gnu-gcc"
	cargo build --release --locked --target-dir /target --target $cpu-unknown-linux-gnu
	built=/target/$cpu-unknown-linux-gnu/release
fi
find $built -maxdepth 1 -type f -executable -exec install -D -t /out {} +
