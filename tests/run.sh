#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test as users run the programs. The other presets: asan, under the
# address and undefined-behaviour sanitizers; tsan, below the gRPC service, under the thread sanitizer; ci, the release
# with kernels compiled quickly. Tests of the CUDA device run where a card is visible and are skipped with a message
# elsewhere.
# usage: tests/run.sh [PRESET...]     default: release; .ci/run has the three others
set -euo pipefail
cd "$(dirname "$0")/.."
# Code for the cards that are here, where there are any.
if nvidia-smi -L >/dev/null 2>&1; then export CUDAARCHS=${CUDAARCHS:-native}; fi

presets=("$@")
[[ ${#presets[@]} -gt 0 ]] || presets=(release)

echo "== Installing what is missing (deploy/install_deps.sh build test)"
deploy/install_deps.sh build test
configure() { cmake --preset "$1" -DPREFIXD_GROUPED=ON -DPREFIXD_TESTS=ON -DPREFIXD_YARDSTICKS=ON >/dev/null; }

echo "== Building ${presets[0]}"
configure "${presets[0]}"
cmake --build --preset "${presets[0]}"
for ((i = 0; i < ${#presets[@]}; ++i)); do
  preset=${presets[i]} next=${presets[i + 1]:-} building=
  # The longest tests wait most of their time. Meanwhile the next preset is built, by what they leave of the machine.
  if [[ -n $next ]]; then
    configure "$next"
    nice -n 19 ninja -C "build/$next" >"build/$next/build.log" 2>&1 &
    building=$!
    trap 'kill "$building" 2>/dev/null' EXIT
  fi
  echo "== Testing $preset, after $SECONDS s"
  ctest --preset "$preset" -j "$(($(nproc) + 1))" --label-exclude alone
  if [[ -n $next ]]; then
    echo "== Building $next, after $SECONDS s"
    renice -n 0 -p "$building" >/dev/null 2>&1 || true  # For what it starts from now on, where that is allowed.
    wait "$building" || { cat "build/$next/build.log" && exit 1; }
    trap - EXIT
  fi
  echo "== Testing $preset, what floods, with nothing beside it, after $SECONDS s"
  ctest --preset "$preset" --label-regex alone --no-tests=ignore
done
echo "== All tests passed: ${presets[*]}, after $SECONDS s"
