// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests tests the folder manifests/ with the real kubectl, the real kube-apiserver and the real programs.
// Every overlay can be built with every set of components and is accepted, the Pods meet Pod Security restricted, each
// flag exists, and roles name only what exists.
package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/platform-ai/platform/test/kit"
)

const folder = "../../manifests"

// system is the namespace of the platform's own programs.
const system = "platform-system"

func overlays() []string { return []string{"multi-namespace", "single-namespace"} }

// components are all components; servicemonitor includes metrics, so the two exclude each other.
func components() []string {
	return []string{"audit", "ingress", "metrics", "servicemonitor", "cert-manager", "standby"}
}

// choices returns no component, each one, each pair that can be combined, and everything: patches that disagree are two. What
// standby changes nothing else changes, so it is there alone and with everything.
func choices() [][]string {
	sets := [][]string{nil}
	for _, c := range slices.DeleteFunc(components(), func(c string) bool { return c == "standby" }) {
		for _, s := range slices.Clone(sets) {
			if len(s) < 2 && (c != "servicemonitor" || !slices.Contains(s, "metrics")) {
				sets = append(sets, append(slices.Clone(s), c))
			}
		}
	}
	return append(sets, []string{"standby"}, everything())
}

// everything is the largest set.
func everything() []string {
	return slices.DeleteFunc(components(), func(c string) bool { return c == "metrics" })
}

// kustomization writes a kustomization of an overlay with components into a copy of the manifests, and returns its folder.
func kustomization(t *testing.T, overlay string, components []string, more string) string {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [../overlays/%s]\n", overlay)
	if len(components) > 0 {
		fmt.Fprintf(&text, "components: [../components/%s]\n", strings.Join(components, ", ../components/"))
	}
	text.WriteString(more)
	dir := filepath.Join(root, "own")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// render builds a kustomization and expects no warning.
func render(t *testing.T, dir string) []unstructured.Unstructured {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), kit.Bin(t, "kubectl"), "kustomize", dir)
	var out, warnings bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &warnings
	if err := cmd.Run(); err != nil || warnings.Len() > 0 {
		t.Fatalf("kubectl kustomize: %v\n%s", err, &warnings)
	}
	return decode(t, out.Bytes())
}

func decode(t *testing.T, data []byte) []unstructured.Unstructured {
	t.Helper()
	var all []unstructured.Unstructured
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var o unstructured.Unstructured
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}

// program is a container of a Pod template.
type program struct {
	workload string // kind/name
	spec     map[string]any
}

// programs are the containers, init containers included, of all Pod templates.
func programs(t *testing.T, objects []unstructured.Unstructured) []program {
	t.Helper()
	var all []program
	for _, o := range objects {
		for _, list := range []string{"containers", "initContainers"} {
			found, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", list)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range found {
				all = append(all, program{workload: o.GetKind() + "/" + o.GetName(), spec: c.(map[string]any)})
			}
		}
	}
	return all
}

// TestBuild builds every overlay with every choice of components.
func TestBuild(t *testing.T) {
	for _, overlay := range overlays() {
		for _, set := range choices() {
			t.Run(strings.Join(append([]string{overlay}, set...), "+"), func(t *testing.T) {
				seen := map[string]bool{}
				for _, o := range render(t, kustomization(t, overlay, set, "")) {
					id := fmt.Sprintf("%s %s/%s", o.GroupVersionKind(), o.GetNamespace(), o.GetName())
					if seen[id] {
						t.Errorf("%s is there twice", id)
					}
					seen[id] = true
				}
			})
		}
	}
}

// TestImages changes the tag of every image in a copy of an overlay, and looks for images with the old tag.
func TestImages(t *testing.T) {
	for _, overlay := range overlays() {
		t.Run(overlay, func(t *testing.T) {
			dir := filepath.Join(kustomization(t, overlay, nil, ""), "..", "overlays", overlay)
			path := filepath.Join(dir, "kustomization.yaml")
			text := strings.ReplaceAll(string(must(os.ReadFile(path))(t)), "newTag: dev", "newTag: v9")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, o := range render(t, dir) {
				text := string(must(o.MarshalJSON())(t))
				n += strings.Count(text, ":v9")
				if strings.Contains(text, ":dev") {
					t.Errorf("%s %s has an image that did not change", o.GetKind(), o.GetName())
				}
			}
			if n != 4 {
				t.Errorf("%d images changed, want those of 3 programs and of the workers", n)
			}
		})
	}
}

// TestNamespace renders an installation in a namespace of another name.
func TestNamespace(t *testing.T) {
	// cert-manager and servicemonitor contain the name inside strings.
	for _, o := range render(t, kustomization(t, "multi-namespace", []string{"audit", "ingress", "metrics"}, "namespace: elsewhere\n")) {
		text := string(must(o.MarshalJSON())(t))
		if o.GetKind() != "ConfigMap" && strings.Contains(text, system) {
			t.Errorf("%s %s still names %s", o.GetKind(), o.GetName(), system)
		}
	}
}

// TestHardened checks settings that Pod Security does not require.
func TestHardened(t *testing.T) {
	objects := render(t, kustomization(t, "multi-namespace", everything(), ""))
	found := programs(t, objects)
	if len(found) < 3 {
		t.Fatalf("%d programs, want server, controller and router", len(found))
	}
	for _, p := range found {
		if ro, _, err := unstructured.NestedBool(p.spec, "securityContext", "readOnlyRootFilesystem"); err != nil || !ro {
			t.Errorf("%s: the root file system can be written to", p.workload)
		}
		for _, what := range []string{"cpu", "memory"} {
			for _, kind := range []string{"requests", "limits"} {
				if q, _, err := unstructured.NestedString(p.spec, "resources", kind, what); err != nil || q == "" {
					t.Errorf("%s: no %s of %s", p.workload, kind, what)
				}
			}
		}
		for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
			if p.spec[probe] == nil {
				t.Errorf("%s: no %s", p.workload, probe)
			}
		}
	}
}

// must returns a value, or ends the test with its error.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
