#!/usr/bin/env bash
# From a fresh clone to a scanned file: installs what is missing, builds, starts a server, scans, reduces and compacts
# 264 years of sunspots through it, and stops it.
set -euo pipefail
cd "$(dirname "$0")/.."
# Code for the cards that are here, where there are any.
if nvidia-smi -L >/dev/null 2>&1; then export CUDAARCHS=${CUDAARCHS:-native}; fi

step() { printf '\n== %s\n' "$*"; }
show() {
  printf '\n$'
  printf ' %q' "$@"
  printf '\n'
  "$@"
}

step "Installing what is missing (deploy/install_deps.sh build)"
deploy/install_deps.sh build

step "Building prefixd and prefixctl (build/release/bin)"
# Without the tests, which need more packages, and without the CUDA algorithms that the defaults are compared with, which
# take longer to build than all the rest.
cmake --preset release -DPREFIXD_GROUPED=ON -DPREFIXD_TESTS=OFF -DPREFIXD_YARDSTICKS=OFF >/dev/null
cmake --build --preset release --target prefixd prefixctl
export PATH=$PWD/build/release/bin:$PATH

step "Starting a server on a free port of this machine"
work=$(mktemp -d)
prefixd --listen 127.0.0.1:0 --port-file "$work/port" 2>"$work/log" &
server=$!
stop() {
  kill "$server" 2>/dev/null || true
  wait "$server" || true
  rm -rf "$work"
}
trap stop EXIT
for _ in $(seq 100); do
  [[ -s $work/port ]] && break
  kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
  sleep 0.1 # Until the next look: a file does not tell when it is written.
done
PREFIXD_SERVER=127.0.0.1:$(<"$work/port")
export PREFIXD_SERVER
cat "$work/log"
show prefixctl health

data=deploy/data/sunspots_monthly.txt
step "Monthly sunspot numbers from 1749 to 2013: $(wc -l <$data) of them, in $data"
show prefixctl reduce --op max "$data"
show prefixctl reduce --op sum "$data"
show prefixctl scan --op sum "$data" "$work/cumulative.txt"
printf 'The last three of the running sums:\n'
tail -n 3 "$work/cumulative.txt"
show prefixctl compact --where '> 200' --indices "$work/months.npy" "$data" "$work/peaks.txt"
printf 'The first three of the months above 200:\n'
head -n 3 "$work/peaks.txt"

step "Stopping the server"
kill "$server"
wait "$server"
trap - EXIT
rm -rf "$work"
cat <<'END'

That was it. Next:
  build/release/bin/prefixd                      a server on 127.0.0.1:50051
  build/release/bin/prefixctl --help             the client
  tests/run.sh                                   every test; builds the algorithms to compare with, too
END
