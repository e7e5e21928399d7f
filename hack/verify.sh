#!/usr/bin/env bash
# Copyright The Platform Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails and shows the difference if generated code differs from what the generators
# write, if the roles, the reference or the console's page do not match their sources,
# or if a module was changed after its download.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cd "$root"

mkdir -p "$copy/hack" "$copy/pkg/apis"
cp go.mod go.sum "$copy/"
cp hack/boilerplate.go.txt "$copy/hack/"
cp -R pkg/apis "$copy/pkg/"
hack/update-codegen.sh "$copy"

stale=0
for dir in pkg/apis pkg/generated; do
	diff -ruN "$dir" "$copy/$dir" || stale=1
done
if [ "$stale" = 1 ]; then
	echo "generated code is stale: run make generate and commit the result" >&2
	exit 1
fi
go run ./hack/reference -o "$copy/artifacts/reference"
diff -ruN artifacts/reference "$copy/artifacts/reference" || {
	echo "the reference is stale: run make generate and commit the result" >&2
	exit 1
}
go test -vet=off -ldflags=-s ./pkg/server/host/rbac -run TestManifest # it names the file and the command
hack/console.sh "$copy/dist"
diff -ruN pkg/console/dist "$copy/dist" || {
	echo "the console's page is stale: run make generate (or hack/console.sh) and commit the result" >&2
	exit 1
}
go mod verify >/dev/null
go mod tidy -diff
echo "generated code, the roles, the reference and the page are current"
