#!/usr/bin/env bash
# Takes the platform out of a cluster so that nothing is left to wait for something that is gone. All data goes, too.
#   manifests/uninstall.sh [FOLDER]    FOLDER is what was installed; default overlays/multi-namespace
# KUBECTL names another kubectl, possibly with options. TIMEOUT (5m) is how long each step may take.
#
# The order is what matters. Tasks go while the controller runs, because it ends their Jobs and then takes off their
# finalizer. The server stops before its APIService goes, because it would make it again; and the APIService goes next,
# because kube-apiserver would otherwise go on announcing a group that nobody serves, and the deletion of every namespace
# in the cluster would wait for it.
set -euo pipefail
read -ra kubectl <<<"${KUBECTL:-kubectl}"
folder=${1:-$(dirname "${BASH_SOURCE[0]}")/overlays/multi-namespace}
timeout=${TIMEOUT:-5m}
group=core.platform.ai
api=v1alpha1.$group
k() { "${kubectl[@]}" "$@"; }

# What the folder has besides its own namespace belongs to the one installation of the cluster.
namespace=$(k kustomize "$folder" | awk '/^kind: /{kind = $2} /^  namespace: / && kind == "StatefulSet" && !n++ {print $2}')
installed=$(k get apiservice "$api" --ignore-not-found -o jsonpath='{.spec.service.namespace}')
if [ -n "$installed" ] && [ "$installed" != "$namespace" ]; then
  echo "The platform of this cluster is installed in namespace $installed; only namespace $namespace is removed." >&2
  k delete namespace "$namespace" --ignore-not-found --timeout="$timeout"
  exit
fi
if [ -n "$(k get apiservice "$api" --ignore-not-found -o name)" ]; then
  if k wait --for=condition=Available --timeout=30s "apiservice/$api"; then
    k delete "tasks.$group" --all --all-namespaces --timeout="$timeout" ||
      echo "Some tasks did not end in time; what is left of them is deleted below." >&2
  else
    echo "The API server does not answer, so nothing ends tasks; what is left of them is deleted below." >&2
  fi
  k -n "$namespace" scale statefulset/platform-apiserver --replicas=0 || true # gone already
  k -n "$namespace" wait --for=delete pod --selector=app.kubernetes.io/name=platform-apiserver --timeout="$timeout"
  k delete apiservice "$api" --timeout="$timeout"
fi
# What is left of tasks whose controller could not end them, and the accounts of workers.
k delete jobs --all-namespaces --selector=platform.ai/task --timeout="$timeout"
for name in platform-ai-worker platform-agent-worker platform-container-worker; do
  k delete rolebindings,serviceaccounts --all-namespaces --field-selector="metadata.name=$name" --timeout="$timeout"
done
k delete -k "$folder" --ignore-not-found --timeout="$timeout"
