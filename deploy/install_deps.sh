#!/usr/bin/env bash
# Installs what prefixd is built, run and tested with, from the distribution (Debian 12, Ubuntu 24.04 or newer).
# The one list of packages. Installs only what is missing; run it as root, or as a user with sudo.
# The CUDA Toolkit is not among them: where nvcc is found, the build uses it.
set -euo pipefail

packages=(
  # Build
  g++ cmake ninja-build ccache git
  # Libraries
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev libspdlog-dev libtbb-dev
  libcli11-dev nlohmann-json3-dev
  # Tests: C++, and a foreign client in Python
  libgtest-dev libgmock-dev python3 python3-grpcio python3-protobuf python3-numpy
  # Checks
  clang-format clang-tidy shellcheck
)

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
