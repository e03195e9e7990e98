#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test: as users run it, under the address and undefined-behaviour
# sanitizers, and, below the gRPC service, under the thread sanitizer. Tests of the CUDA device run where a card is
# visible and are skipped with a message elsewhere.
# usage: tests/run.sh [PRESET...]     default: release asan tsan
set -euo pipefail
cd "$(dirname "$0")/.."
# Code for the cards that are here, where there are any.
if nvidia-smi -L >/dev/null 2>&1; then export CUDAARCHS=${CUDAARCHS:-native}; fi

presets=("$@")
[[ ${#presets[@]} -gt 0 ]] || presets=(release asan tsan)

echo "== Installing what is missing (deploy/install_deps.sh)"
deploy/install_deps.sh
for preset in "${presets[@]}"; do
  echo "== Building $preset"
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset"
  echo "== Testing $preset"
  ctest --preset "$preset" -j "$(nproc)"
done
echo "== All tests passed: ${presets[*]}"
