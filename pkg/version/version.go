// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version returns the version of the running program.
package version

import "runtime/debug"

// version is set by the linker, from the tag of the source (see the Makefile).
var version string

// Version returns the version of the running program: the one that the linker set, otherwise the module
// version, otherwise the source revision of the build, otherwise "devel".
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "-dirty"
			}
		}
	}
	if revision == "" {
		return "devel"
	}
	return revision + dirty
}
