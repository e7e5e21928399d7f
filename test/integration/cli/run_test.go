// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestCommandRun: a prompt is answered on standard output, alone; models and Secrets are listed by name.
func TestCommandRun(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithModel(t, `
models: [scripted-1]
turns:
- match: {contains: fails}
  fault: {status: 400, message: refused}
- reply: {text: forty-two}
`)
	out, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "run", "What is it?", "--provider", "model", "--model", "scripted-1")
	if code != 0 || out != "forty-two\n" {
		t.Errorf("run: exit code %d\n%s%s", code, out, errs)
	}
	play(t, p.Kubeconfig, []step{
		{"run really? --provider model --model scripted-1 --verbose", 0, "TaskSucceeded", " created"},
		{"run fails --provider model --model scripted-1", 2, "", "refused"},
		{"run", 1, "", "an argument is missing"},
		{"task create hello --name lost --agent nope", 0, "task lost created", "Warning: there is no agent nope"},
		{"models list", 0, "scripted-1   model\n", ""},
		{"models list -o json", 0, `"provider": "model"`, ""},
		{"models list --compat openai", 0, "scripted-1", ""},
		{"models list --compat anthropic", 0, "scripted-1", ""},
		{"models list --compat other", 1, "", `--compat: "other": must be openai or anthropic`},
		{"secret list", 0, "Opaque", ""},
		{"secret list -o name", 0, "secret/", ""},
		{"secret list -o json", 1, "", "-o"},
	})
}

// TestCommandSkillFiles: a skill goes from a folder to the server and back, and what is wrong with one is said.
func TestCommandSkillFiles(t *testing.T) {
	t.Parallel()
	s, dir := standalone.Start(t), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	write("lawless/SKILL.md", "no header")
	write("nameless/SKILL.md", "---\nname: No Name\ndescription: d\n---\ntext\n")
	write("empty/SKILL.md", "---\nname: empty\ndescription: d\n---\n\n")
	write("binary/SKILL.md", "---\nname: binary\ndescription: d\n---\ntext\n")
	write("binary/picture.png", "\xff\xfe")
	write("foreign/SKILL.md", "---\r\nname: foreign\r\ndescription: of another program\r\nallowed-tools: Bash\r\n---\r\n# Text\r\n")
	play(t, s.Kubeconfig, []step{
		{"skill init " + at("reviewing") + " --description careful", 0, at("reviewing/SKILL.md") + " written", ""},
		{"skill init " + at("reviewing"), 1, "", "is there already: --force"},
		{"skill init " + at("reviewing") + " --description careful --force", 0, "written", ""},
		{"skill init " + at("Not_A_Name"), 1, "", `name: "Not_A_Name"`},
		{"skill validate " + at("lawless"), 1, "", "it must begin with YAML"},
		{"skill validate " + at("nameless"), 1, "", `name: "No Name"`},
		{"skill validate " + at("empty"), 1, "", "there is no text"},
		{"skill validate " + at("binary"), 1, "", "picture.png: is not text"},
		{"skill validate --file " + at("foreign/SKILL.md"), 0, "skill foreign is valid", ""},
	})
	write("reviewing/scripts/check.sh", "#!/bin/sh\nexit 0\n")
	write("reviewing/.git/config", "hidden")
	if err := os.Symlink("/etc/passwd", at("reviewing/link")); err != nil {
		t.Fatal(err)
	}
	play(t, s.Kubeconfig, []step{
		{"skill validate " + at("reviewing/SKILL.md"), 0, "files beside it: 1", ""},
		{"skill import " + at("reviewing"), 0, "skill reviewing created", ""},
		{"skill import " + at("reviewing/SKILL.md"), 1, "", "already exists"},
		{"skill import " + at("reviewing/SKILL.md") + " --name second -o name", 0, "skill.core.platform.ai/second", ""},
		{"skill get reviewing -o jsonpath={.spec.description}", 0, "careful", ""},
		{"skill content reviewing", 0, "# reviewing\n", ""},
		{"skill content reviewing scripts/check.sh", 0, "#!/bin/sh\nexit 0\n", ""},
		{"skill content reviewing link", 1, "", `has no file "link"`},
		{"secret list", 0, "", "nothing found"},
	})
}
