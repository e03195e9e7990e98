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
for preset in "${presets[@]}"; do
  echo "== Building $preset"
  cmake --preset "$preset" -DPREFIXD_GROUPED=ON -DPREFIXD_TESTS=ON -DPREFIXD_YARDSTICKS=ON >/dev/null
  cmake --build --preset "$preset"
  echo "== Testing $preset, after $SECONDS s"
  ctest --preset "$preset" -j "$(($(nproc) + 1))"  # The longest ones wait most of their time.
done
echo "== All tests passed: ${presets[*]}, after $SECONDS s"
