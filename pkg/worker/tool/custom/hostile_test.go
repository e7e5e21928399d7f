// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"compress/gzip"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
	"github.com/platform-ai/platform/test/kit"
)

// TestHostileAnswers: an endpoint can neither fill the memory nor keep the run waiting.
func TestHostileAnswers(t *testing.T) {
	filler := []byte(strings.Repeat(" ", 64<<10))
	endless := func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(filler); err != nil {
				return
			}
		}
	}
	bomb := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for range 10_000 { // 640 MB
			if _, err := z.Write(filler); err != nil {
				return
			}
		}
		_ = z.Close()
	}
	drip := func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := w.Write([]byte(" ")); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(10 * time.Millisecond): // the drip; whatever its pace, the answer never ends
			}
		}
	}
	deep := ok(strings.Repeat("[", 1<<20))
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"endless":            {endless, "the answer is larger than 10 MiB"},
		"decompression bomb": {bomb, "the answer is larger than 10 MiB"},
		"drip":               {drip, "it took longer than 100ms"},
		"long header":        {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 300<<10)) }, "did not arrive"},
		"deep":               {deep, `"success":true`}, // is no JSON that can be decoded, so it is a text
	} {
		t.Run(name, func(t *testing.T) {
			e := newEndpoint(t, tc.answer)
			timeout := kit.Patience
			if name == "drip" {
				timeout = 100 * time.Millisecond // ends what would never end by itself, so that it can be short
			}
			r := newTool(t, v1alpha1.ToolHTTP{URL: e.URL, Timeout: v1alpha1.DurationOf(timeout)}, "").Call(t.Context(), "weather", "{}")
			if !strings.Contains(r.Text, tc.want) {
				t.Errorf("got %.300s", r.Text)
			}
		})
	}
	for _, url := range []string{"http://169.254.169.254/latest", "http://[fd00:ec2::254]/", "http://[::ffff:169.254.169.254]/"} {
		if r := newTool(t, v1alpha1.ToolHTTP{URL: url}, "").Call(t.Context(), "weather", "{}"); r.ErrorType != tool.TypePermissionDenied {
			t.Errorf("%s: %s", url, r.Text)
		}
	}
}

// TestTrace: requests carry the trace context of the task, if it is a valid one.
func TestTrace(t *testing.T) {
	const valid = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for annotation, want := range map[string]string{valid: valid, "00-x": "", valid + "\r\nX: y": "", "": ""} {
		var got string
		e := newEndpoint(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Traceparent") })
		task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationTraceparent: annotation}}}
		tl, err := New("weather", v1alpha1.ToolSpec{HTTP: &v1alpha1.ToolHTTP{URL: e.URL}}, Options{Traceparent: toolkit.Traceparent(task)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tl.Call(t.Context(), []byte(`{}`)); err != nil || got != want {
			t.Errorf("%q: sent %q, %v", annotation, got, err)
		}
	}
}
