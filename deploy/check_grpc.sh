#!/usr/bin/env bash
# Builds this tree against a current gRPC of Debian and runs every test and drill with it: in a root of its own, which
# is made for it and removed. Needs root, and as much time as tests/run.sh takes: half an hour on two cores.
#
#   deploy/check_grpc.sh sid experimental          # the base, and what has the gRPC, as of October 2026
#
# usage: deploy/check_grpc.sh [OPTION]... SUITE...
#   SUITE...             suites of Debian: the base first, that which has gRPC 1.60 or newer last
#   --mirror URL         where they are; default http://deb.debian.org/debian
#   --apt-option OPTION  a line of apt's configuration, such as 'Acquire::Check-Valid-Until "false"'; repeatable
#   --root DIR           make the root there and keep it; one that is there is used as it is, and its builds go on
#   --cuda DIR           compile the CUDA device too, with the toolkit that is there, such as /usr/local/cuda-13.0
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)

step() { printf '\n== %s (%s)\n' "$*" "$(date +%T)"; }
fail() { printf 'check_grpc: %s\n' "$*" >&2; exit 1; }
usage() { printf 'check_grpc: %s\n' "$*" >&2; sed -n 's/^# usage: /usage: /p; s/^#   /  /p' "$0" >&2; exit 2; }

# ---- In the root, each by itself.

versions() {
  dpkg-query -W -f 'gRPC ${Version}, ' libgrpc++-dev
  dpkg-query -W -f 'protobuf ${Version}, ' libprotobuf-dev
  g++ --version | sed -n '1s/ (.*)//p'
}

# Debian's experimental ships packages before they are whole. The tests' foreign client is in Python: what its packages
# lack in 1.83.0-2+b1 and 36.2-3 is added where it is missing.
mend_python() {
  local google=/usr/lib/python3/dist-packages/google/protobuf/internal
  if ! python3 -c 'import google.protobuf.descriptor_pool' 2>/dev/null; then
    protoc --edition_defaults_out=/tmp/defaults --edition_defaults_minimum=PROTO2 --edition_defaults_maximum=2024 \
      -I/usr/include google/protobuf/descriptor.proto
    python3 -c 'print("_PROTOBUF_INTERNAL_PYTHON_EDITION_DEFAULTS =", open("/tmp/defaults", "rb").read())' \
      >$google/python_edition_defaults.py
  fi
  if ! python3 -c 'import grpc' 2>/dev/null; then  # It is not linked with all of Abseil that it uses.
    local library needed=()
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends patchelf >/dev/null
    for library in /usr/lib/*/libabsl_*.so; do needed+=(--add-needed "$(basename "$(readlink "$library")")"); done
    patchelf "${needed[@]}" /usr/lib/python3/dist-packages/grpc/_cython/cygrpc*.so
  fi
  python3 -c 'import google.protobuf.descriptor_pool, grpc'
}

run_tests() {
  cd /src/prefixd
  local log=build/release/Testing/Temporary/LastTest.log failed=0
  tests/run.sh release || failed=1  # What comes after it may pass all the same, and whoever mends it wants to know.
  grep -ho 'DRILL [^ ]* (.*' $log >/tmp/figures || true
  echo "== Drills over TLS, those too that are too long for every day"
  ctest --preset release -C long -R '^e2e\.tls\.' || failed=1
  grep -ho 'DRILL [^ ]* (.*' $log >>/tmp/figures || true
  echo "== Figures of the drills"
  cat /tmp/figures
  return "$failed"
}

build_cuda() {
  cd /src/prefixd
  local compiler=g++-15  # The newest that nvcc 13 takes.
  if ! command -v $compiler >/dev/null; then
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends $compiler >/dev/null
  fi
  # What the CUDA algorithms are compared with has nothing to do with gRPC.
  CXX=$compiler CUDACXX=$cuda/bin/nvcc CUDAHOSTCXX=$compiler cmake --preset cuda -DPREFIXD_GROUPED=ON \
    -DPREFIXD_TESTS=OFF -DPREFIXD_YARDSTICKS=OFF >/dev/null
  cmake --build --preset cuda --target prefixd prefixctl
}

in_root() {  # FUNCTION
  env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive cuda="$cuda" \
    chroot "$root" bash -euo pipefail -c "$(declare -f "$1"); $1" </dev/null
}

# ---- Here.

make_root() {
  local option suite options=() sources=()
  for option in "${apt_options[@]}"; do options+=(--aptopt="${option%;}"); done
  for suite in "${suites[@]}"; do sources+=("deb $mirror $suite main"); done
  mkdir -p "$(dirname "$root")"
  # shellcheck disable=SC2016  # The hooks' shell expands $1.
  mmdebstrap --quiet --mode=root --variant=apt "${options[@]}" \
    --customize-hook="copy-in '$source/deploy/install_deps.sh' /root" \
    --customize-hook="chroot \"\$1\" /root/install_deps.sh --grpc-from ${suites[-1]} build test" \
    "${suites[0]}" "$root" "${sources[@]}" || fail "no root of ${suites[*]}: see above"
}

copy_tree() {
  local tree=$root/src/prefixd
  mkdir -p "$tree"
  # A file that differs is new: with the time of its last change, an older build would pass for newer than it.
  (cd "$source" && git ls-files -z) | while IFS= read -r -d '' file; do
    cmp -s "$source/$file" "$tree/$file" || (cd "$source" && cp --parents --preserve=mode -t "$tree" "$file")
  done
  (cd "$tree" && find . -path ./build -prune -o -type f -print0) | while IFS= read -r -d '' file; do
    [[ -e $source/$file ]] || rm "$tree/$file"
  done
}

# From 2.42 on glibc declares rsqrt too, and says that it throws nothing; CUDA 13.0 does not say so.
mend_cuda() {
  local header
  header=$(readlink -f "$cuda/include/crt/math_functions.h")
  sed -E 's/\b(rsqrtf?)\((double|float) x\);/\1(\2 x) noexcept(true);/' "$header" >"$root/tmp/math_functions.h"
  mount --bind "$root/tmp/math_functions.h" "$root$header"
}

check() {  # In mounts and processes of its own, which are gone when it ends, however it ends.
  if [[ ! -d $root/usr ]]; then
    step "A root of ${suites[*]}, from $mirror, in $root"
    make_root
  fi
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  in_root mend_python || fail "the tests' Python can't be had: its grpc or protobuf does not load"
  copy_tree
  step "Tests and drills, with $(in_root versions)"
  local failed=()
  in_root run_tests || failed+=("tests or drills")
  if [[ -n $cuda ]]; then
    step "The CUDA device, with $cuda"
    mkdir -p "$root$cuda"  # At the same place: there may be links in it that say where it is.
    mount --bind "$cuda" "$root$cuda"
    mend_cuda
    in_root build_cuda || failed+=("the CUDA build")
  fi
  [[ ${#failed[@]} -eq 0 ]] || fail "FAILED in $((SECONDS / 60)) minutes: ${failed[*]}, with $(in_root versions)"
  step "PASSED in $((SECONDS / 60)) minutes: tests and drills${cuda:+, and the CUDA build}, with $(in_root versions)"
}

mirror=http://deb.debian.org/debian
apt_options=()
root=
cuda=
while [[ ${1:-} == -* ]]; do
  [[ $1 != --help ]] || { sed -n '2,/^set/{/^set/d; s/^# \{0,1\}//; p}' "$0"; exit 0; }
  [[ $# -gt 1 ]] || usage "$1 needs a value"
  case $1 in
    --mirror) mirror=$2 ;;
    --apt-option) apt_options+=("$2") ;;
    --root) root=$(realpath -m "$2") ;;
    --cuda) cuda=$(realpath -m "$2") ;;
    *) usage "there is no option $1" ;;
  esac
  shift 2
done
suites=("$@")
[[ ${#suites[@]} -gt 0 ]] || usage "expected at least one suite"
[[ $EUID == 0 ]] || fail "needs root, for mounts and chroot"
[[ -z $cuda || -x $cuda/bin/nvcc ]] || fail "--cuda: there is no bin/nvcc in $cuda"

if [[ -n ${CHECK_GRPC_ROOT:-} ]]; then
  root=$CHECK_GRPC_ROOT
  check
  exit
fi
"$source/deploy/install_deps.sh" grpc
remove=()
if [[ -z $root ]]; then
  root=$(mktemp -d -u /var/tmp/prefixd_grpc.XXXXXX)
  remove=("$root")
fi
arguments=(--mirror "$mirror" ${cuda:+--cuda "$cuda"})
for option in "${apt_options[@]}"; do arguments+=(--apt-option "$option"); done
CHECK_GRPC_ROOT=$root unshare --mount --propagation private --pid --fork --kill-child \
  "$0" "${arguments[@]}" "${suites[@]}" &
child=$!
code=143  # A signal ended it.
trap 'kill -KILL "$child"' INT TERM HUP  # And all that it has started, and mounted, with it.
trap 'wait "$child" || true; rm -rf --one-file-system "${remove[@]}"; exit "$code"' EXIT
code=0
wait "$child" || code=$?
