// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

var digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// PinnedImage checks that an image is named by its digest, so that what runs cannot be replaced.
func PinnedImage(image string, p *field.Path) field.ErrorList {
	if image == "" || agentprogram.Pinned(image) { // an empty one has an error already
		return nil
	}
	return field.ErrorList{field.Invalid(p, image, "must be pinned by its digest: NAME@sha256:DIGEST")}
}

// IsDigest reports whether s is sha256: and 64 lower-case hexadecimal digits.
func IsDigest(s string) bool { return digest.MatchString(s) }

// Digest checks a digest, if there is one.
func Digest(s string, p *field.Path) field.ErrorList {
	if s == "" || IsDigest(s) {
		return nil
	}
	return field.ErrorList{field.Invalid(p, s, "must be sha256: and 64 hexadecimal digits")}
}

// Profile checks the digests of the profile of a runtime.
func Profile(r *v1alpha1.RuntimeProfile, p *field.Path) field.ErrorList {
	errs := Digest(r.Digest, p.Child("digest"))
	errs = append(errs, Digest(r.PolicyDigest, p.Child("policyDigest"))...)
	errs = append(errs, Digest(r.ConfigurationDigest, p.Child("configurationDigest"))...)
	for _, name := range slices.Sorted(maps.Keys(r.AdapterDigests)) {
		errs = append(errs, Digest(r.AdapterDigests[name], p.Child("adapterDigests").Key(name))...)
	}
	return errs
}
