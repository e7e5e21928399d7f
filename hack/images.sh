#!/usr/bin/env bash
# Copyright The Platform Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes images as tarballs in the OCI layout, built only from our own programs:
#   hack/images.sh platform-worker ...      one _output/images/NAME.tar each
# IMAGE_PREFIX and IMAGE_TAG form the images' names. IMAGE_GOFLAGS are passed to
# "go build"; with -trimpath a program does not depend on the directory in which
# it is built. GOARCH is the architecture, SOURCE_DATE_EPOCH the time of the images.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

prefix=${IMAGE_PREFIX-platform.ai/} tag=${IMAGE_TAG:-dev}
out=_output/images
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
version=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo "$tag")}
export CGO_ENABLED=0 GOOS=linux

# programs IMAGE: prints the packages whose programs the image contains; the image runs the first one.
programs() {
  case $1 in
    platform-apiserver) echo ./cmd/platform-apiserver ./cmd/platform ;; # the latter for backups
    platform-worker) echo ./cmd/platform-worker ./cmd/platform-workspace ;; # the latter for init containers
    platform-controller) echo ./cmd/platform-controller ./cmd/platform-workspace ;; # the latter for publications
    platform-*) echo "./cmd/$1" ;;
    test-model) echo ./test/scriptedmodel ;;
    *) echo "no image is named $1" >&2; return 1 ;;
  esac
}

# extra IMAGE: prints additional arguments of the tool.
extra() {
  case $1 in
    platform-worker) echo -user 1000:1000 ;; # the user of tasks, whose files others may share
    test-model) echo -cmd --listen -cmd 0.0.0.0:8080 -cmd --script -cmd /scripts/demo.yaml test/scriptedmodel/scripts=/scripts ;;
  esac
}

packages=()
for image in "$@"; do
  list=$(programs "$image")
  read -ra list <<<"$list"
  packages+=("${list[@]}")
done
mkdir -p "$out/bin"
# shellcheck disable=SC2086 # flags are words
go build ${IMAGE_GOFLAGS:-} -tags=grpcnotrace -ldflags "-s -w -X github.com/platform-ai/platform/pkg/version.version=$version" -o "$out/bin/" "${packages[@]}"
(cd hack/images && GOARCH='' go build -o "../../$out/bin/images" .)

for image in "$@"; do
  read -ra list <<<"$(programs "$image")"
  read -ra args <<<"$(extra "$image")"
  files=()
  for p in "${list[@]}"; do files+=("$out/bin/${p##*/}=/${p##*/}"); done
  "$out/bin/images" -name "$prefix$image:$tag" -o "$out/$image.tar" -entrypoint "/${list[0]##*/}" \
    -label "org.opencontainers.image.title=$image" -label "org.opencontainers.image.version=$version" \
    -label "org.opencontainers.image.revision=$revision" "${args[@]}" "${files[@]}"
done
