#!/usr/bin/env bash
# Copyright The Platform Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the console's page from pkg/console/web into pkg/console/dist, or into the directory that is given. The result
# depends on the sources alone. It needs Go and no npm: esbuild is a Go tool, and foreign scripts are vendored.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
web=$root/pkg/console/web
out=$(realpath -m -- "${1:-$root/pkg/console/dist}")
cd "$web"
(cd vendor && sha256sum --quiet -c SHA256SUMS)
rm -rf "$out"
mkdir -p "$out"
# The target says which browsers are supported: those of the last three years.
go tool -modfile="$root/hack/tools/go.mod" esbuild src/main.tsx --bundle --minify --format=esm --splitting --charset=utf8 \
  --target=es2022,chrome115,firefox115,safari17 --entry-names=app-[hash] --chunk-names=chunk-[hash] --legal-comments=none \
  --jsx=automatic --jsx-import-source=preact \
  --alias:preact=./vendor/preact.mjs --alias:preact/hooks=./vendor/hooks.mjs --alias:preact/jsx-runtime=./vendor/jsx-runtime.mjs \
  --alias:@preact/signals=./vendor/signals.mjs --alias:@preact/signals-core=./vendor/signals-core.mjs \
  --outdir="$out" --log-level=warning
# Names have digests, so that browsers keep the files and ask for the page alone. Scripts of views that are read later import the page's
# own script (views/area), so all of it is one chunk. The entry only imports that, and is not needed.
one() { (cd "$out" && echo "$1"-*."$2"); }
app=$(sed -nE 's|^import"\./(chunk-[0-9A-Z]+\.js)";?$|\1|p' "$out/$(one app js)")
[ -n "$app" ] || { echo "console.sh: the page's own script is not one chunk" >&2 && exit 1; }
rm "$out/$(one app js)" "$out"/chunk-*.css # the styles are there twice
# What runs before the first paint is a script of its own, which shares nothing with the others.
go tool -modfile="$root/hack/tools/go.mod" esbuild src/boot.ts --bundle --minify --format=iife --charset=utf8 \
  --target=es2022,chrome115,firefox115,safari17 --entry-names=boot-[hash] --legal-comments=none --outdir="$out" --log-level=warning \
  --define:APP="\"/console/$app\""
sed -e "s/app\.js/$app/; s/app\.css/$(one app css)/; s/boot\.js/$(one boot js)/" src/index.html >"$out/index.html"
cat vendor/*.LICENSE >"$out/licenses.txt"
