// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

const queriesPath = "/apis/core.platform.ai/v1alpha1/namespaces/default/taskqueries"

// TestTaskQueries: tasks are sorted and filtered by the server, natively, over REST and in the command; each answers only who
// may list the tasks.
func TestTaskQueries(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	admin := s.Core(t)
	begin := time.Now().Add(-time.Hour).Truncate(time.Second)
	for i, name := range []string{"small", "large", "middle"} {
		task, _ := s.RESTTask(t, name)
		task = kit.Must[*v1alpha1.Task](t)(admin.Tasks("default").Get(t.Context(), task.Name, metav1.GetOptions{}))
		task.Status.Phase, task.Status.StartTime, task.Status.CompletionTime = v1alpha1.TaskFailed, &metav1.Time{Time: begin}, &metav1.Time{Time: begin.Add(time.Duration(i) * time.Minute)}
		task.Status.Usage = &v1alpha1.TaskUsage{InputTokens: new([]int64{5, 5000, 500}[i]), OutputTokens: new(int64(1)), ModelRequests: 1}
		kit.Must[*v1alpha1.Task](t)(admin.Tasks("default").UpdateStatus(t.Context(), task, metav1.UpdateOptions{}))
	}
	viewer := s.REST(t, "default", "vi", "view")
	type page struct {
		Items    []v1alpha1.TaskSummary
		Metadata struct {
			Continue string
			Matched  int64
		}
	}
	read := func(query string) (names string, p page) {
		t.Helper()
		if err := json.Unmarshal([]byte(viewer.Get("/api/v1/tasks?"+query).Want(t, 200).Body), &p); err != nil {
			t.Fatal(err)
		}
		for _, i := range p.Items {
			names += i.Name + " "
		}
		return names, p
	}
	for query, want := range map[string]string{
		"orderBy=tokens": "small middle large ", "orderBy=tokens&descending=true": "large middle small ", "orderBy=duration&minDuration=1m": "large middle ",
		"orderBy=name&minTokens=500&phases=Failed,Running": "large middle ", "q=MALL": "small ", "minDuration=1s": "large middle ", "orderBy=name&startedAfter=2100-01-01": "",
		"orderBy=started": "small large middle ", "orderBy=started&descending=true": "middle large small ",
	} {
		if got, _ := read(query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	names, first := read("orderBy=tokens&limit=2")
	if last, p := read("orderBy=tokens&limit=2&continue=" + first.Metadata.Continue); names+last != "small middle large " || first.Metadata.Matched != 3 || p.Metadata.Continue != "" {
		t.Errorf("pages: %q %q %+v", names, last, first.Metadata)
	}
	viewer.Get("/api/v1/tasks?orderBy=size").Problem(t, 400, "orderBy: ", "must be one of created")
	viewer.Get("/api/v1/tasks?orderBy=name&owner=me").Problem(t, 400, "owner: is not a parameter of this path")
	viewer.Get("/api/v1/tasks?orderBy=name&continue=abc").Problem(t, 400, "continue: ")
	viewer.Get("/api/v1/tasks?orderBy=name&descending=perhaps").Problem(t, 400, "descending: ")

	if _, err := s.Kubernetes(t).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	body := `{"apiVersion":"core.platform.ai/v1alpha1","kind":"TaskQuery","metadata":{"namespace":"default"},"spec":{}}`
	tenant := s.REST(t, "other", "operator", "platform-operator")
	for what, a := range map[string]host.Answer{
		"native":       tenant.Do("POST", queriesPath, body).Want(t, 403),
		"REST":         tenant.Get("/api/v1/tasks?orderBy=name&namespace=default").Want(t, 403),
		"from outside": tenant.Do("POST", strings.Replace(queriesPath, "default", "other", 1), body).Want(t, 400),
		"own":          tenant.Get("/api/v1/tasks?orderBy=name&namespace=other").Want(t, 200),
	} {
		if strings.Contains(a.Body, "middle") {
			t.Errorf("%s shows a task of another namespace: %s", what, a.Body)
		}
	}
	s.REST(t, "default", "nobody", "").Do("POST", queriesPath, body).Want(t, 403)
	s.REST(t, "default", "approver", "platform-approver").Do("POST", queriesPath, body).Want(t, 201)

	play(t, s.Kubeconfig, []step{
		{"task list --sort-by tokens", 0, "large    Failed           5001     1m00s", ""},
		{"task list --sort-by tokens -o name", 0, "task.core.platform.ai/large\ntask.core.platform.ai/middle\ntask.core.platform.ai/small\n", ""},
		{"task list --sort-by tokens --ascending -o jsonpath={.status.items[*].name}", 0, "small middle large", ""},
		{"task list --started-after 2h --min-tokens 100 --sort-by name -o jsonpath={.status.items[*].name}", 0, "large middle", ""},
		{"task list --started-after 10m", 0, "", "nothing found"},
		{"task list --sort-by duration --limit 2", 0, "middle", "2 of 3 are shown; for more: --continue "},
		{"task list --sort-by name --status Failed --text SMALL -o wide", 0, "container", ""},
		{"task list --sort-by size", 1, "", `--sort-by: "size" is not one of created`},
		{"task list --min-duration 1m -A", 1, "", "--all-namespaces: cannot be combined"},
		{"task list --agent x -w", 1, "", "--watch: cannot be combined"},
		{"task list --text x --field-selector a=b", 1, "", "--field-selector: cannot be combined"},
	})
	r := kit.Run(t, append(os.Environ(), "HOME="+t.TempDir(), "KUBECONFIG="+s.Kubeconfig), kit.Bin(t, "kubectl"), "create", "-o", "yaml", "-f", "../../../artifacts/examples/create/taskquery.yaml")
	if !strings.Contains(r.Output, "matched: 2") {
		t.Errorf("kubectl create: %s", r.Output)
	}
}

// TestEventFlags: the command reads the last events, those before a position, and those with a text, and no others.
func TestEventFlags(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	s.RESTTask(t, "a")
	list := &v1alpha1.ExecutionEventList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ExecutionEventList"}}
	for i := range 1200 {
		list.Items = append(list.Items, v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelMessage, Summary: fmt.Sprintf("message %d of Agent%d", i+1, i%400)})
	}
	body, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Core(t).RESTClient().Post().AbsPath(standalone.TasksPath, "a", "events").Body(body).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	seqs := func(args string) []int64 {
		t.Helper()
		out, errs, code := standalone.Command(t.Context(), s.Kubeconfig, append([]string{"task", "events", "a", "-o", "json"}, strings.Fields(args)...)...)
		if code != 0 || errs != "" {
			t.Fatalf("%s: %d %s", args, code, errs)
		}
		var seqs []int64
		for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
			var e v1alpha1.ExecutionEvent
			if err := d.Decode(&e); err != nil {
				t.Fatal(err)
			}
			seqs = append(seqs, e.Seq)
		}
		return seqs
	}
	all := seqs("")
	if len(all) < 1200 || all[0] != 1 {
		t.Fatalf("%d events from %v", len(all), all[:1])
	}
	n := int64(len(all))
	at := n - 1200 // what the server itself recorded first
	for args, want := range map[string][]int64{
		"--last 3": {n - 2, n - 1, n}, "--last 2 --before 100": {98, 99}, "--last 5 --before 3": {1, 2}, "--last 1100": all[n-1100:],
		"--before 60":       all[9:59], // 50 is the default
		"--search AGENT399": {at + 400, at + 800, at + 1200}, "--search agent7 --last 1": {at + 880}, "--search absent --last 5": nil,
		"--last 2 --type ModelMessage --before " + fmt.Sprint(at+3): {at + 1, at + 2},
	} {
		if got := seqs(args); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", args, got, want)
		}
	}
	play(t, s.Kubeconfig, []step{
		{"task events a --last 0", 1, "", "--last: must be at least 1"},
		{"task events a --before 0", 1, "", "--before: must be at least 1"},
		{"task events a --last 1 --after 3", 1, "", "--last: cannot be combined with --after and --limit"},
		{"task events a --before 3 --limit 3", 1, "", "--before: cannot be combined with --after and --limit"},
		{"task events a --last 1", 0, "message 1200", ""},
		{"task events a --count --type ModelMessage", 0, "ModelMessage   1200\nall            1200\n", ""},
		{"task events a --count --periods 1 -o json", 0, `"seq": 1,`, ""},
		{"task events a --count --periods 2", 0, "FROM", ""},
		{"task events a --count --last 3", 1, "", "--last: cannot be combined with --count"},
		{"task events a --periods 3", 1, "", "--periods: needs --count"},
		{"session events nobody --count", 1, "", `"nobody" not found`},
	})
}
