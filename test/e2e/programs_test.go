// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/worker/sandbox"
	"github.com/platform-ai/platform/test/escape"
)

// programsImage has this machine's shell, interpreters, git and Go.
const programsImage = "platform.ai/test-programs:dev"

// TestProgramsInPods: in the sandbox of a Pod, under the restricted standard and the default seccomp profile, programs can use what
// they need.
func TestProgramsInPods(t *testing.T) {
	if err := sandbox.Probe().Check(); err != nil {
		t.Skip(err)
	}
	t.Parallel()
	p := newTeam(t)
	p.cluster.LoadImages(t, imageOfPrograms(t))
	lines, want := strings.Builder{}, strings.Builder{}
	for _, work := range escape.Works {
		lines.WriteString("echo '== " + work.Name + "'; mkdir " + work.Name + "; (cd " + work.Name + "; " + work.Line + ")\n")
		want.WriteString("== " + work.Name + "\n" + work.Want)
	}
	command(t, p, "programs", "export HOME=$PWD GOCACHE=$PWD/builds PATH=$PATH:"+goRoot(t)+"/bin CGO_ENABLED=0\n"+lines.String(),
		map[string]any{"image": programsImage, "command": []string{"bash", "-c"}, "timeout": "10m"})
	p.MustShell(t, "kubectl wait --for=condition=Complete --timeout=600s task/programs")
	var result struct{ Result string }
	if err := json.Unmarshal([]byte(p.MustShell(t, "kubectl get --raw "+native(p, "tasks/programs/result"))), &result); err != nil {
		t.Fatal(err)
	}
	if result.Result != want.String() {
		t.Errorf("got  %q\nwant %q", result.Result, want.String())
	}
}

// imageOfPrograms writes an image of what the programs of escape.Works need of this machine, and returns its file.
func imageOfPrograms(t *testing.T) string {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image.tar")
	python, err := filepath.EvalSymlinks("/usr/bin/python3")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"run", ".", "-name", programsImage, "-certificates", "", "-entrypoint", "/usr/bin/bash", "-o", image,
		"@usr/bin=/bin", "@usr/lib=/lib", "@usr/lib64=/lib64", "@git=/usr/bin/git-upload-pack", "@bash=/usr/bin/sh", "@" + filepath.Base(python) + "=/usr/bin/python3",
	}
	for _, f := range slices.Concat(systemFiles(t, filepath.Base(python)), goFiles(t)) {
		args = append(args, f+"="+f)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = "../../hack/images"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("image: %v\n%s", err, out)
	}
	return image
}

// systemFiles returns programs, the libraries that they are linked with, and Python's own.
func systemFiles(t *testing.T, python string) []string {
	t.Helper()
	modulesOf := filepath.Join("/usr/lib", python)
	files := []string{modulesOf}
	for name := range strings.FieldsSeq("bash cat chmod echo git ls mkdir mv node nproc rm sleep tar " + python) {
		files = append(files, "/usr/bin/"+name)
	}
	modules, err := filepath.Glob(modulesOf + "/lib-dynload/*.so")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "ldd", append(modules, files[1:]...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("ldd: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		for word := range strings.FieldsSeq(line) {
			if library, ok := strings.CutPrefix(word, "/lib"); ok && !strings.HasSuffix(word, ":") {
				files = append(files, "/usr/lib"+library)
			}
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// goFiles returns what the go command needs to build a program that prints.
func goFiles(t *testing.T) []string {
	t.Helper()
	packages, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.Dir}}", "fmt").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Fields(string(packages))
	for _, name := range []string{"bin/go", "go.env", "VERSION", "pkg/include", "pkg/tool/linux_amd64/asm", "pkg/tool/linux_amd64/compile", "pkg/tool/linux_amd64/link"} {
		files = append(files, filepath.Join(goRoot(t), name))
	}
	return files
}

func goRoot(t *testing.T) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(root))
}
