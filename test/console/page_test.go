// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/test/console/scene"
	"github.com/platform-ai/platform/test/kit"
)

const root = "../.."

// The sources of the page keep TypeScript's strictest rules.
func TestTypes(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM)
	cmd := exec.CommandContext(t.Context(), "node", "node_modules/.bin/tsc", "-p", "tsconfig.json")
	cmd.Dir = root + "/pkg/console/web"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// filled is a server with tasks to look at.
type filled struct {
	*server
	*scene.Scene
}

func fill(t *testing.T) *filled {
	t.Helper()
	s := start(t)
	return &filled{server: s, Scene: scene.New(t, root, s.Admin, "team")}
}

func (f *filled) drive(script string, parts int, env ...string) {
	f.t.Helper()
	f.Drive(script, f.RESTURL, parts, env...)
}

// pictures returns the folder for pictures of the page, which are kept for those who look at them.
func pictures(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(root, "_output", "console"))
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// All views show what there is, that there is nothing, what they wait for, and what is wrong, in both themes, and break no rule of
// accessibility.
func TestViews(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	f := fill(t)
	f.Objects()
	f.Append("long", 7, 5) // not what plain said at first
	id := f.Ask("asks", "remove the old files", map[string]string{"code": "rm -r old", "language": "bash"})
	empty := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "empty"}}
	if _, err := f.Kubernetes(t).CoreV1().Namespaces().Create(t.Context(), empty, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token := f.token("ann", "platform-operator")
	f.bind("empty", "ann", "platform-operator")
	f.bind("team", "ann", "platform-approver")
	f.bind("team", "ann", "platform-editor")
	f.drive("views.mjs", 8, "TOKEN="+token, "APPROVAL="+id, "SHOTS="+pictures(t))
}

// A long run costs as little as a short one, and goes on without moving what somebody reads.
func TestLongRun(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	f := fill(t)
	f.Append("long", 0, 20_000)
	f.Task("spans")
	f.spans("spans", 10_050)
	f.drive("long.mjs", 8, "TOKEN="+f.token("ann", "platform-viewer"), "COUNT=20000")
}
