#!/usr/bin/env bash
# Copyright The Platform Authors.
# SPDX-License-Identifier: Apache-2.0

# Regenerates all generated code: zz_generated.* next to the API types,
# pkg/generated, and the reference in artifacts/reference. Tools are pinned in
# hack/tools/go.mod. With a directory as argument, which must be a copy of the
# repository, it writes the code there, but not the reference.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT

(cd "$root/hack/tools" && GOBIN="$tools" CGO_ENABLED=0 go install \
	k8s.io/code-generator/cmd/{deepcopy-gen,defaulter-gen,validation-gen,client-gen} \
	k8s.io/kube-openapi/cmd/openapi-gen)
(cd "$root" && CGO_ENABLED=0 go build -o "$tools/" ./hack/openapi ./hack/validations)
PATH="$tools:$PATH"

cd "${1:-$root}"
module=$(go list -m)
types="$module/pkg/apis/core/v1alpha1"
out="$module/pkg/generated"
header=(--go-header-file hack/boilerplate.go.txt)
libraries=(k8s.io/apimachinery/pkg/{apis/meta/v1,api/resource,runtime,util/intstr,version}
	k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1)
kubernetes=(k8s.io/api/{admissionregistration,core,rbac,authentication,authorization,coordination}/v1)

rm -f pkg/apis/core/v1alpha1/zz_generated.*.go
rm -rf pkg/generated
mkdir -p pkg/generated/openapi

deepcopy-gen "${header[@]}" --output-file zz_generated.deepcopy.go "$types"
defaulter-gen "${header[@]}" --output-file zz_generated.defaults.go "$types"

# Validation of metav1 types is generated into a package other than that of the
# types. The generator learns this only from its inputs, and it writes next to
# every input, so it gets a copy of apimachinery to write to.
cp -R "$(go list -m -f '{{.Dir}}' k8s.io/apimachinery)" "$tools/apimachinery"
chmod -R u+w "$tools/apimachinery"
export GOWORK="$tools/go.work"
go work init . "$tools/apimachinery"
validation-gen "${header[@]}" --output-file zz_generated.validations.go \
	"${libraries[@]/#/--readonly-pkg=}" --readonly-pkg=k8s.io/apimachinery/pkg/types --readonly-pkg=time \
	"$types" k8s.io/apimachinery/pkg/apis/meta/v1/validation
unset GOWORK
# A quarter of it finds no error.
rules=pkg/apis/core/v1alpha1/zz_generated.validations.go
validations <"$rules" >"$tools/rules.go"
cp "$tools/rules.go" "$rules"

# The standalone host serves some Kubernetes kinds itself, so their definitions
# are generated together with ours.
violations=$(mktemp -p "$tools")
openapi-gen "${header[@]}" --output-dir pkg/generated/openapi --output-pkg "$out/openapi" \
	--output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go \
	--report-filename "$violations" "${libraries[@]/#/--readonly-pkg=}" "${kubernetes[@]/#/--readonly-pkg=}" \
	"$types" "${libraries[@]}" "${kubernetes[@]}"
# names_match is left out, because the API spells some JSON names differently from Go's initialisms.
if grep "$module" "$violations" | grep -v names_match; then
	echo "these types break a rule of API conventions" >&2
	exit 1
fi

# Of these packages it serves some kinds only.
definitions=pkg/generated/openapi/zz_generated.openapi.go
for kinds in "schema_k8sio_api_core_v1_ ConfigMap Secret ServiceAccount Event Namespace" \
	"schema_k8sio_api_admissionregistration_v1_ ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding" \
	"schema_pkg_apis_apiextensions_v1_ JSON"; do
	# shellcheck disable=SC2086 # words
	openapi $kinds <"$definitions" >"$tools/definitions.go"
	cp "$tools/definitions.go" "$definitions"
done

client-gen "${header[@]}" --output-dir pkg/generated/clientset --output-pkg "$out/clientset" \
	--clientset-name versioned --fake-clientset=false \
	--input-base "" --input "$types"

if [ $# = 0 ]; then
	go run ./hack/reference
fi
