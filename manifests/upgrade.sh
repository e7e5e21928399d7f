#!/usr/bin/env bash
# Copyright The Platform Authors.
# SPDX-License-Identifier: Apache-2.0

# Replaces the Pods of the API server after another version was applied, in an installation with the component standby.
#   manifests/upgrade.sh [NAMESPACE]    default platform-system
# KUBECTL names another kubectl, possibly with options. TIMEOUT (5m) is how long each step may take.
#
# The Pod that waits is replaced before the one that serves. So the successor is there when the server stops, and writes pause
# only while one closes the store and the other opens it. Pods that have the version already stay.
set -euo pipefail
read -ra kubectl <<<"${KUBECTL:-kubectl}"
namespace=${1:-platform-system}
timeout=${TIMEOUT:-5m}
server=statefulset/platform-apiserver
k() { "${kubectl[@]}" --namespace "$namespace" "$@" </dev/null; }

k wait --for=jsonpath='{.status.observedGeneration}'="$(k get $server -o jsonpath='{.metadata.generation}')" --timeout="$timeout" $server
wanted=$(k get $server -o jsonpath='{.status.updateRevision}')
fields='{.status.conditions[?(@.type=="Ready")].status} {.metadata.labels.controller-revision-hash} {.metadata.name}'
k get pods --selector app.kubernetes.io/name=platform-apiserver -o jsonpath="{range .items[*]}$fields{\"\\n\"}{end}" |
  sort | # what is not ready (False) comes first
  while read -r _ revision pod; do
    [[ $revision != "$wanted" ]] || continue
    k delete pod "$pod" --timeout="$timeout"
    k wait --for=create --timeout="$timeout" "pod/$pod"
    k wait --for=jsonpath='{.status.containerStatuses[0].started}'=true --timeout="$timeout" "pod/$pod" # it waits, or serves
  done
k wait --for=condition=Available --timeout="$timeout" apiservice/v1alpha1.core.platform.ai
