#!/usr/bin/env bash
# Copyright The Platform Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes a release of this commit to _output/release: an archive of all programs
# and an OCI tarball of each image for every architecture, and SHA256SUMS.
#   VERSION=v1.2.3 hack/release.sh IMAGE ...
# The output does not depend on the machine, the directory or the time, so two
# runs on one commit write the same bytes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=${VERSION:-$(git describe --tags --always --dirty)}
out=_output/release
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH CGO_ENABLED=0 GOOS=linux VERSION=$version IMAGE_TAG=$version IMAGE_GOFLAGS=-trimpath
rm -rf "$out"
mkdir -p "$out"

for arch in ${ARCHS:-amd64 arm64}; do
  export GOARCH=$arch
  name=platform_${version}_linux_$arch
  stage=$out/stage/$name
  mkdir -p "$stage"
  go build -trimpath -tags=grpcnotrace -ldflags "-s -w -X github.com/platform-ai/platform/pkg/version.version=$version" -o "$stage/" ./cmd/...
  ln -s platform "$stage/kubectl-platform"
  cp LICENSE README.md "$stage/"
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw --format=gnu \
    -C "$out/stage" -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
  if (($# > 0)); then
    hack/images.sh "$@"
    for image in "$@"; do mv "_output/images/$image.tar" "$out/${image}_${version}_linux_$arch.image.tar"; done
  fi
done
rm -rf "$out/stage"
(cd "$out" && sha256sum -- * >SHA256SUMS)
cat "$out/SHA256SUMS"
