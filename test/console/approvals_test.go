// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/visible"
	"github.com/platform-ai/platform/test/kit"
)

// Whoever decides sees what waits however much there is, what was decided alike, all arguments as they are, and whether something
// of them is missing.
func TestApprovals(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	f := fill(t)
	old := f.Ask("plain", "the same before", map[string]int{"n": 599})
	decision := &v1alpha1.ApprovalDecision{Spec: v1alpha1.ApprovalDecisionSpec{Decision: "decline", Reason: "not at night"}}
	if _, err := f.API.CoreV1alpha1().Approvals("team").Decide(t.Context(), old, decision, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	last := ""
	for i, task := range []string{"plain", "long", "asks"} { // a task may wait for 256 at most
		last = f.AskMany(task, 200*i, 200)
	}
	many := map[string]any{"big": json.RawMessage("9223372036854775808"), "digit": "1", "number": 1, "deep": json.RawMessage(`{"a":[9007199254740993,1.50]}`)}
	for i := len(many); i < 101; i++ {
		many[fmt.Sprintf("name%d", i)] = "value"
	}
	env := []string{"TOKEN=" + f.token("ann", "platform-approver"), "LAST=" + last}
	for name, args := range map[string]any{
		"MANY":   many,
		"SECRET": map[string]string{"password": "correct-horse-battery", "command": "login"},
		"LONG":   map[string]string{"text": strings.Repeat("x ", 8<<10)},
		"HIDDEN": map[string]string{"command": "a\u2800b\u3164c\u034fd\ufe0fe\u00a0f\u200dg"},
		"NONE":   map[string]string{},
		"BLANK":  map[string]string{"command": "ls" + strings.Repeat("\n \n", 15) + "rm -rf ~" + strings.Repeat(" ", 900) + "; true"},
		"LINES":  map[string]string{"command": strings.Repeat("echo a line\n", 200) + "rm -rf ~"},
	} {
		env = append(env, name+"="+f.Ask("asks", "about "+name, args))
	}
	f.drive("approvals.mjs", 4, env...)
}

// The page hides no character of a call that the commands show by its code.
func TestHiddenCharacters(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	out := filepath.Join(t.TempDir(), "visible.mjs")
	build := exec.CommandContext(t.Context(), "go", "tool", "-modfile=hack/tools/go.mod", "esbuild", "pkg/console/web/src/ui/visible.ts", "--format=esm", "--outfile="+out, "--log-level=warning")
	build.Dir = root
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	const script = `const { exactly } = await import(process.argv[1]);
const codes = [];
for (let c = 0; c <= 0x10ffff; c++) if ((c < 0xd800 || c > 0xdfff) && exactly(String.fromCodePoint(c)).includes('U+')) codes.push(c);
console.log(JSON.stringify(codes));`
	said, err := exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", script, out).Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []rune
	if err := json.Unmarshal(said, &list); err != nil {
		t.Fatal(err)
	}
	page := map[rune]bool{}
	for _, r := range list {
		page[r] = true
	}
	assigned := []*unicode.RangeTable{}
	for name, table := range unicode.Categories {
		if name != "Cn" && name != "C" {
			assigned = append(assigned, table)
		}
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r >= 0xd800 && r <= 0xdfff || r == '\t' || r == '\n' || !unicode.In(r, assigned...) {
			continue // the page shows arguments on several lines, and a browser knows characters of later versions of Unicode
		}
		if command := visible.Exact(string(r)) != string(r); command != page[r] {
			t.Errorf("%U: shown by its code by the commands: %v, and by the page: %v", r, command, page[r])
		}
	}
}
