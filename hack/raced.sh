#!/usr/bin/env bash
# Copyright The Platform Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the packages below pkg in which things happen at once, by what their files name: goroutines, locks and atomic values. Their
# tests run under the race detector, which finds nothing in the others and takes several times as long. Workers' packages come first:
# their tests wait for programs, which others fill.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
"${GO:-go}" list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' ./pkg/... | while read -r path dir; do
  if grep -qE '"sync(/atomic)?"|/errgroup"|\bgo (func\b|[a-zA-Z_.]+\()' "$dir"/*.go; then
    echo "$path"
  fi
done | sort -r
