#!/usr/bin/env bash
# Copyright The Platform Authors.
# SPDX-License-Identifier: Apache-2.0

# "go test" with its arguments, without what servers that run in the same process log beside errors. If it fails, what the failed
# tests said is repeated at the end.
set -uo pipefail
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"${GO:-go}" test "$@" 2>&1 | tee "$log" | grep --line-buffered -v -E '^[IW][0-9]{4} [0-9:.]+ '
code=${PIPESTATUS[0]}
((code == 0)) && exit

printf '\n=== what failed\n'
# Without -v a test's messages follow its line "--- FAIL", with -v they come before it. Messages are indented.
awk '
  /^=== (RUN|NAME|CONT|PAUSE) / { test = $3; said = 0; next }
  /^( +[a-z0-9_]+\.go:[0-9]+: )?[IWEF][0-9][0-9][0-9][0-9] / { next } # the log of a server
  /^ *--- FAIL: / { print; for (i = 1; i <= n[$3]; i++) print line[$3, i]; n[$3] = 0; said = 1; next }
  /^ *--- (PASS|SKIP): / { n[$3] = 0; said = 0; next }
  /^(panic: |fatal error: |WARNING: DATA RACE)/ { left = 60 }
  /^(FAIL\t|# )/ { print; said = 0; next }
  left > 0 { print; left--; next }
  /^    / { if (said) print; else if (test != "") line[test, ++n[test]] = $0; next }
  { said = 0 }
' "$log" | head -n 500
exit "$code"
