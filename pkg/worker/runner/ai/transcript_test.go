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
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/runner/runnertest"
)

func spoke(role v1alpha1.MessageRole, text string) v1alpha1.SessionMessage {
	return v1alpha1.SessionMessage{Role: role, Content: text}
}

func asked(text string, ids ...string) v1alpha1.SessionMessage {
	m := spoke(v1alpha1.RoleAssistant, text)
	for _, id := range ids {
		m.ToolCalls = append(m.ToolCalls, v1alpha1.MessageToolCall{ID: id, Name: "f", Arguments: `{}`})
	}
	return m
}

func answered(id, text string) v1alpha1.SessionMessage {
	return v1alpha1.SessionMessage{Role: v1alpha1.RoleTool, ToolCallID: id, Content: text}
}

func TestReplay(t *testing.T) {
	user, assistant, system := v1alpha1.RoleUser, v1alpha1.RoleAssistant, v1alpha1.RoleSystem
	broken := asked("broken", "1")
	broken.ToolCalls[0].Arguments = "{"
	for _, tc := range []struct {
		name string
		in   []v1alpha1.SessionMessage
		want []string
	}{
		{"none", nil, nil},
		{"talk", []v1alpha1.SessionMessage{spoke(user, "a"), spoke(assistant, "b"), spoke(user, " "), spoke(assistant, "")}, []string{"user a", "assistant b"}},
		{"system texts stand apart", []v1alpha1.SessionMessage{spoke(user, "a"), spoke(system, "s"), spoke(system, "")}, []string{"system s", "user a"}},
		{
			"calls with their answers",
			[]v1alpha1.SessionMessage{asked("", "1", "2"), answered("2", "y"), answered("1", "x"), spoke(assistant, "b")},
			[]string{"assistant  [1 2]", "tool 2 y", "tool 1 x", "assistant b"},
		},
		{"an answer whose call has left", []v1alpha1.SessionMessage{answered("1", "x"), spoke(assistant, "b")}, []string{"assistant b"}},
		{"a call without its answer", []v1alpha1.SessionMessage{asked("let me see", "1", "2"), answered("1", "x"), spoke(user, "a")}, []string{"assistant let me see", "user a"}},
		{"a call that nobody answered", []v1alpha1.SessionMessage{asked("", "1")}, nil},
		{"an answer too late", []v1alpha1.SessionMessage{asked("", "1"), spoke(user, "a"), answered("1", "x")}, []string{"user a"}},
		{"an answer twice", []v1alpha1.SessionMessage{asked("", "1"), answered("1", "x"), answered("1", "z"), answered("9", "z")}, []string{"assistant  [1]", "tool 1 x"}},
		{"an id again", []v1alpha1.SessionMessage{asked("", "1"), answered("1", "x"), asked("again", "1"), answered("1", "y")}, []string{"assistant  [1]", "tool 1 x", "assistant again"}},
		{"an id twice in one turn", []v1alpha1.SessionMessage{asked("twice", "1", "1"), answered("1", "x")}, []string{"assistant twice"}},
		{"arguments that are no JSON", []v1alpha1.SessionMessage{broken, answered("1", "x")}, []string{"assistant broken"}},
	} {
		system, messages := replay(tc.in)
		var got []string
		for _, s := range system {
			got = append(got, "system "+s)
		}
		for _, m := range messages {
			switch {
			case m.Role == llm.RoleTool:
				got = append(got, fmt.Sprintf("tool %s %s", m.ToolCallID, m.Text))
			case len(m.ToolCalls) > 0:
				var ids []string
				for _, c := range m.ToolCalls {
					ids = append(ids, c.ID)
				}
				got = append(got, fmt.Sprintf("%s %s %v", m.Role, m.Text, ids))
			default:
				got = append(got, fmt.Sprintf("%s %s", m.Role, m.Text))
			}
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, d)
		}
	}
}

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
		n     int // messages there are
		want  []string
		asked []string
		err   string
	}{
		{name: "no session", want: []string{"sys", "prompt"}},
		{name: "empty", ref: &v1alpha1.TaskSessionReference{Name: "s"}, want: []string{"sys", "prompt"}, asked: []string{"newest=50"}},
		{name: "all", ref: &v1alpha1.TaskSessionReference{Name: "s", MaxMessages: limit(7)}, n: 2, want: []string{"sys", "1", "2", "prompt"}, asked: []string{"newest=7"}},
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
			messages, err := (&run{runnertest.New(t, server.URL, v1alpha1.TaskSpec{SessionRef: tc.ref}).Run}).conversation(t.Context(), "prompt", "sys")
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
