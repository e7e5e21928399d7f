// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/server/facade"
	"github.com/platform-ai/platform/pkg/server/registry/core"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// noRow are subresources without a row of the REST facade: the contract documents no REST path for them.
var noRow = []string{"tasks/calls", "tasks/delta", "tasks/proxy", "tasks/codehost", "tasks/reply", "tasks/cancel", "tasks/detach", "tasks/transactiontoken", "sessions/cancel", "memories/restore", "codehostdeliveries/replay", "gatewayevents/replay", "gatewaydeliveries/abandon"}

// controllersOnly are subresources that no role of users has, but that of the controller.
var controllersOnly = []string{"repositorymonitors/codehost", "repositorymonitors/links", "gateways/probe", "gatewaydeliveries/send", "gatewayevents/decide", "connections/release"}

// definitions returns the resources of the group, to be read only.
func definitions() []resource.Resource {
	return core.Definitions()
}

// TestSubresources: a role of the manifests grants every subresource, the REST facade has a row for it, and the guard of workers
// decides about it if workers may use it.
func TestSubresources(t *testing.T) {
	roles, guard := read(t, "manifests/base/clusterroles.yaml"), folderText(t, "pkg/server/registry/guard", false)
	var paths strings.Builder // of all rows
	for _, row := range facade.Rows() {
		for _, n := range row.Native {
			paths.WriteString(n.Path + "\n")
		}
	}
	var found []string
	for _, r := range definitions() {
		for _, g := range r.Grants() {
			found = append(found, g.Resource)
			if !strings.Contains(roles, "- "+g.Resource+"\n") {
				t.Errorf("%s: no role of manifests/base/clusterroles.yaml grants it", g.Resource)
			}
			plural, short, _ := strings.Cut(g.Resource, "/")
			row, excused := regexp.MustCompile(plural+`/[:\w]+/`+short+`\b`).MatchString(paths.String()), slices.Contains(noRow, g.Resource)
			switch {
			case !row && !excused:
				t.Errorf("%s: no row of pkg/server/facade names it", g.Resource)
			case row && excused:
				t.Errorf("%s has a row: remove it from the list noRow", g.Resource)
			}
			if slices.Contains(slices.Concat(g.Readers, g.Creators), resource.Worker) && !strings.Contains(guard, `"`+short+`"`) {
				t.Errorf("%s: workers may use it, but pkg/server/registry/guard decides nothing about it", g.Resource)
			}
		}
	}
	if len(found) < 25 {
		t.Errorf("found only %v", found)
	}
	for _, name := range noRow {
		if !slices.Contains(found, name) {
			t.Errorf("the list noRow names %s, which is not served", name)
		}
	}
}

// TestSubresourcesHaveRoles: every subresource says which roles may read and create it.
func TestSubresourcesHaveRoles(t *testing.T) {
	plural := regexp.MustCompile(`Resource:\s+v1alpha1\.SchemeGroupVersion\.WithResource\("(\w+)"\)`)
	files, err := filepath.Glob(filepath.Join(root, registryFolder, "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		folder := registryFolder + "/" + filepath.Base(filepath.Dir(file))
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			c, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			f := members(c)
			if f["Name"] == "" || f["Get"]+f["Create"]+f["Connect"] == "" {
				return true
			}
			rel, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			p := plural.FindStringSubmatch(read(t, filepath.ToSlash(rel)))
			if p == nil { // a file beside the one that defines the kind of the folder
				p = plural.FindStringSubmatch(read(t, folder+"/"+filepath.Base(folder)+".go"))
			}
			if p == nil {
				t.Errorf("%s: no resource is named", folder)
				return true
			}
			name := p[1] + "/" + f["Name"]
			if slices.Contains(controllersOnly, strings.ReplaceAll(name, `"`, "")) {
				found++
				return true
			}
			if (f["Get"] != "" || strings.Contains(f["Methods"], "MethodGet")) && f["Readers"] == "" {
				t.Errorf("%s is read, but lacks Readers", name)
			}
			if (f["Create"] != "" || strings.Contains(f["Methods"], "MethodPost")) && f["Creators"] == "" {
				t.Errorf("%s is created, but lacks Creators", name)
			}
			found++
			return true
		})
	}
	if found < 10 {
		t.Errorf("found only %d", found)
	}
}

// members is the source of each value of a composite literal, by its key.
func members(c *ast.CompositeLit) map[string]string {
	m := map[string]string{}
	for _, e := range c.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if key, ok := kv.Key.(*ast.Ident); ok {
			var text strings.Builder
			_ = printer.Fprint(&text, token.NewFileSet(), kv.Value)
			m[key.Name] = text.String()
		}
	}
	return m
}
