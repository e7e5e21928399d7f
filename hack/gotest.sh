#!/usr/bin/env bash
# Copyright The Platform Authors.
# SPDX-License-Identifier: Apache-2.0

# "go test ARGS PACKAGES" as a step of a tier: a line for each package, the output of what failed, and the events for hack/tier.
#   hack/gotest.sh STEP "PACKAGES" ARGS...
# What failed stays failed, as a second try would hide races and leaks. Only the gate sets TIER_RERUN: there up to five tests that
# failed run once more, alone; hack/tier lists them, and a race, a panic or a leak is final.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
step=$1 packages=$2
shift 2
out=${TIER_OUT:-$root/_output/tests/$step}
mkdir -p "$out"
rerun=()
[[ -z ${TIER_RERUN:-} ]] || rerun=(--rerun-fails=1 --rerun-fails-max-failures=5 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race)
# The servers that run in the process of a test log more than what failed; of that only errors are shown.
"$root/_output/bin/gotestsum" --format pkgname --format-icons text --format-hide-empty-pkg --hide-summary skipped \
  --jsonfile "$out/$step.json" --packages "$packages" ${rerun[@]+"${rerun[@]}"} -- "$@" 2>&1 |
  grep --line-buffered -v -E '^ *([a-z0-9_]+\.go:[0-9]+: )?[IW][0-9]{4} [0-9:.]+\]? '
exit "${PIPESTATUS[0]}"
