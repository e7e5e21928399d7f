// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

// TestTools: what a call of each tool asks the server, and what its answer or refusal is for the model. What does not
// satisfy the schema asks nothing.
func TestTools(t *testing.T) {
	var asked any
	var refusal error
	found := []v1alpha1.MemoryMatch{{Score: 7, Memory: v1alpha1.Memory{
		ObjectMeta: metav1.ObjectMeta{Name: "mem-1"},
		Spec:       v1alpha1.MemorySpec{Content: "the gate\u200b opens", Tags: []string{"o\u202eps"}, Source: "handbook"},
		Status:     v1alpha1.MemoryStatus{Origin: &v1alpha1.MemoryOrigin{TaskName: "t", Sequence: 9}},
	}}}
	given := toolkit.Given{
		Recall: func(_ context.Context, s v1alpha1.MemorySearchSpec) ([]v1alpha1.MemoryMatch, error) {
			asked = s
			return found, refusal
		},
		Propose: func(_ context.Context, s v1alpha1.MemoryProposalSpec) (*v1alpha1.MemoryProposal, error) {
			asked = s
			return &v1alpha1.MemoryProposal{ObjectMeta: metav1.ObjectMeta{Name: "mprop-1"}, Status: v1alpha1.MemoryProposalStatus{State: v1alpha1.ProposalPending}}, refusal
		},
		SearchTranscript: func(_ context.Context, s v1alpha1.TranscriptSearchSpec) ([]v1alpha1.TranscriptMatch, error) {
			asked = s
			return nil, refusal
		},
	}
	var tools []tool.Tool
	for _, b := range []toolkit.Tool{RecallBuiltin, RememberBuiltin, ProposeBuiltin, SearchBuiltin} {
		made, err := b.New(given)
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, made)
	}
	catalogue, err := tool.NewCatalogue(tools...)
	if err != nil {
		t.Fatal(err)
	}
	const pending = `{"success":true,"data":{"id":"mprop-1","status":"pending"}}`
	const recalled = `{"success":true,"data":{"memories":[{"id":"mem-1","content":"the gate opens","tags":["ops"],"source":"handbook","score":7,"from_task":"t","from_sequence":9}]}}`
	long := strings.Repeat("é", 100)
	for _, c := range []struct {
		tool, arguments string
		asked           any
		want            string
	}{
		{builtin.RecallMemory.Name, `{}`, v1alpha1.MemorySearchSpec{Limit: 10, Recall: true}, recalled},
		{
			builtin.RecallMemory.Name, `{"query":"gate","tags":["a"],"task_name":"t","agent_name":"g","source":"s","limit":50,"include_disabled":true}`,
			v1alpha1.MemorySearchSpec{Query: "gate", Tags: []string{"a"}, TaskName: "t", AgentName: "g", Source: "s", Limit: 50, IncludeDisabled: true, Recall: true},
			recalled,
		},
		{builtin.RecallMemory.Name, `{"limit":51}`, nil, `"errorType":"invalid_arguments"`},
		{builtin.RecallMemory.Name, `{"limit":0}`, nil, `"errorType":"invalid_arguments"`},
		{
			builtin.Remember.Name, `{"content":"` + long + `\nmore","description":"because","tags":["a","b"]}`,
			v1alpha1.MemoryProposalSpec{
				Type: v1alpha1.ProposalMemory, Title: strings.Repeat("é", 79) + "…", Content: long + "\nmore", Description: "Tags: a, b\nbecause",
			},
			pending,
		},
		{builtin.Remember.Name, `{"content":"x","title":"the x"}`, v1alpha1.MemoryProposalSpec{Type: v1alpha1.ProposalMemory, Title: "the x", Content: "x"}, pending},
		{builtin.Remember.Name, `{"content":""}`, nil, `"errorType":"invalid_arguments"`},
		{
			builtin.ProposeMemory.Name, `{"title":"t","type":"skill","skill_name":"s","description":"d","content":"c","patch":"p","agent_name":"g"}`,
			v1alpha1.MemoryProposalSpec{Title: "t", Type: v1alpha1.ProposalSkill, SkillName: "s", Description: "d", Content: "c", Patch: "p", AgentName: "g"},
			pending,
		},
		{builtin.ProposeMemory.Name, `{"content":"c"}`, nil, `"errorType":"invalid_arguments"`},
		{builtin.SearchTranscript.Name, `{"query":"q"}`, v1alpha1.TranscriptSearchSpec{Query: "q"}, `{"success":true,"data":{"messages":[]}}`},
		{
			builtin.SearchTranscript.Name, `{"query":"q","session_name":"s","exclude_session_name":"e","roles":["user"],"limit":3,"max_snippet_length":20}`,
			v1alpha1.TranscriptSearchSpec{Query: "q", SessionName: "s", ExcludeSessionName: "e", Roles: []v1alpha1.MessageRole{v1alpha1.RoleUser}, Limit: 3, MaxSnippetLength: 20},
			`{"success":true,"data":{"messages":[]}}`,
		},
		{builtin.SearchTranscript.Name, `{"query":"q","max_snippet_length":5000}`, nil, `"errorType":"invalid_arguments"`},
		{builtin.SearchTranscript.Name, `{}`, nil, `"errorType":"invalid_arguments"`},
	} {
		asked, refusal = nil, nil
		if got := catalogue.Call(t.Context(), c.tool, c.arguments).Text; !strings.Contains(got, c.want) {
			t.Errorf("%s %s answered %s, want %s", c.tool, c.arguments, got, c.want)
		}
		if diff := cmp.Diff(c.asked, asked); diff != "" {
			t.Errorf("%s %s asked for something else:\n%s", c.tool, c.arguments, diff)
		}
		if c.asked == nil {
			continue
		}
		refusal = tool.Errorf(tool.TypePermissionDenied, "not yours")
		if got := catalogue.Call(t.Context(), c.tool, c.arguments).Text; !strings.Contains(got, `"errorType":"permission_denied"`) || !strings.Contains(got, "not yours") {
			t.Errorf("%s, refused, answered %s", c.tool, got)
		}
	}
}
