// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// TestCodingAgentOnAFullDisk: the disk of the server fills up while a vendor has the request of a coding agent. The agent gets the answer,
// its next request is refused before the vendor has it, and the run ends only once there is room. Then the first request is recorded
// once, with what it used, before the end of its task, and the Budget and a report say the same, also after a restart.
func TestCodingAgentOnAFullDisk(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	parsed, err := script.Parse([]byte("turns: [{reply: {text: forty-two, usage: {input: 100, output: 7}}}]"))
	if err != nil {
		t.Fatal(err)
	}
	model, asked, answer := script.New(parsed, io.Discard), make(chan string, 100), make(chan struct{})
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what arrived says what is asked
		r.Body = io.NopCloser(bytes.NewReader(body))
		asked <- string(body)
		select {
		case <-answer:
		case <-r.Context().Done():
		}
		model.ServeHTTP(w, r)
	}))
	t.Cleanup(vendor.Close)
	volume, metrics := standalone.SmallVolume(t, 64), prometheus.NewRegistry()
	program := kit.Bin(t, "scriptedagent")
	p := &standalone.Platform{T: t, Server: standalone.Start(t, func(o *standalone.Options) {
		o.DataDir, o.Metrics = filepath.Join(volume, "data"), metrics
		o.DiskReserve.Quantity = resource.MustParse("16Mi")
		o.Controllers, o.WorkerBinary = nil, kit.Bin(t, "platform-worker")
		o.AgentPrograms = []string{"codex=" + program}
	})}
	p.Answers("default", vendor.URL)
	limit := int64(1 << 40)
	kit.Must[*v1alpha1.Budget](t)(p.API().Budgets("default").Create(t.Context(), &v1alpha1.Budget{
		ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.BudgetSpec{Limit: v1alpha1.BudgetLimit{Tokens: &limit}, Window: v1alpha1.BudgetMonth},
	}, metav1.CreateOptions{}))
	kit.Must[*v1alpha1.Agent](t)(p.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: "coder"}, Spec: v1alpha1.AgentSpec{
			Runtime: &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeCodex},
			Model:   &v1alpha1.AgentModel{Provider: v1alpha1.ProviderOpenAI},
		},
	}, metav1.CreateOptions{}))
	task := p.Run("held", func(s *v1alpha1.TaskSpec) {
		s.Type, s.Command, s.AgentRef = v1alpha1.TaskTypeAgent, nil, &v1alpha1.NamespacedReference{Name: "coder"}
		s.Prompt = "do: ask the held question\ndo: touch answered yes\ndo: ask the unsent question\ndo: touch refused yes"
	})
	<-asked
	filler := filepath.Join(volume, "filler")
	standalone.FillVolume(t, filler, 4<<20)
	standalone.AwaitDiskFull(t, metrics)
	close(answer)
	for _, step := range []string{"answered", "refused"} {
		kit.Await(t, "the agent is "+step, func() bool {
			return len(kit.Must[[]string](t)(filepath.Glob(filepath.Join(p.DataDir, "runs", string(task.UID), "*", "*", step)))) > 0
		})
	}
	if now := kit.Must[*v1alpha1.Task](t)(p.Tasks().Get(t.Context(), "held", metav1.GetOptions{})); now.Status.Phase != v1alpha1.TaskRunning {
		t.Errorf("on the full disk the task is %+v", now.Status)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	p.AwaitPhase("held", v1alpha1.TaskSucceeded)
	said := p.ResultOf("held")
	if !strings.HasPrefix(said, "forty-two\n") || !strings.Contains(said, "507 ") || !strings.Contains(said, "disk of the server is full") {
		t.Errorf("the agent says %q", said)
	}
	for typ, want := range map[v1alpha1.EventType]int{v1alpha1.EventModelRequestStarted: 1, v1alpha1.EventModelRequestCompleted: 1, v1alpha1.EventModelRequestFailed: 0} {
		if n := len(p.EventsOf("held", typ)); n != want {
			t.Errorf("%d events %s, want %d", n, typ, want)
		}
	}
	spent := func() int64 {
		t.Helper()
		b := kit.Must[*v1alpha1.Budget](t)(p.API().Budgets("default").Get(t.Context(), "all", metav1.GetOptions{}))
		if b.Status.Reserved != 0 {
			t.Errorf("the Budget has reserved %d tokens", b.Status.Reserved)
		}
		return b.Status.Spent
	}
	report := func(at string) *v1alpha1.UsageReportStatus {
		t.Helper()
		u := kit.Must[*v1alpha1.UsageReport](t)(p.API().UsageReports("default").Create(t.Context(), &v1alpha1.UsageReport{Spec: v1alpha1.UsageReportSpec{AsOf: at}}, metav1.CreateOptions{}))
		return &u.Status
	}
	before := report("")
	if u := before.OtherWork[1].Usage; u.Measurements != 1 || u.ReportedMeasurements != 1 || u.MissingMeasurements != 0 || u.TotalTokens == nil || *u.TotalTokens != 107 {
		t.Errorf("reported are %+v, want 107 tokens of one request", u)
	}
	p.Restart(t)
	if d := cmp.Diff(before, report(before.Selection.AsOf)); d != "" {
		t.Errorf("the report differs after a restart:\n%s", d)
	}
	if n := spent(); n != 107 {
		t.Errorf("the Budget has %d tokens spent, want 107", n)
	}
	close(asked)
	for body := range asked {
		t.Errorf("the vendor was asked again: %s", body)
	}
}
