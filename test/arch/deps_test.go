// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the lists of dependencies anew")

// TestDependencies: the list of modules that each program links changes only on purpose. The rules "only" of layers.txt
// look at direct imports; this test covers what programs link through others.
func TestDependencies(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(root, "cmd"))
	if err != nil {
		t.Fatal(err)
	}
	all := dependencies(t)
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			got := all[e.Name()]
			file := filepath.Join("testdata", "deps", e.Name()+".txt")
			if *rewrite {
				if err := os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Fields(string(data))
			for _, d := range got {
				if !slices.Contains(want, d) {
					t.Errorf("cmd/%s links %s, which %s lacks; if that is meant: go test ./test/arch -run TestDependencies -rewrite", e.Name(), d, file)
				}
			}
			for _, d := range want {
				if !slices.Contains(got, d) {
					t.Errorf("cmd/%s no longer links %s, which %s lists: go test ./test/arch -run TestDependencies -rewrite", e.Name(), d, file)
				}
			}
		})
	}
}

// TestServersAlone: only the programs that serve link the library of API servers and the database.
func TestServersAlone(t *testing.T) {
	servers := []string{"platform-apiserver", "platform-standalone"}
	lists, err := filepath.Glob(filepath.Join("testdata", "deps", "*.txt"))
	if err != nil || len(lists) == 0 {
		t.Fatalf("no lists of dependencies: %v", err)
	}
	for _, file := range lists {
		program := strings.TrimSuffix(filepath.Base(file), ".txt")
		if slices.Contains(servers, program) {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []string{"k8s.io/apiserver", "github.com/cockroachdb/pebble/v2"} {
			if slices.Contains(strings.Fields(string(data)), d) {
				t.Errorf("cmd/%s links %s, which only %v may", program, d, servers)
			}
		}
	}
}

// dependencies returns the modules that each program links, beside this one. One command lists the packages of all programs.
func dependencies(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}} {{if .Module}}{{.Module.Path}}{{else}}-{{end}} {{join .Imports \" \"}}", "./cmd/...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64") // the same list on every machine
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -deps ./cmd/...: %v", err)
	}
	linked := map[string]map[string]bool{} // the modules behind each package; packages come after those that they import
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		path, of := fields[0], map[string]bool{}
		if fields[1] != "-" && fields[1] != module {
			of[fields[1]] = true
		}
		for _, imported := range fields[2:] {
			maps.Copy(of, linked[imported])
		}
		linked[path] = of
		if program, ok := strings.CutPrefix(path, module+"/cmd/"); ok {
			all[program] = slices.Sorted(maps.Keys(of))
		}
	}
	return all
}
