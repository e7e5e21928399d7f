// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentprogram

import (
	"fmt"
	"regexp"

	"github.com/spf13/pflag"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/envflag"
)

// Images are the images in which coding agents run in a cluster, by type. A type without one does not run there.
type Images map[v1alpha1.AgentRuntimeType]*string

// imageFlag is the name of the flag with the image of a type.
func imageFlag(t v1alpha1.AgentRuntimeType) string { return "acp-" + string(t) + "-runtime-image" }

// AddFlags binds the image of each type to a flag.
func (i Images) AddFlags(fs *pflag.FlagSet) {
	for _, t := range types() {
		i[t] = new(string)
		(&envflag.Set{FlagSet: fs}).Text(i[t], imageFlag(t), "", fmt.Sprintf("image in which coding agents of type %s run, as NAME@sha256:DIGEST; it has the program %s in its PATH, and the worker program is put into it; "+
			"empty means that tasks with such an agent are refused", t, programs()[t].name))
	}
}

// Check returns an error if one of the images is not pinned by its digest.
func (i Images) Check() error {
	for _, t := range types() {
		if image := i.Of(t); image != "" && !Pinned(image) {
			return fmt.Errorf("--%s: %q: must be pinned by its digest, as NAME@sha256:DIGEST, so that nobody can replace it", imageFlag(t), image)
		}
	}
	return nil
}

// Of returns the image of a type; empty if none is named.
func (i Images) Of(t v1alpha1.AgentRuntimeType) string {
	if image := i[t]; image != nil {
		return *image
	}
	return ""
}

// Lacks returns why coding agents of a type cannot be run in a cluster, and what to do; empty if an image is named. Whether the image
// has the program is known only when it runs.
func (i Images) Lacks(t v1alpha1.AgentRuntimeType) string {
	p, ok := programs()[t]
	switch {
	case !ok:
		return fmt.Sprintf("the coding agent %q is not known; known are %s", t, names())
	case i.Of(t) == "":
		return fmt.Sprintf("no image is named in which %s runs: build one that has the program %s (%s), and name it with the controller's --%s", t, p.name, p.install, imageFlag(t))
	}
	return ""
}

var pinned = regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9._:/-]*@sha256:[0-9a-f]{64}$`)

// Pinned reports whether an image is named by its digest, so that what runs cannot be replaced.
func Pinned(image string) bool { return pinned.MatchString(image) }
