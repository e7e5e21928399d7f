// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
)

// maxElement and maxPath are how long the name of a file and its whole path may be on the machines that skills are written on, in
// bytes. The path is below the working folder of a run.
const maxElement, maxPath = 255, 1024

// validate refuses files that cannot lie beside each other in a folder: a run would fail on them.
func validate(_ context.Context, s *v1alpha1.Skill) field.ErrorList {
	var errs field.ErrorList
	at, files := field.NewPath("spec", "content", "files"), s.Spec.Content.Files
	for _, name := range slices.Sorted(maps.Keys(files)) {
		key := at.Key(name)
		if wrong := rule.RelativePath(name, key); len(wrong) > 0 {
			errs = append(errs, wrong...)
			continue
		}
		if path.Clean(name) != name || name == "." || strings.ContainsRune(name, 0) {
			errs = append(errs, field.Invalid(key, name, "must name a file: without empty elements, a slash at the end and NUL"))
			continue
		}
		if len(name) > maxPath {
			errs = append(errs, field.TooLong(key, name, maxPath))
		}
		for element := range strings.SplitSeq(name, "/") {
			if len(element) > maxElement {
				errs = append(errs, field.Invalid(key, name, fmt.Sprintf("each element may have at most %d bytes", maxElement)))
			}
		}
		for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
			if _, both := files[folder]; both {
				errs = append(errs, field.Invalid(key, name, fmt.Sprintf("%q is a file, so it cannot be a folder", folder)))
			}
		}
	}
	return errs
}
