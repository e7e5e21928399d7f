// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/runner/runnertest"
)

// transcripts answers as sessions/transcript does, out of n messages.
func transcripts(t *testing.T, n int, asked *[]string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, strings.TrimSuffix(r.URL.RawQuery, "&timeout=1m0s"))
		last := n
		if id := r.URL.Query().Get("through"); id != "" {
			last, _ = strconv.Atoi(strings.TrimPrefix(id, "m"))
		}
		want, _ := strconv.Atoi(r.URL.Query().Get("newest"))
		out := v1alpha1.SessionTranscript{TypeMeta: metav1.TypeMeta{Kind: "SessionTranscript", APIVersion: v1alpha1.SchemeGroupVersion.String()}}
		for i := max(1, last-want+1); i <= last; i++ {
			role := v1alpha1.RoleUser
			if i%2 == 0 {
				role = v1alpha1.RoleAssistant
			}
			out.Items = append(out.Items, v1alpha1.SessionMessage{ID: fmt.Sprintf("m%d", i), Order: int64(i), Role: role, Content: strconv.Itoa(i)})
		}
		if want < 1 || want > 500 || last > n || !strings.HasSuffix(r.URL.Path, "/namespaces/ns/sessions/s/transcript") {
			t.Errorf("asked %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestConversation(t *testing.T) {
	number := func(from, to int) (out []string) {
		for i := from; i <= to; i++ {
			out = append(out, strconv.Itoa(i))
		}
		return out
	}
	limit := func(n int32) *int32 { return &n }
	for _, tc := range []struct {
		name  string
		ref   *v1alpha1.TaskSessionReference
		agent *v1alpha1.Agent
		n     int // messages there are
		want  []string
		asked []string
		err   string
	}{
		{name: "no session", want: []string{"sys", "prompt"}},
		{name: "empty", ref: &v1alpha1.TaskSessionReference{Name: "s"}, want: []string{"sys", "prompt"}, asked: []string{"newest=50"}},
		{name: "all", ref: &v1alpha1.TaskSessionReference{Name: "s", MaxMessages: limit(7)}, n: 2, want: []string{"sys", "1", "2", "prompt"}, asked: []string{"newest=7"}},
		{
			name: "as many as the agent says", ref: &v1alpha1.TaskSessionReference{Name: "s", MaxMessages: limit(50)}, n: 8,
			agent: &v1alpha1.Agent{Spec: v1alpha1.AgentSpec{Session: &v1alpha1.AgentSession{MaxMessages: limit(1)}}},
			want:  []string{"sys", "8", "prompt"}, asked: []string{"newest=1"},
		},
		{name: "the newest", ref: &v1alpha1.TaskSessionReference{Name: "s", MaxMessages: limit(2)}, n: 8, want: []string{"sys", "7", "8", "prompt"}, asked: []string{"newest=2"}},
		{name: "up to", ref: &v1alpha1.TaskSessionReference{Name: "s", MaxMessages: limit(2), ThroughMessageID: "m4"}, n: 8, want: []string{"sys", "3", "4", "prompt"}, asked: []string{"newest=2&through=m4"}},
		{
			name: "more than the server gives at once", ref: &v1alpha1.TaskSessionReference{Name: "s", MaxMessages: limit(700)}, n: 1000,
			want: slices.Concat([]string{"sys"}, number(301, 1000), []string{"prompt"}), asked: []string{"newest=500", "newest=201&through=m501"},
		},
		{name: "the prompt is there", ref: &v1alpha1.TaskSessionReference{Name: "s", MaxMessages: limit(3), PromptIncluded: true}, n: 5, want: []string{"sys", "3", "4", "5"}, asked: []string{"newest=3"}},
		{name: "the prompt is not there", ref: &v1alpha1.TaskSessionReference{Name: "s", MaxMessages: limit(3), PromptIncluded: true}, n: 4, asked: []string{"newest=3"}, err: "its last message is not one of the user"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var asked []string
			server := transcripts(t, tc.n, &asked)
			messages, err := (&run{runnertest.New(t, server.URL, v1alpha1.TaskSpec{SessionRef: tc.ref}).Run}).conversation(t.Context(), tc.agent, "prompt", "sys")
			var f *runner.Error
			if tc.err == "" && err != nil || tc.err != "" && (!errors.As(err, &f) || f.Reason != v1alpha1.ReasonReferenceInvalid || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("error %v", err)
			}
			var got []string
			for _, m := range messages {
				got = append(got, m.Text)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("conversation (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.asked, asked); d != "" {
				t.Errorf("asked (-want +got):\n%s", d)
			}
		})
	}
}
