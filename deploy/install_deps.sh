#!/usr/bin/env bash
# Installs what prefixd is built, run and tested with, from the distribution (Debian 12, Ubuntu 24.04 or newer).
# The one list of packages. Installs only what is missing; run it as root, or as a user with sudo.
# The CUDA Toolkit is not among them: where nvcc is found, the build uses it.
# usage: deploy/install_deps.sh [--grpc-from SUITE] [build|test|lint|grpc|image]...     default: build test lint
#   --grpc-from SUITE   gRPC and protobuf come from this suite of the distribution, if it has gRPC 1.60 or newer, and
#                       all else from where it comes. For Debian's sid, which has 1.51: experimental.
set -euo pipefail

declare -A groups=(
  [build]="g++ cmake ninja-build ccache
           libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev libspdlog-dev libtbb-dev
           libcli11-dev nlohmann-json3-dev libgoogle-perftools-dev prometheus-cpp-dev libssl-dev"
  # C++, a foreign client in Python, CPUs that are older than this one, certificates, promtool, and a proxy.
  [test]="libgtest-dev libgmock-dev python3 python3-grpcio python3-protobuf python3-numpy qemu-user openssl
          prometheus haproxy"
  [lint]="git clang-format python3-venv shellcheck"
  [grpc]="mmdebstrap git"  # deploy/check_grpc.sh
  [image]="mmdebstrap podman buildah crun iproute2 git"  # deploy/check_image.sh
)
least_grpc=1.60

suite=
if [[ ${1:-} == --grpc-from ]]; then
  suite=${2:?install_deps: --grpc-from needs the name of a suite}
  shift 2
fi
[[ $# -gt 0 ]] || set -- build test lint
packages=()
for group in "$@"; do
  if [[ ! -v groups[$group] ]]; then
    echo "install_deps: no group '$group'; there are build, test, lint, grpc and image" >&2
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
if [[ ${#missing[@]} -eq 0 && -z $suite ]]; then
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
install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

"${as_root[@]}" apt-get update -qq
if [[ -n $suite ]]; then
  # shellcheck disable=SC2016  # These are apt's to expand.
  read -r mirror < <(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages')
  # shellcheck disable=SC2016
  if ! apt-get indextargets --format '$(SUITE) $(CODENAME)' 'Created-By: Packages' | grep -q -w -F -e "$suite"; then
    "${as_root[@]}" tee /etc/apt/sources.list.d/grpc.list <<<"deb $mirror $suite main" >/dev/null
    "${as_root[@]}" apt-get update -qq
  fi
  version=$(LC_ALL=C apt-cache -o APT::Default-Release="$suite" policy libgrpc++-dev |
    awk '$1 == "Candidate:" { print $2 }')
  if ! dpkg --compare-versions "$version" ge "$least_grpc"; then
    echo "install_deps: $suite has gRPC ${version:-(none)}; expected $least_grpc or newer: name a suite that has it" >&2
    exit 1
  fi
fi
if [[ ${#missing[@]} -gt 0 ]]; then
  echo "install_deps: installing ${missing[*]}"
  install "${missing[@]}"
fi
if [[ -n $suite ]]; then
  # What gRPC is built with, Abseil and OpenSSL, is there by now, and stays what it is.
  read -r -d '' -a names < <(printf '%s\n' "${packages[@]}" | grep -e grpc -e protobuf) || true
  echo "install_deps: gRPC $version and protobuf, from $suite: ${names[*]}"
  install -t "$suite" "${names[@]}"
fi
echo "install_deps: done"
