#!/usr/bin/env bash
# Copyright The Platform Authors.
# SPDX-License-Identifier: Apache-2.0

# The node: containerd and kubelet. cluster.sh starts it as the first process of
# mount and process namespaces of its own, so that when it is killed everything
# goes with it: shims, containers, mounts.
set -euo pipefail
: "${CLUSTER_DIR:?}" "${BIN:?}" "${IMG:?}" "${NODE:?}" "${ADDRESS:?}" "${POD_CIDR:?}" "${CGROUP:?}"

dir=$CLUSTER_DIR/node log=$CLUSTER_DIR/log pki=$CLUSTER_DIR/pki
socket=$dir/containerd.sock
mkdir -p "$dir"/{root,state,s,cni,kubelet,logs,plugins}
rm -rf "$dir"/ipam # addresses of pods that died with the node before
export PATH="$BIN:$PATH"

# restrict_oom_score_adj and oomScoreAdj: root of a container may not lower it.
cat >"$dir/containerd.toml" <<TOML
version = 4
root = '$dir/root'
state = '$dir/state'
imports = []
[plugins.'io.containerd.server.v1.grpc']
  address = '$socket'
[plugins.'io.containerd.server.v1.ttrpc']
  address = '$socket.ttrpc'
[plugins.'io.containerd.internal.v1.opt']
  path = '$dir/opt'
[plugins.'io.containerd.nri.v1.nri']
  disable = true
[plugins.'io.containerd.shim.v1.manager']
  socket_dir = '$dir/s'
[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = 'platform.ai/test-pause:1'
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = '$BIN/runc'
  SystemdCgroup = false
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['$BIN/cni']
  conf_dir = '$dir/cni'
  use_internal_loopback = true
TOML

# Each pod has a link to the node. Network policies are not enforced here.
cat >"$dir/cni/10-pods.conflist" <<JSON
{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "$dir/ipam",
    "ranges": [[{"subnet": "$POD_CIDR"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
JSON

# A full disk of the machine evicts nothing.
cat >"$dir/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://$socket
cgroupDriver: cgroupfs
cgroupRoot: $CGROUP
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: "$pki/ca.crt"}}
authorization: {mode: Webhook}
tlsCertFile: $pki/kubelet-server.crt
tlsPrivateKeyFile: $pki/kubelet-server.key
podLogsDir: $dir/logs
volumePluginDir: $dir/plugins
resolvConf: ""
clusterDomain: cluster.local
clusterDNS: [$ADDRESS]
makeIPTablesUtilChains: false
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 100Mi, nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%", imagefs.inodesFree: "0%"}
syncFrequency: 10s
YAML

containerd --config "$dir/containerd.toml" >"$log/containerd.log" 2>&1 &
until ctr -a "$socket" version >/dev/null 2>&1; do
  kill -0 $! # ends this, too, if containerd has ended
  sleep 0.1
done
for image in "$IMG"/*.tar; do ctr -a "$socket" -n k8s.io images import "$image"; done >/dev/null
kubelet --config="$dir/kubelet.yaml" --kubeconfig="$pki/kubelet.kubeconfig" --hostname-override="$NODE" --node-ip="$ADDRESS" \
  --root-dir="$dir/kubelet" --cert-dir="$dir/kubelet-certs" >"$log/kubelet.log" 2>&1 &
trap 'exit 0' TERM INT
wait -n # ends all when containerd or kubelet ends
