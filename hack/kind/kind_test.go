// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

const (
	repository = "../.."
	merge      = apitypes.MergePatchType
)

func TestNames(t *testing.T) {
	for kind, want := range map[string]names{
		"widget":         {Kind: "Widget", Resource: "widgets", Folder: "widget", One: "widget", Many: "widgets", Article: "a"},
		"RepositoryScan": {Kind: "RepositoryScan", Resource: "repositoryscans", Folder: "repositoryscan", One: "repository scan", Many: "repository scans", Article: "a"},
		"AccessPolicy":   {Kind: "AccessPolicy", Resource: "accesspolicies", Folder: "accesspolicy", One: "access policy", Many: "access policies", Article: "an"},
	} {
		if got, err := namesOf(kind); err != nil || got != want {
			t.Errorf("%s: %+v %v", kind, got, err)
		}
	}
	for _, bad := range []string{"", "two words", "a-b", "1st"} {
		if _, err := namesOf(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// copied returns a copy of the repository, without what is built and what npm installs.
func copied(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(repository, path)
		to := filepath.Join(root, rel)
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "_output", "_data", "node_modules"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(to, 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, info.Mode())
	})
	check(t, err)
	return root
}

// TestTwice: a kind is written once, and never over a file that is there.
func TestTwice(t *testing.T) {
	root := t.TempDir()
	for _, path := range []string{types + "/register.go", registry + "/all.go"} {
		data := kit.Must[[]byte](t)(os.ReadFile(filepath.Join(repository, path)))
		check(t, os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755))
		check(t, os.WriteFile(filepath.Join(root, path), data, 0o600))
	}
	check(t, run(root, "Widget"))
	if err := run(root, "Widget"); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("the second time: %v", err)
	}
	all := string(kit.Must[[]byte](t)(os.ReadFile(filepath.Join(root, registry, "all.go"))))
	if n := strings.Count(all, "widget"); n != 2 {
		t.Errorf("all.go names the kind %d times, want the import and the line", n)
	}
}

// TestKind makes a kind in a copy of the repository, generates and builds there, and uses the kind: its own test, the tests of the
// repository's shape, and a server with a client that has no types.
func TestKind(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	root := copied(t)
	do := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
	}
	check(t, run(root, "Widget"))
	path := filepath.Join(root, types, "widget_types.go")
	text := string(kit.Must[[]byte](t)(os.ReadFile(path))) + "\n// RESTPath returns where REST clients read and write widgets.\n" +
		"func (*Widget) RESTPath() (path string, written bool) { return \"widgets\", true }\n"
	check(t, os.WriteFile(path, []byte(text), 0o600))

	do("hack/update-codegen.sh")
	do("go", "test", "-vet=off", "./pkg/server/host/rbac", "-run", "TestManifest", "-rewrite")
	do("go", "test", "-vet=off", "-ldflags=-s", "./"+registry+"/widget", "./test/arch")
	do("go", "build", "-ldflags=-s", "-o", "_output/bin/", "./cmd/platform-standalone", "./cmd/platform-worker")
	for file, want := range map[string]string{
		"manifests/base/clusterroles.yaml": "  - widgets\n", "artifacts/reference/rest.md": "`PUT /api/v1/widgets/{name}`", "artifacts/reference/api.md": "## Widget\n",
	} {
		if data := kit.Must[[]byte](t)(os.ReadFile(filepath.Join(root, file))); !strings.Contains(string(data), want) {
			t.Errorf("%s lacks %q", file, want)
		}
	}
	t.Setenv("PLATFORM_BIN", filepath.Join(root, "_output", "bin"))
	s := kit.StartServer(t, t.TempDir())
	use(t, s.Kubeconfig, kit.Must[[]byte](t)(os.ReadFile(filepath.Join(root, "artifacts/examples/widget.yaml"))))
}

// use creates, reads, lists, watches, changes and deletes an object.
func use(t *testing.T, kubeconfig string, example []byte) {
	t.Helper()
	config := kit.Must[*rest.Config](t)(clientcmd.BuildConfigFromFlags("", kubeconfig))
	client := kit.Must[*dynamic.DynamicClient](t)(dynamic.NewForConfig(config))
	widgets := client.Resource(v1alpha1.SchemeGroupVersion.WithResource("widgets")).Namespace("default")
	ctx := t.Context()
	first := kit.Must[*unstructured.UnstructuredList](t)(widgets.List(ctx, metav1.ListOptions{}))
	watching := kit.Must[watch.Interface](t)(widgets.Watch(ctx, metav1.ListOptions{ResourceVersion: first.GetResourceVersion()}))
	defer watching.Stop()
	object := &unstructured.Unstructured{}
	check(t, yaml.Unmarshal(example, &object.Object))
	made := kit.Must[*unstructured.Unstructured](t)(widgets.Create(ctx, object, metav1.CreateOptions{FieldValidation: "Strict"}))
	patch := func(body string, subresources ...string) *unstructured.Unstructured {
		t.Helper()
		return kit.Must[*unstructured.Unstructured](t)(widgets.Patch(ctx, "example", merge, []byte(body), metav1.PatchOptions{}, subresources...))
	}
	if changed := patch(`{"spec":{"description":"another"}}`); made.GetGeneration() != 1 || changed.GetGeneration() != 2 {
		t.Errorf("generations %d and %d", made.GetGeneration(), changed.GetGeneration())
	}
	if o := patch(`{"spec":{"description":"not"},"status":{"observedGeneration":2}}`, "status"); o.GetGeneration() != 2 {
		t.Errorf("after a write of the status: %v", o.Object)
	}
	if _, err := widgets.Patch(ctx, "example", merge, []byte(`{"spec":{"description":"`+strings.Repeat("d", 1025)+`"}}`), metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a description that is too long: %v", err)
	}
	got := kit.Must[*unstructured.Unstructured](t)(widgets.Get(ctx, "example", metav1.GetOptions{}))
	description, _, _ := unstructured.NestedString(got.Object, "spec", "description")
	observed, _, _ := unstructured.NestedInt64(got.Object, "status", "observedGeneration")
	if list := kit.Must[*unstructured.UnstructuredList](t)(widgets.List(ctx, metav1.ListOptions{})); len(list.Items) != 1 || description != "another" || observed != 2 {
		t.Errorf("%d objects, %v", len(list.Items), got.Object)
	}
	check(t, widgets.Delete(ctx, "example", metav1.DeleteOptions{}))
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Modified, watch.Deleted} {
		if e := <-watching.ResultChan(); e.Type != want {
			t.Errorf("event %s, want %s", e.Type, want)
		}
	}
	if _, err := widgets.Get(ctx, "example", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after its deletion: %v", err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
