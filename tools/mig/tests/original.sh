#!/bin/sh
# Compares this compiler with GNU's, of Debian 12: fetches its packages into the target directory
# (nothing is installed), then runs the tests that need them. Needs a network, once.
set -eu
cd "$(dirname "$0")/../../.."
where=${CARGO_TARGET_DIR:-target}/mig-original
if [ ! -e "$where/usr/lib/mig/x86_64-gnu-migcom" ]; then
    mkdir -p "$where"
    (cd "$where" && apt-get download mig-x86-64-gnu gnumach-dev)
    for package in "$where"/*.deb; do dpkg -x "$package" "$where"; done
fi
MIG_ORIGINAL=$(realpath "$where") exec cargo test -p mig "$@" -- --ignored
