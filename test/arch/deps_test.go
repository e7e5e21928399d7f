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
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			got := dependencies(t, e.Name())
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

// dependencies are the modules that a program links, beside this one.
func dependencies(t *testing.T, program string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if .Module}}{{.Module.Path}}{{end}}", "./cmd/"+program)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64") // the same list on every machine
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -deps ./cmd/%s: %v", program, err)
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if in := strings.TrimSpace(line); in != "" && in != module {
			found[in] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
