#!/usr/bin/env bash
# Copyright The Platform Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds platform-standalone and platform-worker without optimizations and
# starts the server on ./_data under dlv. Arguments are passed to the server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=_output/debug delve=${DELVE:-dlv}
go build -gcflags 'all=-N -l' -o "$out/" ./cmd/platform-standalone ./cmd/platform-worker ./cmd/platform-worker-command ./cmd/platform-workspace
command=("$delve" exec "$out/platform-standalone" -- --data-dir _data "$@")
if command -v "$delve" >/dev/null; then
  exec "${command[@]}"
fi
cat <<TEXT
$out has programs that a debugger can follow, but $delve is not installed:
  go install github.com/go-delve/delve/cmd/dlv@latest
Then run this again, or
  ${command[*]}
A worker is a process of its own: dlv attach PID while a task runs, as root, since workers cannot be traced otherwise.
TEXT
