// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestMemoryFilters: filters make a list of memories, or of proposals, a search; without them it is the server's list.
func TestMemoryFilters(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var sent struct{ Spec json.RawMessage }
		_ = json.Unmarshal(body, &sent) // a list has none
		_, resource, _ := strings.Cut(r.URL.Path, "/namespaces/default/")
		asked = append(asked, strings.TrimSpace(resource+" "+r.URL.Query().Get("fieldSelector")+" "+string(sent.Spec)))
		w.Header().Set("Content-Type", "application/json")
		version := v1alpha1.SchemeGroupVersion.String()
		switch resource {
		case "memorysearches":
			out := v1alpha1.MemorySearch{TypeMeta: metav1.TypeMeta{Kind: "MemorySearch", APIVersion: version}}
			m := v1alpha1.Memory{ObjectMeta: metav1.ObjectMeta{Name: "gate"}, Spec: v1alpha1.MemorySpec{Content: "the gate\nis green", Tags: []string{"ci"}, AgentName: "builder"}}
			m.Status.Disabled = true
			out.Status.Items = []v1alpha1.MemoryMatch{{Memory: m}}
			_ = json.NewEncoder(w).Encode(out)
		case "memoryproposalsearches":
			out := v1alpha1.MemoryProposalSearch{TypeMeta: metav1.TypeMeta{Kind: "MemoryProposalSearch", APIVersion: version}}
			out.Status.Items = []v1alpha1.MemoryProposal{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.MemoryProposalSpec{Title: "Green"}, Status: v1alpha1.MemoryProposalStatus{State: v1alpha1.ProposalApplied}}}
			_ = json.NewEncoder(w).Encode(out)
		default:
			_, _ = io.WriteString(w, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[{"name":"Name"}],"rows":[]}`)
		}
	}))
	t.Cleanup(s.Close)
	for _, c := range []struct{ args, asked, out string }{
		{"memory list", "memories", "nothing found"},
		{"memory list --query gate --tags ci --ids gate,door --include-disabled --source s --limit 7", `memorysearches  {"query":"gate","ids":["gate","door"],"tags":["ci"],"source":"s","includeDisabled":true,"limit":7}`, "NAME AGENT SESSION STATE RECALLED CONTENT|gate builder Disabled 0 the gate is green"},
		{"memory list --agent builder -o name", `memorysearches  {"agentName":"builder","limit":200}`, "memory.core.platform.ai/gate"},
		{"memory list --include-deleted -o wide", `memorysearches  {"includeDeleted":true,"limit":200}`, "NAME AGENT SESSION STATE RECALLED CONTENT TAGS SOURCE|gate builder Disabled 0 the gate is green ci"},
		{"proposal list", "memoryproposals status.state=pending", "nothing found"},
		{"proposal list --status applied --type memory --agent-name a --task-name t", "memoryproposals status.state=applied,spec.type=memory,spec.agentName=a,spec.taskName=t", "nothing found"},
		{"memory proposal list --query green --state all --type memory", `memoryproposalsearches  {"query":"green","type":"memory"}`, "NAME STATE TYPE TITLE AGENT TASK|p applied Green"},
	} {
		asked = nil
		var b strings.Builder
		Main(t.Context(), "platform", append([]string{"--kubeconfig", "/dev/null", "-s", s.URL}, strings.Split(c.args, " ")...), Streams{In: strings.NewReader(""), Out: &b, Err: &b})
		var lines []string
		for line := range strings.Lines(b.String()) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		if diff := cmp.Diff([]string{c.asked}, asked); diff != "" || strings.Join(lines, "|") != c.out {
			t.Errorf("%s: %s\nprinted %q", c.args, diff, strings.Join(lines, "|"))
		}
	}
}
