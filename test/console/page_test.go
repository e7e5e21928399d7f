// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
)

const web = "../../pkg/console/web"

// tools skips a test where what checks the page is not installed, which make test does if npm is there. Where CI is set,
// it fails.
func tools(t *testing.T) {
	t.Helper()
	missing := ""
	if _, err := os.Stat(web + "/node_modules"); err != nil {
		missing = "the page's tools are not installed: make test installs them with npm"
	}
	if _, err := exec.LookPath("chromium"); err != nil {
		missing = "chromium is not installed"
	}
	switch {
	case missing == "":
	case os.Getenv("CI") != "":
		t.Fatal(missing)
	default:
		t.Skip(missing)
	}
}

// The sources of the page keep TypeScript's strictest rules.
func TestTypes(t *testing.T) {
	t.Parallel()
	tools(t)
	cmd := exec.CommandContext(t.Context(), "node", "node_modules/.bin/tsc", "-p", "tsconfig.json")
	cmd.Dir = web
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// filled is a server with tasks to look at.
type filled struct {
	*server
	tasks map[string]*v1alpha1.Task
	api   *versioned.Clientset
}

func fill(t *testing.T) *filled {
	t.Helper()
	f := &filled{server: start(t), tasks: map[string]*v1alpha1.Task{}}
	var err error
	if f.api, err = versioned.NewForConfig(f.Admin); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"plain", "long", "hostile", "asks"} {
		task := &v1alpha1.Task{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}},
		}
		if name == "hostile" {
			task.Spec.Env, task.Spec.Args = nil, []string{hostile[0]}
		}
		if f.tasks[name], err = f.api.CoreV1alpha1().Tasks("team").Create(t.Context(), task, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.append("plain", 0, 40)
	return f
}

// post appends events to a task.
func (f *filled) post(task string, events ...v1alpha1.ExecutionEvent) {
	f.t.Helper()
	list := v1alpha1.ExecutionEventList{TypeMeta: metav1.TypeMeta{APIVersion: "core.platform.ai/v1alpha1", Kind: "ExecutionEventList"}, Items: events}
	body, err := json.Marshal(list)
	if err != nil {
		f.t.Fatal(err)
	}
	err = f.api.CoreV1alpha1().RESTClient().Post().Namespace("team").Resource("tasks").Name(task).SubResource("events").
		SetHeader("Content-Type", "application/json").Body(body).Do(f.t.Context()).Error()
	if err != nil {
		f.t.Errorf("events of %s: %v", task, err)
	}
}

// append appends events as a run writes them, from a number on.
func (f *filled) append(task string, from, n int) {
	f.t.Helper()
	var events []v1alpha1.ExecutionEvent
	for i := from; i < from+n; i++ {
		e := v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelMessage, Summary: fmt.Sprintf("words %d", i), ContentText: fmt.Sprintf("# Words\n\nPart **%d**", i)}
		if i%10 == 9 {
			e = v1alpha1.ExecutionEvent{Type: v1alpha1.EventToolCallFailed, ToolName: "file_read", ToolCallID: fmt.Sprint(i), Summary: fmt.Sprintf("failure %d", i)}
		}
		if events = append(events, e); len(events) == 2000 || i == from+n-1 {
			f.post(task, events...)
			events = nil
		}
	}
}

// ask requests an approval as a run does, and returns its name.
func (f *filled) ask(task, action string, args map[string]string) string {
	f.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		f.t.Fatal(err)
	}
	digest, err := approval.Digest(raw)
	if err != nil {
		f.t.Fatal(err)
	}
	e := approval.RequestEvent("team", v1alpha1.ApprovalSpec{
		TaskName: task, TaskUID: f.tasks[task].UID, Action: action, TargetTool: "code_exec", ToolCallID: "call", TargetArgsDigest: digest,
		TargetArgsPreview: &apiextensionsv1.JSON{Raw: raw}, RequestedBy: "ann",
	})
	f.post(task, *e)
	return approval.IDOf(e)
}

// drive runs a script of page/ in Chromium; the script prints a line for each of its parts.
func (f *filled) drive(script string, parts int, env ...string) {
	f.t.Helper()
	appended := map[string]int{}
	more := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // ?task=NAME&n=NUMBER
		var n int
		task := r.FormValue("task")
		if _, err := fmt.Sscan(r.FormValue("n"), &n); err != nil || f.tasks[task] == nil {
			http.Error(w, "task and n are needed", http.StatusBadRequest)
			return
		}
		f.append(task, 1_000_000+appended[task], n)
		appended[task] += n
	}))
	defer more.Close()
	cmd := exec.CommandContext(f.t.Context(), "node", "page/"+script)
	cmd.Env = append(os.Environ(), append(env, "BASE="+f.RESTURL, "MORE="+more.URL, "HOME="+f.t.TempDir())...)
	cmd.WaitDelay = time.Minute
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "ok: ") != parts {
		f.t.Errorf("%s: %v\n%s", script, err, out)
		return
	}
	f.t.Logf("%s\n%s", script, out)
}

// All views show what there is, in both themes, and break no rule of accessibility.
func TestViews(t *testing.T) {
	t.Parallel()
	tools(t)
	f := fill(t)
	f.objects()
	id := f.ask("asks", "remove the old files", map[string]string{"code": "rm -r old", "language": "bash"})
	f.drive("views.mjs", 4, "TOKEN="+f.token("ann", "platform-operator"), "APPROVAL="+id)
}

// A long run costs as little as a short one, and goes on without moving what somebody reads.
func TestLongRun(t *testing.T) {
	t.Parallel()
	tools(t)
	f := fill(t)
	f.append("long", 0, 20_000)
	f.drive("long.mjs", 5, "TOKEN="+f.token("ann", "platform-viewer"), "COUNT=20000")
}
