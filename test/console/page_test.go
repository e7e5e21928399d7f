// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
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
func pictures(t testing.TB) string {
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
	f.drive("views.mjs", 8, f.everything()...)
}

// Every view looks as it did, in both themes.
func TestPictures(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	f := fill(t)
	kept, err := filepath.Abs("pictures")
	if err != nil {
		t.Fatal(err)
	}
	env := append(f.everything(), "PICTURES="+kept)
	for name := range f.Tasks { // half a minute later the server would say that no controller handles them
		f.status(name, func(s *v1alpha1.TaskStatus) { s.Phase = cmp.Or(s.Phase, v1alpha1.TaskPending) })
	}
	f.drive("pictures.mjs", 1, env...)
}

// status writes the status of a task as a controller does.
func (f *filled) status(name string, change func(*v1alpha1.TaskStatus)) {
	f.t.Helper()
	task, err := f.API.CoreV1alpha1().Tasks("team").Get(f.t.Context(), name, metav1.GetOptions{})
	if err == nil {
		change(&task.Status)
		_, err = f.API.CoreV1alpha1().Tasks("team").UpdateStatus(f.t.Context(), task, metav1.UpdateOptions{})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// everything fills all views. It returns what their scripts need to know.
func (f *filled) everything() []string {
	f.t.Helper()
	f.Objects()
	f.Append("long", 7, 5) // not what plain said at first
	f.Task("talking")
	for _, said := range []string{"What was said", strings.Repeat("more than a row has room for ", 6), "日本語の長い要約がここにあり、行の高さは変わらない", "שלום עולם, זהו סיכום", "short", "👩‍🔬 emoji are higher than letters"} {
		f.Post("talking", v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelMessage, Summary: said, ContentText: said})
	}
	f.Prompted("story", "helper", "large-1", "Write a story about a lighthouse.\nIt has three chapters.", "team", "web")
	f.Append("story", 0, 3)
	f.status("story", func(s *v1alpha1.TaskStatus) {
		start := metav1.NewTime(time.Now().Add(-time.Hour))
		s.Phase, s.Message, s.AgentName, s.Model, s.StartTime, s.CompletionTime = v1alpha1.TaskFailed, "the task ran for longer than its timeout of 42s", "helper", "large-1", &start, &metav1.Time{Time: start.Add(42 * time.Second)}
		s.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTimedOut, Message: s.Message, LastTransitionTime: metav1.Now()}}
	})
	f.Append("asks", 0, 3)
	id := f.Ask("asks", "remove the old files", map[string]string{"code": "rm -r old", "language": "bash"})
	f.status("asks", func(s *v1alpha1.TaskStatus) {
		s.Phase, s.Message = v1alpha1.TaskRunning, "waits for a decision on "+id+": code_exec: remove the old files"
		s.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWaitingForApproval, Status: metav1.ConditionTrue, Reason: "ApprovalRequested", Message: s.Message, LastTransitionTime: metav1.Now()}}
	})
	empty := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "empty"}}
	if _, err := f.Kubernetes(f.t).CoreV1().Namespaces().Create(f.t.Context(), empty, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	token := f.token("ann", "platform-operator")
	f.bind("empty", "ann", "platform-operator")
	f.bind("team", "ann", "platform-approver")
	f.bind("team", "ann", "platform-editor")
	return []string{"TOKEN=" + token, "APPROVAL=" + id, "CONVERSATION=" + f.conversation(), "SHOTS=" + pictures(f.t)}
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
