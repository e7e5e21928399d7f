#!/usr/bin/env bash
# Copyright The Platform Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the programs of the test cluster from Go modules:   build.sh control|node|all
# "control" is what the control plane needs, "node" what a node needs besides.
# They are kept in a cache under a hash of all that they are made of, so the
# minutes are spent once on a machine; _output/cluster/{bin,img} are links to it.
# Nothing is installed: what is Debian's is unpacked into the cache.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
what=${1:-all}
export CGO_ENABLED=0 # all programs but runc are static without help

# sources prints everything that decides what is built.
sources() {
  go version
  cat "$here/build.sh" "$here"/tools/*/go.{mod,sum} "$here"/{pki,pause,tools/dns}/*.go "$root"/hack/images/go.{mod,sum} "$root"/hack/images/*.go
}
hash=$(sources | sha256sum | cut -c1-16)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/platform-test-cluster/$hash
mkdir -p "$cache/bin/cni" "$cache/img" "$root/_output/cluster"

# one build at a time: another waits here and then finds everything built
exec 9>"$cache/lock"
flock 9

# build MODULE OUTPUT PACKAGE [LDFLAGS [ARGS...]]
build() {
  local module=$1 out=$2 package=$3 ldflags=${4:-} start=$SECONDS
  shift 3
  [[ $# == 0 ]] || shift
  [[ ! -x $cache/$out ]] || return 0
  (cd "$root/$module" && go build -buildvcs=false -ldflags "-s -w $ldflags" "$@" -o "$cache/$out.tmp" "$package")
  mv "$cache/$out.tmp" "$cache/$out"
  echo "built $out in $((SECONDS - start)) s, $(($(stat -c %s "$cache/$out") >> 20)) MiB"
}

# debian NAME PACKAGE...: unpacks Debian packages into the folder NAME of the cache.
debian() {
  local dir=$cache/$1
  shift
  [[ ! -e $dir ]] || return 0
  rm -rf "$dir.tmp"
  mkdir -p "$dir.tmp"
  (
    cd "$dir.tmp"
    # the lists of packages are missing on a fresh machine; only root can get them
    apt-get -qq -o APT::Sandbox::User=root download "$@" 2>/dev/null ||
      { apt-get -qq update && apt-get -qq -o APT::Sandbox::User=root download "$@"; }
    for deb in *.deb; do dpkg -x "$deb" .; done
    rm ./*.deb
  )
  mv "$dir.tmp" "$dir"
  echo "unpacked $*"
}

# version MODULE PATH: the version of a module that a tools module uses.
version() (cd "$root/$1" && go list -m -f '{{.Version}}' "$2")

# kubernetes PROGRAM...
kubernetes() {
  local v minor p pkg=k8s.io/component-base/version program
  p=test/cluster/tools/k8s
  v=$(version $p k8s.io/kubernetes)
  minor=${v#v1.}
  minor=${minor%%.*}
  # without these the programs call themselves v0.0.0, which kubectl cannot read
  for program in "$@"; do
    build $p "bin/$program" "k8s.io/kubernetes/cmd/$program" \
      "-X $pkg.gitVersion=$v -X $pkg.gitMajor=1 -X $pkg.gitMinor=$minor -X $pkg.gitTreeState=clean"
  done
}

control() {
  build . bin/pki ./test/cluster/pki
  build hack/images bin/images .
  build test/cluster/tools/k8s bin/etcd go.etcd.io/etcd/server/v3
  kubernetes kube-apiserver kube-controller-manager kube-scheduler kubectl
}

node() {
  local p=test/cluster/tools/node pkg program plugin v
  kubernetes kubelet kube-proxy
  pkg=github.com/containerd/containerd/v2
  v=$(version $p $pkg)
  for program in containerd containerd-shim-runc-v2 ctr; do
    build $p bin/$program $pkg/cmd/$program "-X $pkg/version.Version=$v"
  done
  pkg=github.com/containernetworking/plugins/plugins
  for plugin in main/ptp ipam/host-local meta/portmap; do build $p "bin/cni/${plugin#*/}" $pkg/$plugin; done
  build test/cluster/tools/dns bin/dns .
  runc $p
  rules
  build . img/pause ./test/cluster/pause
  [[ -s $cache/img/pause.tar ]] || "$cache/bin/images" -name platform.ai/test-pause:1 -certificates '' \
    -entrypoint /pause -o "$cache/img/pause.tar" "$cache/img/pause=/pause"
  shell
}

# shell makes an image with bash and the usual small programs, for tests.
shell() {
  [[ ! -s $cache/img/test-shell.tar ]] || return 0
  local busybox=$cache/busybox/bin/busybox links=() name
  debian busybox busybox-static
  debian bash bash-static
  for name in $("$busybox" --list); do links+=("@busybox=/bin/$name"); done
  "$cache/bin/images" -name platform.ai/test-shell:dev -certificates '' -entrypoint /bin/sh \
    -o "$cache/img/test-shell.tar" "${links[@]}" "$busybox=/bin/busybox" "$cache/bash/bin/bash-static=/bin/bash"
}

# runc needs C, and libseccomp: pods run with the runtime's default profile.
runc() {
  [[ ! -x $cache/bin/runc ]] || return 0
  local lib
  debian seccomp libseccomp-dev
  lib=$cache/seccomp/usr/lib/$(gcc -print-multiarch)
  CGO_ENABLED=1 PKG_CONFIG_PATH=$lib/pkgconfig CGO_CFLAGS=-I$cache/seccomp/usr/include CGO_LDFLAGS="-L$lib -l:libseccomp.a" \
    build "$1" bin/runc github.com/opencontainers/runc "-extldflags -static" -tags seccomp,netgo,osusergo
}

# rules gives kube-proxy nft, to set its rules with; where the machine has none, Debian's with its libraries.
rules() {
  [[ ! -x $cache/bin/nft ]] || return 0
  if type -P nft >/dev/null; then
    ln -s "$(type -P nft)" "$cache/bin/nft"
    return
  fi
  debian nftables nftables libnftables1 libnftnl11 libmnl0 libxtables12 libjansson4 libedit2 libbsd0 libmd0 libgmp10 libtinfo6
  local lib
  lib=$cache/nftables/usr/lib/$(gcc -print-multiarch):$cache/nftables/lib/$(gcc -print-multiarch)
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s/nftables/usr/sbin/nft "$@"\n' "$lib" "$cache" >"$cache/bin/nft.tmp"
  chmod +x "$cache/bin/nft.tmp"
  "$cache/bin/nft.tmp" --version
  mv "$cache/bin/nft.tmp" "$cache/bin/nft"
}

case $what in
  control) control ;;
  node) node ;;
  all) control; node ;;
  *) echo "usage: $0 control|node|all" >&2; exit 2 ;;
esac
ln -sfn "$cache/bin" "$root/_output/cluster/bin"
ln -sfn "$cache/img" "$root/_output/cluster/img"
