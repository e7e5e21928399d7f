#!/usr/bin/env bash
# Copyright The Platform Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds Gitea, the code host of the tests, from its Go module. It is kept in a cache under a hash of all that it is made of, so the
# minutes are spent once on a machine; _output/forge is a link to it. It needs a C compiler for SQLite.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
module=code.gitea.io/gitea
export CGO_ENABLED=1 GOFLAGS=-trimpath

# sources prints everything that decides what is built.
sources() {
  go version
  cat "$here/build.sh" "$here"/gitea/go.{mod,sum}
}
hash=$(sources | sha256sum | cut -c1-16)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/platform-test-forge/$hash
mkdir -p "$cache" "$root/_output"

# one build at a time: another waits here and then finds everything built
exec 9>"$cache/lock"
flock 9

if [[ ! -x $cache/gitea ]]; then
  cd "$here/gitea"
  start=$SECONDS
  version=$(go list -m -f '{{.Version}}' "$module")
  # The program reads its templates and lists of options at run time. They are part of the module, and copied, because the cache of
  # modules may be emptied.
  go mod download "$module" # otherwise it has no folder yet
  dir=$(go list -m -f '{{.Dir}}' "$module")
  rm -rf "$cache/static"
  mkdir "$cache/static"
  cp -r "$dir/options" "$dir/templates" "$dir/public" "$cache/static/"
  chmod -R u+w "$cache/static"
  go build -buildvcs=false -tags 'sqlite sqlite_unlock_notify' -ldflags "-s -w -X main.Version=${version#v}" -o "$cache/gitea.tmp" "$module"
  mv "$cache/gitea.tmp" "$cache/gitea"
  echo "built gitea $version in $((SECONDS - start)) s, $(($(stat -c %s "$cache/gitea") >> 20)) MiB"
fi
ln -sfn "$cache" "$root/_output/forge"
