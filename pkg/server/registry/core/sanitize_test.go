// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

// modelEvents returns the body that appends the start and the end of model requests, all of which have content.
func modelEvents(first, requests int, text string) []byte {
	list := v1alpha1.ExecutionEventList{}
	list.APIVersion, list.Kind = v1alpha1.SchemeGroupVersion.String(), "ExecutionEventList"
	for call := first; call < first+requests; call++ {
		for typ, content := range map[v1alpha1.EventType]map[string]any{
			v1alpha1.EventModelRequestStarted:   {"maxInputTokens": 10},
			v1alpha1.EventModelRequestCompleted: {"inputTokens": 1, "outputTokens": 1, "text": text},
		} {
			content["iteration"], content["attempt"], content["provider"] = call, 1, "p"
			list.Items = append(list.Items, *event.New(typ, v1alpha1.SeverityInfo, fmt.Sprint(typ, call), string(typ), content))
		}
	}
	body, err := json.Marshal(list)
	if err != nil {
		panic(err) // the content above can be encoded
	}
	return body
}

// accounted starts a server whose model requests count towards a Budget and a rate limit.
func accounted(t testing.TB) *coretest.Server {
	s := coretest.Start(t)
	apply := func(resource, kind, name, spec string) {
		s.MustApply(resource, fmt.Sprintf(limits, kind, name, spec))
	}
	apply("providers", "Provider", "p", "{type: openai, secretRef: {name: s}, rateLimit: {requestsPerMinute: 1000000000}}")
	apply("budgets", "Budget", "all", "{limit: {tokens: 1000000000000}, window: day}")
	apply("tasks", "Task", "a", "{type: ai, prompt: x, ai: {providerRef: {name: p}, maxTokens: 1}}")
	return s
}

// sanitized returns how many events with content were sanitized. Doing so allocates the content once. The counts are exact,
// because the test lets the runtime record each allocation.
func sanitized(t *testing.T) (n int64) {
	t.Helper()
	runtime.GC() // a profile shows what was allocated before the last two collections
	runtime.GC()
	records := make([]runtime.MemProfileRecord, 1<<16)
	k, ok := runtime.MemProfile(records, true)
	if !ok {
		t.Fatalf("%d records", k)
	}
	for _, r := range records[:k] {
		frames := runtime.CallersFrames(r.Stack())
		for more := true; more; {
			var f runtime.Frame
			if f, more = frames.Next(); strings.HasPrefix(f.Function, "runtime.") {
				continue
			}
			if strings.HasSuffix(f.Function, "pkg/event.(*report).content") {
				n += r.AllocObjects
			}
			break
		}
	}
	return n
}

// TestEventsAreSanitizedOnce: what limits model requests reads the events as the log stores them.
func TestEventsAreSanitizedOnce(t *testing.T) {
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	runtime.MemProfileRate = 1
	s := accounted(t)
	const requests = 50
	before := sanitized(t)
	if w := s.Call(s.User(), "tasks/events", "a", "", http.MethodPost, modelEvents(0, requests, "done")); w.Code != http.StatusCreated {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if n := sanitized(t) - before; n != 2*requests {
		t.Errorf("%d events were sanitized %d times", 2*requests, n)
	}
}

// BenchmarkAppendOfModelEvents appends the starts and ends of 10 model requests, the ends with 4 KiB each.
func BenchmarkAppendOfModelEvents(b *testing.B) {
	s := accounted(b)
	text := strings.Repeat("The build passes: go test ./pkg/x took 1.2s. ", 90)
	var from, to syscall.Rusage
	bodies := make([][]byte, b.N)
	for i := range bodies {
		bodies[i] = modelEvents(i*10, 10, text)
	}
	b.ResetTimer()
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &from) // never fails with these arguments
	for _, body := range bodies {
		if w := s.Call(s.User(), "tasks/events", "a", "", http.MethodPost, body); w.Code != http.StatusCreated {
			b.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &to)
	b.ReportMetric(float64(to.Utime.Nano()-from.Utime.Nano())/float64(b.N)/1e3, "user-us/op")
}
