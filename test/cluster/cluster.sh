#!/usr/bin/env bash
# Copyright The Platform Authors.
# SPDX-License-Identifier: Apache-2.0

# A real Kubernetes for tests, of the programs that build.sh built.
#
#   cluster.sh up                 control plane: etcd, kube-apiserver, controllers, scheduler
#   cluster.sh node               a node, ready to run pods (needs root, and NETNS from "up" on)
#   cluster.sh node-down          the node's end, with all that runs on it, as when a machine dies
#   cluster.sh load IMAGE.tar...  images for the node, from tarballs
#   cluster.sh pin IMAGE...       names loaded images by their digests, too, as if they came from a registry; prints these names
#   cluster.sh kubectl ARGS...    kubectl as the administrator
#   cluster.sh exec COMMAND...    a command where the cluster's addresses can be reached
#   cluster.sh status             which programs run, and their memory
#   cluster.sh down               ends everything and puts the machine back as it was
#   cluster.sh delete             "down", and the folder with all data and logs goes, too
#   cluster.sh follow PID         waits for the end of process PID, then "delete", if the folder is still the same
#
# CLUSTER_DIR is the folder of the cluster; what it was started with is kept
# there, so that the other commands need nothing else. For "up":
#   NETNS   without it everything listens on 127.0.0.1 and needs no root. With it
#           everything is in a network namespace of that name, out of which
#           nothing leads, and there can be a node.
#   CGROUP  cgroup of the node's pods; NETNS when not set
#   PORT, ETCD_PORT, KCM_PORT, SCHED_PORT  on 127.0.0.1; ETCD_PORT + 1 is used, too
# Clusters with other folders, ports and names can run at the same time.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$(realpath -m "${CLUSTER_DIR:?set CLUSTER_DIR to the folder of the cluster}")
bin=$(realpath -m "$here/../../_output/cluster/bin")
img=$(realpath -m "$here/../../_output/cluster/img")
run=$dir/run log=$dir/log pki=$dir/pki

# shellcheck source=/dev/null
[[ ! -s $dir/settings ]] || source "$dir/settings"
NETNS=${NETNS:-} NODE=${NODE:-node-1}
ETCD_PORT=${ETCD_PORT:-2379} KCM_PORT=${KCM_PORT:-10257} SCHED_PORT=${SCHED_PORT:-10259}
service_cidr=10.96.0.0/16 service_ip=10.96.0.1 pod_cidr=10.244.0.0/24
if [[ -n $NETNS ]]; then
  address=10.99.0.1 PORT=${PORT:-443} # the port of the Service "kubernetes", whose address kube-apiserver has itself
else
  address=127.0.0.1 PORT=${PORT:-6443}
fi
CGROUP=${CGROUP:-$NETNS} cgroup=/$CGROUP
[[ ! -e /sys/fs/cgroup/cgroup.controllers ]] || cgroup=/ # only with version 1 is there a cgroup of our own to make

# "ip netns exec" would mount a new /sys and hide /sys/fs/cgroup; nsenter does not.
inside() {
  if [[ -n $NETNS && $(stat -Lc %i /proc/self/ns/net) != $(stat -c %i "/run/netns/$NETNS") ]]; then
    exec nsenter --net="/run/netns/$NETNS" "$@"
  fi
  exec "$@"
}

kubectl() (inside "$bin/kubectl" --kubeconfig "$pki/admin.kubeconfig" --cache-dir "$dir/kubectl" "$@")

# start NAME COMMAND...: runs in the background, in a session of its own, with its output in a file.
start() {
  local name=$1
  shift
  ! alive "$name" || return 0
  (
    inside setsid "$@" >"$log/$name.log" 2>&1 </dev/null 9>&- &
    echo $! >"$run/$name.pid"
    born $! >"$run/$name.born"
  )
}

# born PID: when a process was started, so that another one with its id is not taken for it.
born() { cut -d' ' -f22 "/proc/$1/stat" 2>/dev/null || true; }

alive() { [[ -s $run/$1.pid && -s $run/$1.born && $(born "$(<"$run/$1.pid")") == $(<"$run/$1.born") ]]; }

# await SECONDS NAME COMMAND...: tries COMMAND until it succeeds, as long as the program NAME runs.
await() {
  local end=$((SECONDS + $1)) name=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS >= end)) || ! alive "$name"; then
      echo "gave up waiting for $name: $*" >&2
      tail -n 20 "$log/$name.log" >&2
      return 1
    fi
    sleep 0.1
  done
}

# alone: one command at a time changes the cluster; the programs that it starts do not hold the lock.
alone() {
  exec 9>"$dir/lock"
  flock 9
}

# settle: keeps what the cluster was started with.
settle() {
  local s
  for s in NETNS CGROUP NODE PORT ETCD_PORT KCM_PORT SCHED_PORT; do printf '%s=%q\n' "$s" "${!s}"; done >"$dir/settings"
}

namespace() {
  [[ -n $NETNS && ! -e /run/netns/$NETNS ]] || return 0
  (lock_machine && ip netns add "$NETNS")
  ip -n "$NETNS" link set lo up
  ip -n "$NETNS" addr add "$address/32" dev lo
  ip -n "$NETNS" addr add "$service_ip/32" dev lo                # pods reach kube-apiserver without any rule
  ip -n "$NETNS" route add "$service_cidr" dev lo src "$address" # kube-proxy can rewrite what starts here, too
}

up() {
  [[ -x $bin/kube-apiserver ]] || { echo "the cluster is not built: make cluster" >&2; return 1; }
  mkdir -p "$run" "$log"
  alone
  settle
  namespace
  [[ -s $pki/sa.pub ]] || "$bin/pki" -dir "$pki" -server "https://$address:$PORT" \
    -addresses "127.0.0.1,$service_ip,$address" -node "$NODE" -node-address "$address"
  etcd
  apiserver
  controllers
  await 300 kube-controller-manager kubectl -n default get serviceaccount default # no pod can be made before
}

etcd() {
  local peer=http://127.0.0.1:$((ETCD_PORT + 1)) client=http://127.0.0.1:$ETCD_PORT
  start etcd "$bin/etcd" --data-dir "$dir/etcd" --unsafe-no-fsync \
    --listen-client-urls "$client" --advertise-client-urls "$client" \
    --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer"
}

apiserver() {
  # on loopback there is no address that could be published in the Service "kubernetes"
  local net=(--bind-address=127.0.0.1 --advertise-address=127.0.0.1 --endpoint-reconciler-type=none)
  # with routing, aggregated servers are dialled at their pods; without it a Service of type ExternalName will do
  [[ -z $NETNS ]] || net=(--bind-address=0.0.0.0 --advertise-address="$address" --enable-aggregator-routing=true)
  start kube-apiserver "$bin/kube-apiserver" "${net[@]}" --secure-port="$PORT" \
    --etcd-servers="http://127.0.0.1:$ETCD_PORT" --service-cluster-ip-range="$service_cidr" \
    --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" --client-ca-file="$pki/ca.crt" \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
    --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$pki/sa.pub" \
    --service-account-signing-key-file="$pki/sa.key" \
    --requestheader-client-ca-file="$pki/front-proxy-ca.crt" --requestheader-allowed-names=front-proxy-client \
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
    --requestheader-uid-headers=X-Remote-Uid --requestheader-extra-headers-prefix=X-Remote-Extra- \
    --proxy-client-cert-file="$pki/front-proxy-client.crt" --proxy-client-key-file="$pki/front-proxy-client.key" \
    --kubelet-certificate-authority="$pki/ca.crt" --kubelet-client-certificate="$pki/apiserver-kubelet-client.crt" \
    --kubelet-client-key="$pki/apiserver-kubelet-client.key" --kubelet-preferred-address-types=InternalIP
  await 300 kube-apiserver kubectl get --raw /readyz
}

controllers() {
  local config=$pki/controller-manager.kubeconfig
  start kube-controller-manager "$bin/kube-controller-manager" \
    --kubeconfig="$config" --authentication-kubeconfig="$config" --authorization-kubeconfig="$config" \
    --bind-address=127.0.0.1 --secure-port="$KCM_PORT" --cert-dir="$dir/controller-manager" --leader-elect=false \
    --root-ca-file="$pki/ca.crt" --service-account-private-key-file="$pki/sa.key" --use-service-account-credentials
  config=$pki/scheduler.kubeconfig
  start kube-scheduler "$bin/kube-scheduler" \
    --kubeconfig="$config" --authentication-kubeconfig="$config" --authorization-kubeconfig="$config" \
    --bind-address=127.0.0.1 --secure-port="$SCHED_PORT" --cert-dir="$dir/scheduler" --leader-elect=false
}

# What kubelet changes on the whole machine: the first node keeps what was, the last one puts it back.
machine=/run/platform-test-cluster
sysctls=(vm.overcommit_memory kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys kernel.keys.root_maxbytes)

node() {
  [[ -n $NETNS ]] || { echo "a node needs root and NETNS, from \"up\" on" >&2; return 1; }
  alone
  keep_sysctls
  (inside sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward')
  cgroups
  start node env CLUSTER_DIR="$dir" BIN="$bin" IMG="$img" NODE="$NODE" ADDRESS="$address" POD_CIDR="$pod_cidr" CGROUP="$cgroup" \
    unshare --mount --pid --fork --kill-child=KILL --mount-proc "$here/node.sh"
  # the limits of connection tracking are the machine's; kube-proxy leaves them alone
  start kube-proxy env PATH="$bin:$PATH" "$bin/kube-proxy" --kubeconfig="$pki/kube-proxy.kubeconfig" --proxy-mode=nftables \
    --hostname-override="$NODE" --cluster-cidr="$pod_cidr" \
    --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0
  dns
  volumes
  await 300 node kubectl wait --for=condition=Ready --timeout=1s "node/$NODE"
}

# lock_machine: the folder goes with the last node, so whoever waited for the lock may have to make it again.
lock_machine() {
  until mkdir -p "$machine/nodes" && exec 8>"$machine/lock" && flock 8 && [[ /proc/self/fd/8 -ef $machine/lock ]]; do :; done
}

keep_sysctls() (
  lock_machine
  touch "$machine/nodes/$NETNS"
  [[ ! -s $machine/sysctls ]] || return 0
  for s in "${sysctls[@]}"; do echo "$s=$(<"/proc/sys/${s//.//}")"; done >"$machine/sysctls"
)

restore_machine() (
  [[ -d $machine ]] || return 0
  lock_machine
  rm -f "$machine/nodes/$NETNS"
  for n in "$machine"/nodes/*; do [[ ! -e /run/netns/${n##*/} ]] || return 0; done
  [[ ! -s $machine/sysctls ]] || while IFS='=' read -r s v; do echo "$v" >"/proc/sys/${s//.//}"; done <"$machine/sysctls"
  # "ip netns add" makes this folder, if it is missing, and mounts it upon itself
  [[ ! -d /run/netns || -n $(ls -A /run/netns) ]] || { umount /run/netns && rmdir /run/netns; } 2>/dev/null || true
  rm -rf "$machine"
)

# dns: the name server of pods, at the node's address.
dns() {
  kubectl apply --server-side -f "$here/dns.yaml" >/dev/null
  cat >"$dir/Corefile" <<COREFILE
cluster.local 10.in-addr.arpa {
  bind $address
  errors
  kubernetes {
    kubeconfig $pki/dns.kubeconfig
    ttl 1
  }
}
COREFILE
  start dns "$bin/dns" -conf "$dir/Corefile"
}

# cgroups: in version 1 kubelet wants its root cgroup in every hierarchy.
cgroups() {
  [[ $cgroup != / ]] || return 0
  local d f
  for d in /sys/fs/cgroup/*; do
    [[ -e $d/tasks ]] || continue
    mkdir -p "$d$cgroup"
    for f in cpuset.cpus cpuset.mems; do
      [[ ! -e $d/$f ]] || cat "$d/$f" >"$d$cgroup/$f"
    done
  done
}

# volumes: folders of this machine as persistent volumes of the default class, any of which serves one claim.
volumes() {
  local n
  for n in 1 2 3 4 5 6 7 8; do
    mkdir -p "$dir/volumes/$n"
    chmod 0777 "$dir/volumes/$n" # such volumes do not get the owner that a pod asks for
    cat <<YAML
apiVersion: v1
kind: PersistentVolume
metadata: {name: volume-$n}
spec:
  storageClassName: standard
  capacity: {storage: 20Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: "$dir/volumes/$n", type: Directory}
---
YAML
  done >"$dir/volumes.yaml"
  cat >>"$dir/volumes.yaml" <<YAML
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: standard, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
YAML
  kubectl apply --server-side -f "$dir/volumes.yaml" >/dev/null
}

# finish NAME...: SIGTERM, and SIGKILL for what is still there two seconds later: nothing here is worth more.
finish() {
  local n left
  for n in "$@"; do ! alive "$n" || kill "$(<"$run/$n.pid")" 2>/dev/null || true; done
  for _ in {1..20}; do
    left=
    for n in "$@"; do ! alive "$n" || left=1; done
    [[ -n $left ]] || break
    sleep 0.1
  done
  for n in "$@"; do
    ! alive "$n" || kill -KILL "$(<"$run/$n.pid")" 2>/dev/null || true
    rm -f "$run/$n.pid" "$run/$n.born"
  done
}

# node-down: SIGKILL for the node's first process, and so for all of its processes.
node_down() {
  alone
  ! alive node || kill -KILL "$(<"$run/node.pid")"
  finish node
}

# down works without the folder, too, if it knows the name of the network namespace.
down() {
  local names=() code=0
  if [[ -d $run ]]; then
    alone
    mapfile -t names < <(cd "$run" && find . -name '*.pid' -printf '%T@ %f\n' | sort -rn | sed 's/.* //; s/\.pid$//')
    finish "${names[@]}" # the latest first
  fi
  [[ -n $NETNS ]] || return 0
  remove_namespace || code=1
  remove_cgroups || code=1
  restore_machine
  return "$code"
}

# remove_namespace ends whatever else runs in the network namespace: what tests started there, and "exec". It would keep the namespace.
remove_namespace() {
  [[ -e /run/netns/$NETNS ]] || return 0
  if [[ $(stat -Lc %i /proc/self/ns/net) == $(stat -c %i "/run/netns/$NETNS") ]]; then
    echo "this runs inside the network namespace $NETNS, which cannot be removed from there" >&2
    return 1
  fi
  local pids
  while pids=$(ip netns pids "$NETNS"); [[ -n $pids ]]; do
    # shellcheck disable=SC2086
    kill -KILL $pids 2>/dev/null || true
    sleep 0.1
  done
  ip netns del "$NETNS"
}

# remove_cgroups: a cgroup can go once the last process in it is gone, which takes a moment.
remove_cgroups() {
  [[ $cgroup != / ]] || return 0
  local d left
  for _ in {1..3000}; do
    left=
    for d in /sys/fs/cgroup/*"$cgroup"; do
      [[ ! -d $d ]] || find "$d" -depth -type d -exec rmdir {} + 2>/dev/null || left=$d
    done
    [[ -n $left ]] || break
    sleep 0.1
  done
  [[ -z $left ]] || { echo "a process keeps the cgroup $left" >&2; return 1; }
  # containerd's own, which other clusters may still use
  for d in /sys/fs/cgroup/*/k8s.io; do [[ ! -d $d ]] || find "$d" -depth -type d -exec rmdir {} + 2>/dev/null || true; done
}

delete() {
  down
  for _ in {1..3000}; do
    rm -rf "$dir" 2>/dev/null && return
    sleep 0.1 # the last processes of a node are still going
  done
  rm -rf "$dir"
}

follow() {
  local folder
  folder=$(identity)
  tail --pid="$1" -f /dev/null
  [[ $(identity) == "$folder" ]] || return 0 # it is gone, and perhaps another cluster has one of its name
  exec "$here/cluster.sh" delete # with the settings of now
}

# identity is of the folder itself, whatever becomes of what is in it.
identity() { stat -c '%d %i %W' "$dir" 2>/dev/null || true; }

status() {
  local f n
  for f in "$run"/*.pid; do
    [[ -e $f ]] || continue
    n=$(basename "$f" .pid)
    if alive "$n"; then
      awk -v n="$n" '/VmRSS/ {printf "%-24s up %5d MiB\n", n, $2 / 1024}' "/proc/$(<"$f")/status"
    else
      printf '%-24s down\n' "$n"
    fi
  done
}

load() {
  local tarball
  for tarball in "$@"; do
    "$bin/ctr" -a "$dir/node/containerd.sock" -n k8s.io images import "$tarball"
  done
}

pin() {
  local image digest ctr=("$bin/ctr" -a "$dir/node/containerd.sock" -n k8s.io images)
  for image in "$@"; do
    digest=$("${ctr[@]}" list "name==$image" | awk 'NR == 2 {print $3}')
    [[ $digest == sha256:* ]] || { echo "no image $image is loaded" >&2; return 1; }
    "${ctr[@]}" tag --force "$image" "${image%:*}@$digest" >/dev/null
    echo "${image%:*}@$digest"
  done
}

command=${1:-}
shift || true
case $command in
  up | node | down | delete | status) "$command" ;;
  node-down) node_down ;;
  load | pin | kubectl | follow) "$command" "$@" ;;
  exec) inside "$@" ;;
  *) echo "usage: $0 up|node|node-down|load|pin|kubectl|exec|status|down|delete|follow" >&2; exit 2 ;;
esac
