#!/usr/bin/env bash
# Installs what prefixd is built, run and tested with, from the distribution (Debian 12, Ubuntu 24.04 or newer).
# The one list of packages. Installs only what is missing; run it as root, or as a user with sudo.
# The CUDA Toolkit is not among them: where nvcc is found, the build uses it.
# usage: deploy/install_deps.sh [build|test|lint|image]...     default: build test lint
set -euo pipefail

declare -A groups=(
  [build]="g++ cmake ninja-build ccache
           libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev libspdlog-dev libtbb-dev
           libcli11-dev nlohmann-json3-dev libgoogle-perftools-dev prometheus-cpp-dev"
  # C++, a foreign client in Python, CPUs that are older than this one, and promtool.
  [test]="libgtest-dev libgmock-dev python3 python3-grpcio python3-protobuf python3-numpy qemu-user openssl
          prometheus"
  [lint]="git clang-format python3-venv shellcheck"
  [image]="mmdebstrap podman buildah crun iproute2 git"  # deploy/check_image.sh
)

[[ $# -gt 0 ]] || set -- build test lint
packages=()
for group in "$@"; do
  if [[ ! -v groups[$group] ]]; then
    echo "install_deps: no group '$group'; there are build, test, lint and image" >&2
    exit 2
  fi
  read -r -d '' -a names <<<"${groups[$group]}" || true
  packages+=("${names[@]}")
done

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [[ $status == "install ok installed" ]] || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "install_deps: all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if [[ $EUID -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "install_deps: these packages are missing, and installing them needs root or sudo: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "install_deps: installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
echo "install_deps: done"
