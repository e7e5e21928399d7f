#!/usr/bin/env bash
# Copyright The Platform Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the end-to-end tests, against standalone servers and against a real cluster.
# As root the cluster has a node: the tests run in its network namespace, and it is
# removed completely afterwards. Arguments are passed to "go test".
# Conversations in a chat are tested if there is a prosody. WITH names what the tests may use besides, such as minutes.
#   CLUSTER_DIR=FOLDER [NETNS=NAME] PLATFORM_BIN=FOLDER NEEDS_NODE=PACKAGES [TESTFLAGS=FLAGS] [WITH=NEEDS] hack/e2e.sh [-run NAME ...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
: "${CLUSTER_DIR:?}" "${PLATFORM_BIN:?}" "${TESTFLAGS:=}"
: "${NEEDS_NODE:?}" # the packages; the last one takes the platform out
export PLATFORM_TEST_WITH=control-plane${WITH:+,$WITH}
if command -v prosody >/dev/null; then PLATFORM_TEST_WITH+=,chat; fi

if [[ -z ${NETNS:-} ]]; then
  hack/gotest.sh e2e "$NEEDS_NODE" $TESTFLAGS -count=1 "$@"
  exit
fi

finish() {
  local code=$?
  trap - EXIT
  if ((code != 0)); then
    rm -rf _output/cluster/log
    cp -R "$CLUSTER_DIR/log" _output/cluster/log 2>/dev/null && echo "logs of the cluster: _output/cluster/log" >&2
  fi
  test/cluster/cluster.sh delete || code=1
  exit "$code"
}
export CLUSTER_DIR NETNS
test/cluster/cluster.sh delete # what an earlier run may have left
trap finish EXIT
trap 'exit 130' INT TERM

SECONDS=0
test/cluster/cluster.sh up
setsid test/cluster/cluster.sh follow $$ </dev/null >/dev/null 2>&1 & # no cluster stays if this script is killed
test/cluster/cluster.sh node
test/cluster/cluster.sh load _output/images/*.tar >/dev/null
echo "the cluster is up after $SECONDS s"
# one package at a time, because they share the node; four tests at a time, because they mostly wait for the cluster
PLATFORM_TEST_WITH+=,node PLATFORM_TEST_CLUSTER=$CLUSTER_DIR hack/gotest.sh e2e "$NEEDS_NODE" $TESTFLAGS -count=1 -p 1 -parallel 4 -timeout=60m -exec "nsenter --net=/run/netns/$NETNS" "$@"
