# SPDX-License-Identifier: Apache-2.0
# Sourced by ./up and ./check: what each needs from Debian, and how to get what is missing. dpkg is
# asked first, so that a machine that has everything is never slowed down and never needs a network.
# shellcheck shell=bash

build_packages=(gcc libc6-dev cmake ninja-build pkg-config libuv1-dev libnghttp2-dev libhttp-parser-dev
    libprotobuf-c-dev protobuf-c-compiler libleveldb-dev libssl-dev libjansson-dev libcyaml-dev libyaml-dev
    zlib1g-dev uthash-dev libxxhash-dev)
check_packages=(libcmocka-dev spin clang clang-format clang-tidy libclang-rt-14-dev binutils python3
    python3-boto3 python3-grpcio protobuf-compiler python3-protobuf awscli curl ca-certificates git procps)
bench_packages=(wrk nghttp2-client nginx-light python3 util-linux)

# install_missing LOG PACKAGE...
install_missing() {
    local log=$1 package missing=()
    shift
    for package; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
            missing+=("$package")
    done
    ((${#missing[@]})) || return 0
    # Some packages are there under another name, pkg-config as pkgconf for one: apt decides.
    local as_root=()
    if ((EUID != 0)); then
        command -v sudo >/dev/null || {
            echo "Missing packages: ${missing[*]}. Install them as root, or install sudo." >&2
            return 1
        }
        as_root=(sudo)
    fi
    echo "Installing from Debian: ${missing[*]}" >&2
    {
        "${as_root[@]}" apt-get update &&
            "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
                apt-get install -y --no-install-recommends "${missing[@]}"
    } >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        echo "Installing failed; the whole log is in $log." >&2
        return 1
    }
}
