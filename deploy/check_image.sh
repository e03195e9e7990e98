#!/usr/bin/env bash
# Builds the image for real and runs it, without CUDA and without a Docker daemon, on a base image made on the spot from
# this machine's distribution (Debian 12, Ubuntu 24.04 or newer). Needs root; takes some minutes. The image is built from
# the tracked files as they are in the work tree. Containers run in a network of their own, with nothing but loopback.
# usage: deploy/check_image.sh [--current-grpc BASE SUITE]
#   --current-grpc BASE SUITE   on a base image of this suite of Debian instead, with the gRPC of that one, which must be
#                               1.60 or newer, such as sid experimental
# What it can't see: NVIDIA's base images and the CUDA build on them, GPUs in containers, Docker itself, compose.yaml.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)

# Without systemd, podman complains at every turn that it can't time health checks: they are run by hand here.
podman() { command podman --log-level=fatal --root "$work/images" --runroot "$work/run" --events-backend=file "$@"; }
buildah() { command buildah --root "$work/images" --runroot "$work/run" "$@"; }
step() { printf '\n== %s\n' "$*"; }
ok() { printf '   ok  %-58s %s\n' "$1" "${2:-}"; }
fail() {
  printf ' FAIL  %s\n' "$*" >&2
  podman logs prefixd 2>&1 | sed 's/^/       | /' >&2 || true
  exit 1
}
wait_for() {  # SECONDS COMMAND...: until the command succeeds.
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || fail "waited in vain for: $*"
    sleep 0.1 # Until the next look.
  done
}
since() { awk -v start="$1" -v now="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", now - start }'; }
mib() { awk -v bytes="$1" 'BEGIN { printf "%.1f MiB", bytes / 1048576 }'; }

# ---- First part, in mounts of its own: the image.

make_base_image() {
  local id codename components=main
  # shellcheck source=/dev/null
  read -r id codename < <(. /etc/os-release && echo "$ID $VERSION_CODENAME")
  if [[ -n $base_suite ]]; then id=debian codename=$base_suite; fi
  if [[ $id == ubuntu ]]; then components=main,universe; fi
  # What this machine's apt was told of proxies and dates holds for the one in the image as well.
  apt-config dump --format '%f "%v";%n' Acquire::http Acquire::https Acquire::Check-Valid-Until Acquire::Check-Date \
    >"$work/apt.conf"
  mmdebstrap --quiet --variant=minbase --components="$components" --aptopt="$work/apt.conf" "$codename" "$work/base.tar"
  podman import --quiet "$work/base.tar" localhost/base >/dev/null
  rm "$work/base.tar"
}

build_image() {  # LOG: what buildah printed goes there.
  buildah build --isolation=chroot --format docker --pull-never --layers --tag localhost/prefixd \
    --build-arg BUILD_IMAGE=localhost/base --build-arg RUNTIME_IMAGE=localhost/base --build-arg CUDA=OFF \
    --build-arg GRPC_SUITE="$grpc_suite" \
    "$work/context" >"$1" 2>&1 || { tail -n 40 "$1" >&2; fail "the image does not build"; }
}

cached() {  # LOG COMMAND: whether the layer of COMMAND came from the cache.
  grep -F -A 1 "$2" "$1" | grep -q -F -e 'Using cache'
}

check_build() {
  local start=$EPOCHREALTIME size base_size
  step "A base image (minbase of this distribution)"
  make_base_image
  ok "made" "$(since "$start")"

  step "The image, from nothing"
  mkdir "$work/context"
  (cd "$source" && git ls-files -z | xargs -0 cp --parents -t "$work/context")
  start=$EPOCHREALTIME
  build_image "$work/first.log"
  ok "built" "$(since "$start")"
  if cached "$work/first.log" "RUN deploy/install_deps.sh"; then fail "the first build used a cache"; fi
  base_size=$(podman image inspect --format '{{.Size}}' localhost/base)
  size=$(podman image inspect --format '{{.Size}}' localhost/prefixd)
  ok "size beyond the base image" "$(mib $((size - base_size)))"
  ok "size with this base image, as it is stored" "$(mib "$size")"
  ok "size with this base image, packed" "$(mib "$(podman save --quiet localhost/prefixd | gzip | wc -c)")"

  step "The image again, after a change of the source"
  echo "// Changed." >>"$work/context/server/main.cc"
  start=$EPOCHREALTIME
  build_image "$work/second.log"
  ok "built" "$(since "$start")"
  cached "$work/second.log" "RUN deploy/install_deps.sh" || fail "the packages were installed again"
  ok "the layer of the packages was used again"
  grep -q -F "cmake --install" "$work/second.log" || fail "the second build has no install step"
  if cached "$work/second.log" "cmake --install"; then fail "the change was not built"; fi
  ok "the change was built"
}

# ---- Second part, also in a network of its own: containers.

run_image() {  # PODMAN-RUN-OPTIONS... IMAGE [FLAGS...]
  podman run --network=host --cgroups=disabled --ulimit nofile=20000:20000 --ulimit nproc=4096:4096 \
    --read-only --cap-drop=ALL --security-opt=no-new-privileges "$@"
}

is_healthy() { podman healthcheck run prefixd >/dev/null 2>&1; }
is_busy() { podman exec prefixd prefixctl info | grep -q '^requests  *1 of'; }
is_ready() { podman logs prefixd 2>&1 | grep -q ready; }
has_ended() { [[ $(podman inspect --format '{{.State.Running}}' prefixd) == false ]]; }

prefixctl() {  # The image's own, as a caller outside of the server's container has it.
  if [[ -n $grpc_suite ]]; then
    run_image --rm --interactive --entrypoint prefixctl localhost/prefixd "$@"  # This machine lacks its libraries.
  else
    "$work/tree/bin/prefixctl" "$@"
  fi
}

status_of() { awk -v field="$1:" '$1 == field { print $2 }' "/proc/$pid/status"; }

check_containers() {
  local code output start pid stream answer version
  ip link set lo up

  step "Wrong flags"
  code=0
  output=$(run_image --rm localhost/prefixd --lanes 0 2>&1) || code=$?
  [[ $code == 2 ]] || fail "--lanes 0: exit code $code, expected 2: $output"
  [[ $output == *"--lanes"*"Usage: prefixd"* ]] || fail "--lanes 0: no usage in: $output"
  ok "exit code 2, with the usage"
  code=0
  output=$(run_image --rm localhost/prefixd --device cuda:0 2>&1) || code=$?
  [[ $code == 1 && $output == *cuda:0* ]] || fail "--device cuda:0 without a card: exit code $code: $output"
  ok "exit code 1 where the device that was asked for is missing"

  step "A container: read-only, without capabilities"
  start=$EPOCHREALTIME
  run_image --detach --name prefixd localhost/prefixd >/dev/null
  wait_for 30 is_healthy
  ok "healthy" "$(since "$start")"
  pid=$(podman inspect --format '{{.State.Pid}}' prefixd)
  [[ $(status_of Uid) == 10001 && $(status_of Gid) == 10001 ]] || fail "runs as $(status_of Uid):$(status_of Gid)"
  ok "user and group" "10001:10001"
  for set in CapInh CapPrm CapEff CapBnd CapAmb; do
    [[ $(status_of $set) =~ ^0+$ ]] || fail "$set is $(status_of $set)"
  done
  ok "capabilities" "none"
  [[ $(status_of NoNewPrivs) == 1 ]] || fail "can gain privileges"
  ok "new privileges" "none"
  code=0
  output=$(podman exec --user 0 prefixd touch /opt/prefixd/x 2>&1) || code=$?
  [[ $code != 0 && $output == *"Read-only file system"* ]] || fail "the root file system can be written: $output"
  ok "root file system" "read-only"
  output=$(podman exec prefixd prefixd --version)
  version=$(podman image inspect --format '{{index .Labels "org.opencontainers.image.version"}}' localhost/prefixd)
  [[ $output == "prefixd $version (gRPC "* ]] || fail "the label of the image says $version, and prefixd $output"
  ok "version, as in the image's label" "$output"
  if [[ -n $grpc_suite ]]; then
    output=${output##*gRPC }
    [[ $(printf '%s\n' 1.60 "${output%)}" | sort -V | head -n 1) == 1.60 ]] || fail "gRPC is ${output%)}"
  fi

  if [[ -n $grpc_suite ]]; then
    step "From outside: the image's own prefixctl, in a container of its own"
  else
    step "From outside: the image's own prefixctl, copied out of it, on this machine"
    podman cp prefixd:/opt/prefixd "$work/tree"
  fi
  answer=$(seq 1000 | prefixctl scan --type i64 - 2>/dev/null | tail -n 1)
  [[ $answer == 500500 ]] || fail "the sum of 1 to 1000 is '$answer'"
  ok "scan of 1 to 1000 ends with" "$answer"
  answer=$(prefixctl info)
  ok "prefixctl info" "$(head -n 1 <<<"$answer")"

  step "SIGTERM, with a request in flight"
  mkfifo "$work/fifo"
  prefixctl scan --type i64 - <"$work/fifo" >"$work/scanned" 2>"$work/scan.log" &
  stream=$!
  exec 3>"$work/fifo"
  seq 400000 >&3
  wait_for 30 is_busy
  start=$EPOCHREALTIME
  podman kill --signal TERM prefixd >/dev/null
  sleep 2 # In which it could end.
  if has_ended; then fail "it did not wait for the request in flight"; fi
  seq 400001 500000 >&3
  exec 3>&-
  wait_for 30 has_ended  # The drain time-out.
  code=$(podman inspect --format '{{.State.ExitCode}}' prefixd)
  wait "$stream" || fail "the request in flight failed: $(<"$work/scan.log")"
  [[ $code == 0 ]] || fail "exit code $code, expected 0"
  [[ $(tail -n 1 "$work/scanned") == 125000250000 ]] || fail "the request in flight ended with $(tail -n 1 "$work/scanned")"
  ok "the request was finished, then exit code 0" "$(since "$start")"
  podman logs prefixd 2>&1 | sed 's/^/       | /'

  step "A container in which nothing serves where the health check looks"
  podman rm prefixd >/dev/null
  run_image --detach --name prefixd --env PREFIXD_LISTEN=127.0.0.1:50052 localhost/prefixd >/dev/null
  wait_for 30 is_ready
  if is_healthy; then fail "it is called healthy"; fi
  ok "not healthy"
  start=$EPOCHREALTIME
  podman stop --time 30 prefixd >/dev/null
  [[ $(podman inspect --format '{{.State.ExitCode}}' prefixd) == 0 ]] || fail "podman stop: not exit code 0"
  ok "stopped, exit code 0" "$(since "$start")"
}

case ${CHECK_IMAGE_PART:-} in
  "")
    export base_suite='' grpc_suite=''
    if [[ $# -gt 0 ]]; then
      [[ $# == 3 && $1 == --current-grpc ]] || { sed -n 's/^# usage: /usage: /p; s/^#   /  /p' "$0" >&2; exit 2; }
      base_suite=$2 grpc_suite=$3
    fi
    [[ $EUID == 0 ]] || { echo "check_image: needs root, for mounts and containers" >&2; exit 1; }
    "$source/deploy/install_deps.sh" image
    work=$(mktemp -d /var/tmp/prefixd_image.XXXXXX)
    export work
    trap 'rm -rf "$work"' EXIT
    CHECK_IMAGE_PART=image unshare --mount --propagation private "$0"
    ;;
  image)
    # One cgroup hierarchy, of version 2, whatever the machine has.
    umount --recursive /sys/fs/cgroup
    mount -t cgroup2 none /sys/fs/cgroup
    trap 'podman rm --all --force >/dev/null 2>&1 || true; umount --recursive "$work/images" 2>/dev/null || true' EXIT
    check_build
    CHECK_IMAGE_PART=containers unshare --net "$0"
    printf '\n== The image is as it should be\n'
    ;;
  containers) check_containers ;;
esac
