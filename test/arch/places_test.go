// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	apiFolder      = "pkg/apis/core/v1alpha1"
	registryFolder = "pkg/server/registry/core"
)

// noTestsYet are resources that have no tests of their own, neither in their folder nor, in files that begin with their name, in
// the folder above, where one program tests all Definitions. The list may only shrink.
var noTestsYet = []string{}

// noExample are kinds that users do not write, because the platform makes them.
var noExample = []string{"approval", "catalogtool", "codehostdelivery", "connection", "toolcall", "tooleffect"}

// ofControllers is the resource that only a controller may use, by its own role in manifests/base.
const ofControllers = "usagelinks"

// TestKinds: every kind that is served is present in all places that CONTRIBUTING.md names.
func TestKinds(t *testing.T) {
	register := read(t, apiFolder+"/register.go")
	all := read(t, registryFolder+"/all.go")
	entries, err := os.ReadDir(filepath.Join(root, registryFolder))
	if err != nil {
		t.Fatal(err)
	}
	definition := regexp.MustCompile(`Kind:\s+"(\w+)"`)
	kinds := 0
	for _, e := range entries {
		name := e.Name()
		if !e.IsDir() || name == "testdata" {
			continue
		}
		source := folderText(t, registryFolder+"/"+name, false)
		kind := ""
		for _, m := range definition.FindAllStringSubmatch(source, -1) {
			if strings.EqualFold(m[1], name) {
				kind = m[1]
			}
		}
		if kind == "" {
			t.Errorf("%s/%s has no resource.Definition of a kind of that name", registryFolder, name)
			continue
		}
		kinds++
		if !exists(apiFolder + "/" + name + "_types.go") {
			t.Errorf("kind %s: %s/%s_types.go is missing", kind, apiFolder, name)
		}
		if !strings.Contains(register, "&"+kind+"{}") || !strings.Contains(register, "&"+kind+"List{}") && !strings.Contains(source, "resource.Action[") && !strings.Contains(source, "resource.Exchange[") {
			t.Errorf("kind %s: %s/register.go lacks it or its list", kind, apiFolder)
		}
		if !strings.Contains(all, registryFolder+`/`+name+`"`) || !strings.Contains(all, name+".") {
			t.Errorf("kind %s: %s/all.go lacks it", kind, registryFolder)
		}
		example := exists("artifacts/examples/"+name+".yaml") || exists("artifacts/examples/create/"+name+".yaml")
		if example == slices.Contains(noExample, name) {
			t.Errorf("kind %s: artifacts/examples or its folder create has %s.yaml: %v; the list noExample says otherwise", kind, name, example)
		}
		tested := folderText(t, registryFolder+"/"+name, true) != "" || matches(t, registryFolder+"/"+name+"_*test.go")
		if tested == slices.Contains(noTestsYet, name) {
			t.Errorf("kind %s: tests in %s/%s, or beside it in %[3]s_*test.go: %v; the list noTestsYet says otherwise", kind, registryFolder, name, tested)
		}
	}
	if kinds == 0 {
		t.Error("no kind was found")
	}
	for _, r := range definitions() { // also those that share a folder with another kind
		g := r.KindGrant()
		if granted := len(slices.Concat(g.Readers, g.Creators, g.Makers, g.Writers)) > 0; granted == (g.Resource == ofControllers) {
			t.Errorf("resource %s: its Definition gives it to a role: %v", g.Resource, granted)
		}
	}
	for _, name := range append(slices.Clone(noTestsYet), noExample...) {
		if !exists(registryFolder + "/" + name) {
			t.Errorf("a list of exceptions names %s, which is not served", name)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(filepath.Join(root, path))
	return err == nil
}

func matches(t *testing.T, pattern string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return len(files) > 0
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// folderText is all Go files of a folder, or all its tests.
func folderText(t *testing.T, folder string, tests bool) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") == tests {
			rel, err := filepath.Rel(root, f)
			if err != nil {
				t.Fatal(err)
			}
			text.WriteString(read(t, filepath.ToSlash(rel)))
		}
	}
	return text.String()
}
