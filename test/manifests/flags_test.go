// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/platform-ai/platform/test/kit"
)

// TestFlags checks that each program has the flags that the manifests set.
func TestFlags(t *testing.T) {
	known := map[string]map[string]bool{}
	for _, overlay := range overlays() {
		for _, p := range programs(t, render(t, kustomization(t, overlay, everything(), ""))) {
			name, _, _ := strings.Cut(path.Base(p.spec["image"].(string)), ":")
			if known[name] == nil {
				known[name] = flagsOf(t, name)
			}
			args, _, err := unstructured.NestedStringSlice(p.spec, "args")
			if err != nil {
				t.Fatal(err)
			}
			if len(args) == 0 {
				t.Errorf("%s of %s has no arguments", name, overlay)
			}
			for _, arg := range args {
				flag, _, hasValue := strings.Cut(arg, "=")
				if !hasValue {
					t.Errorf("%s: argument %q is not of the form --flag=value", p.workload, arg)
				}
				if !known[name][flag] {
					t.Errorf("%s: %s has no flag %s", p.workload, name, flag)
				}
			}
		}
	}
}

// flagsOf are the flags in the help of a program.
func flagsOf(t *testing.T, name string) map[string]bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), kit.Bin(t, name), "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("%s --help: %v\n%s", name, err, out)
	}
	flags := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\s+(?:-\w, )?(--[a-z0-9-]+)`).FindAllStringSubmatch(string(out), -1) {
		flags[m[1]] = true
	}
	if len(flags) == 0 {
		t.Fatalf("%s --help tells of no flags:\n%s", name, out)
	}
	return flags
}
