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

// TestUsageOnAFullDisk: the disk of the server fills up while a vendor has the request of a task and that of a chat. No other
// request is sent until there is room. Then the task goes on, and its events, its result and the usage of both are stored once,
// without a gap; a report says the same after a restart.
func TestUsageOnAFullDisk(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	const text = "turns: [{match: {contains: held task}, reply: {text: Done., usage: {input: 100, output: 7}}}, {reply: {text: Hello., usage: {input: 1000, output: 70}}}]"
	parsed, err := script.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	model, asked, answer := script.New(parsed, io.Discard), make(chan string, 100), make(chan struct{})
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what arrived says who asks
		r.Body = io.NopCloser(bytes.NewReader(body))
		for _, who := range []string{"held task", "held chat", "unsent question"} {
			if strings.Contains(string(body), who) {
				asked <- who
			}
		}
		select {
		case <-answer:
		case <-r.Context().Done():
		}
		model.ServeHTTP(w, r)
	}))
	t.Cleanup(vendor.Close)
	volume, metrics := standalone.SmallVolume(t, 64), prometheus.NewRegistry()
	p := &standalone.Platform{T: t, Server: standalone.Start(t, func(o *standalone.Options) {
		o.DataDir, o.Metrics = filepath.Join(volume, "data"), metrics
		o.DiskReserve.Quantity = resource.MustParse("16Mi")
		o.Controllers, o.WorkerBinary = nil, kit.Bin(t, "platform-worker")
	})}
	p.Answers("default", vendor.URL)
	ai := func(prompt string) v1alpha1.TaskSpec {
		return v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Prompt: prompt, AI: &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "default"}}}
	}
	if _, err := p.Tasks().Create(t.Context(), &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "held"}, Spec: ai("The held task.")}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	chats := p.API().Chats("default")
	chatted := make(chan struct{})
	go func() {
		defer close(chatted)
		_, _ = chats.Create(t.Context(), &v1alpha1.Chat{Spec: v1alpha1.ChatSpec{Message: "The held chat."}}, metav1.CreateOptions{}) // its session may not fit
	}()
	for waiting := map[string]bool{"held task": true, "held chat": true}; len(waiting) > 0; {
		delete(waiting, <-asked)
	}
	filler := filepath.Join(volume, "filler")
	standalone.FillVolume(t, filler, 4<<20)
	standalone.AwaitDiskFull(t, metrics)
	if _, err := p.Tasks().Create(t.Context(), &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "no"}, Spec: ai("The unsent question.")}, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "disk of the server is full") {
		t.Errorf("a task on a full disk: %v", err)
	}
	if _, err := chats.Create(t.Context(), &v1alpha1.Chat{Spec: v1alpha1.ChatSpec{Message: "The unsent question."}}, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "disk of the server is full") {
		t.Errorf("a chat on a full disk: %v", err)
	}
	close(answer)
	<-chatted
	if task, err := p.Tasks().Get(t.Context(), "held", metav1.GetOptions{}); err != nil || task.Status.Phase != v1alpha1.TaskRunning {
		t.Errorf("on the full disk the task is %+v, %v", task.Status, err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	p.AwaitPhase("held", v1alpha1.TaskSucceeded)
	report := func(spec v1alpha1.UsageReportSpec) *v1alpha1.UsageReportStatus {
		t.Helper()
		u, err := p.API().UsageReports("default").Create(t.Context(), &v1alpha1.UsageReport{Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return &u.Status
	}
	before := report(v1alpha1.UsageReportSpec{})
	for i, want := range []int64{0, 107, 1070} {
		o := before.OtherWork[i]
		if u := o.Usage; want == 0 && u.Measurements != 0 || want > 0 && (u.Measurements != 1 || u.ReportedMeasurements != 1 || u.TotalTokens == nil || *u.TotalTokens != want) {
			t.Errorf("%s: %+v, want %d tokens of one request", o.Category, u, want)
		}
	}
	events, err := p.API().ExecutionEvents("default").List(t.Context(), metav1.ListOptions{FieldSelector: "taskName=held"})
	if err != nil {
		t.Fatal(err)
	}
	count := map[v1alpha1.EventType]int{}
	for i := range events.Items {
		count[events.Items[i].Type]++
		if e := &events.Items[i]; e.Seq != int64(i+1) {
			t.Errorf("event %d has seq %d", i+1, e.Seq)
		}
	}
	for _, typ := range []v1alpha1.EventType{v1alpha1.EventModelRequestStarted, v1alpha1.EventModelRequestCompleted, v1alpha1.EventModelMessage, v1alpha1.EventTaskSucceeded} {
		if count[typ] != 1 {
			t.Errorf("%d events of type %s", count[typ], typ)
		}
	}
	p.Restart(t)
	asOf := before.Selection.AsOf
	if d := cmp.Diff(before, report(v1alpha1.UsageReportSpec{AsOf: asOf})); d != "" {
		t.Errorf("the report differs after a restart:\n%s", d)
	}
	close(asked)
	for who := range asked {
		t.Errorf("the vendor was asked again, by %q", who)
	}
}
