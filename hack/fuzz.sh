#!/usr/bin/env bash
# Runs every fuzz test for FUZZTIME (default 10s), one after the other. The time for minimizing new inputs is bounded,
# because it would otherwise take all of FUZZTIME.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
grep -rlE '^func Fuzz' --include='*_test.go' pkg test | while read -r file; do
  dir=$(dirname "$file")
  grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | sed 's/^func //' | while read -r name; do
    echo "$dir $name"
    go test "./$dir" -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-10s}" -fuzzminimizetime 100x
  done
done
