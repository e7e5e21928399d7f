// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// hostile are texts that an agent could write. STEAL is an address that must not be asked.
var hostile = []string{
	`<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>`,
	`<svg/onload=window.pwned=1><iframe srcdoc="<script>parent.pwned=1</script>">`,
	`[safe](javascript:window.pwned=1) [safe](data:text/html,<script>window.pwned=1</script>)`,
	`![picture](STEAL/a.png) <link rel=stylesheet href=STEAL/b.css> <img src="STEAL/c.png">`,
	"invoice\u202egnp.exe \u2066hidden\u2069 zero\u200bwidth",
	`"><style>*{display:none}</style><base href="STEAL/"><meta http-equiv=refresh content="0;STEAL/d">`,
	`[https://bank.example](https://evil.example/STEAL)`,
	"```\n</code></pre><script>window.pwned=1</script>\n```\n" + strings.Repeat("> ", 500) + strings.Repeat("- ", 500) + strings.Repeat("**_`[", 500),
	strings.Repeat("QUJDRA==", 10_000),
	"| a | b |\n|---|--:|\n" + strings.Repeat("| <img src=STEAL/t.png onerror=window.pwned=1> | [x](javascript:window.pwned=1) |\n", 500),
	`{{constructor.constructor('window.pwned=1')()}} ${window.pwned=1}`,
}

// What agents write stays text: nothing of it runs, and nothing that it names is fetched.
func TestHostileText(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	f := fill(t)
	var asked atomic.Int64
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer thief.Close()
	f.Task("hostile", hostile[0])
	args := map[string]string{}
	for _, text := range hostile {
		text = strings.ReplaceAll(text, "STEAL", thief.URL)
		args[text[:min(len(text), 40)]] = text[:min(len(text), 500)]
		f.Post("hostile",
			v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelMessage, Summary: text, ContentText: text},
			v1alpha1.ExecutionEvent{Type: v1alpha1.EventToolCallStarted, ToolName: text[:min(len(text), 60)], ToolCallID: text[:min(len(text), 60)]},
			v1alpha1.ExecutionEvent{Type: v1alpha1.EventToolCallFailed, Severity: v1alpha1.SeverityError, ToolName: text[:min(len(text), 60)], ToolCallID: text[:min(len(text), 60)], Summary: text},
		)
	}
	all := strings.ReplaceAll(strings.Join(hostile, "\n\n"), "STEAL", thief.URL)
	f.Post("hostile", v1alpha1.ExecutionEvent{Type: v1alpha1.EventToolCallCompleted, Content: &apiextensionsv1.JSON{Raw: quoted(t, map[string]any{"text": all[:8000], all[:60]: []string{all[:500]}})}})
	for _, kind := range []v1alpha1.EventType{v1alpha1.EventModelRequestStarted, v1alpha1.EventModelRequestCompleted, v1alpha1.EventPlanUpdated, v1alpha1.EventTaskMessageReceived} {
		short := strings.ReplaceAll(hostile[0], "\n", " ")[:60]
		f.Post("hostile", v1alpha1.ExecutionEvent{Type: kind, Summary: hostile[1], ContentText: hostile[3], AgentName: short, Provider: short, Model: short, StopReason: short})
	}
	risky := f.AskWith("hostile", v1alpha1.ApprovalSpec{Action: hostile[0], RiskSummary: hostile[2], RequestedBy: hostile[5], Severity: v1alpha1.SeverityError}, args)
	id := f.Ask("hostile", strings.ReplaceAll(hostile[0]+hostile[3], "STEAL", thief.URL), args)
	f.Keep("hostile", "result", all+strings.Repeat("QUJDRA==", 5<<20/8))
	f.Keep("hostile", "log", all)
	f.Keep("hostile", "artifacts/invoice\u202egnp.exe", "x")
	f.Keep("hostile", `artifacts/"><img src=x onerror=window.pwned=1>.html`, "<script>window.pwned=1</script>")
	f.hostileObjects(all[:16_000])
	changed := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "changed"}, Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}, Workspace: &v1alpha1.TaskWorkspace{
		GitRepo: "https://git.example/r", Intent: v1alpha1.WorkspaceWrite, PublicationCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "pusher"},
	}}}
	if _, err := f.API.CoreV1alpha1().Tasks("team").Create(t.Context(), changed, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Keep("changed", "artifacts/workspace.diff", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,9 @@\n-old\n+"+strings.ReplaceAll(all[:8000], "\n", "\n+")+"\n")
	f.drive("hostile.mjs", 5, "TOKEN="+f.token("ann", "platform-operator"), "APPROVAL="+id, "RISKY="+risky)
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests went to an address in a text", n)
	}
}

// Somebody with a keyboard and the right decides on an approval; somebody without the right is shown no button.
func TestDecideByKeyboard(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	f := fill(t)
	yes := f.Ask("asks", "a first action", map[string]string{"code": "one"})
	no := f.Ask("plain", "a second action", map[string]string{"code": "two"})
	f.drive("decide.mjs", 3, "TOKEN="+f.token("ann", "platform-approver"), "VIEWER="+f.token("vic", "platform-viewer"), "YES="+yes, "NO="+no)
	for id, want := range map[string]v1alpha1.ApprovalStatus{
		yes: {State: v1alpha1.ApprovalApproved, DecisionReason: "go on"},
		no:  {State: v1alpha1.ApprovalDeclined, DecisionReason: "not now"},
	} {
		a, err := f.API.CoreV1alpha1().Approvals("team").Get(t.Context(), id, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if s := a.Status; s.State != want.State || s.DecisionReason != want.DecisionReason || s.DecisionActor != "system:serviceaccount:team:ann" {
			t.Errorf("%s: %+v", a.Spec.Action, s)
		}
	}
}

// Somebody with a keyboard forks a run at one of its events.
func TestForkByKeyboard(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	f := fill(t)
	f.drive("fork.mjs", 1, "TOKEN="+f.token("eve", "platform-editor"))
	fork, err := f.API.CoreV1alpha1().Tasks("team").Get(t.Context(), "again", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if from, after := fork.Annotations[v1alpha1.AnnotationForkSourceTask], fork.Annotations[v1alpha1.AnnotationForkSourceSeq]; from != "plain" || after != "2" {
		t.Errorf("the fork is of %q after event %q", from, after)
	}
}

// hostileObjects makes an object of each other kind that the page shows, of hostile texts, and a session in which they are said.
func (f *filled) hostileObjects(text string) {
	f.t.Helper()
	ctx, c := f.t.Context(), f.API.CoreV1alpha1()
	named := metav1.ObjectMeta{Name: "hostile"}
	check := func(_ any, err error) {
		f.t.Helper()
		if err != nil {
			f.t.Fatal(err)
		}
	}
	check(c.Agents("team").Create(ctx, &v1alpha1.Agent{ObjectMeta: named, Spec: v1alpha1.AgentSpec{SystemPrompt: &v1alpha1.AgentSystemPrompt{Inline: text}}}, metav1.CreateOptions{}))
	check(c.Tools("team").Create(ctx, &v1alpha1.Tool{ObjectMeta: named, Spec: v1alpha1.ToolSpec{Description: text[:1000], HTTP: &v1alpha1.ToolHTTP{URL: "https://tool.example"}}}, metav1.CreateOptions{}))
	check(c.Skills("team").Create(ctx, &v1alpha1.Skill{ObjectMeta: named, Spec: v1alpha1.SkillSpec{Description: text[:1000], Content: v1alpha1.SkillContent{Inline: text}}}, metav1.CreateOptions{}))
	check(c.Memories("team").Create(ctx, &v1alpha1.Memory{ObjectMeta: named, Spec: v1alpha1.MemorySpec{Content: text[:2000]}}, metav1.CreateOptions{}))
	check(c.MemoryProposals("team").Create(ctx, &v1alpha1.MemoryProposal{ObjectMeta: named, Spec: v1alpha1.MemoryProposalSpec{
		Title: strings.ReplaceAll(text[:100], "\n", " "), Description: text[:1000], Content: text[:2000],
	}}, metav1.CreateOptions{}))
	check(c.MemoryProposals("team").Create(ctx, &v1alpha1.MemoryProposal{ObjectMeta: metav1.ObjectMeta{Name: "reviewed"}, Spec: v1alpha1.MemoryProposalSpec{
		Title: "Reviewed", Type: v1alpha1.ProposalSkill, SkillName: "hostile", Patch: text[:4000],
	}}, metav1.CreateOptions{}))
	check(c.MemoryProposals("team").Review(ctx, "reviewed", &v1alpha1.MemoryProposalReview{Spec: v1alpha1.MemoryProposalReviewSpec{
		Status: v1alpha1.ProposalRejected, ReviewNote: text[:1000],
	}}, metav1.CreateOptions{}))
	f.Monitor("hostile", text[:950], "javascript:window.pwned=1")
	f.Gateway("hostile", text[:950])
	check(c.Sessions("team").Create(ctx, &v1alpha1.Session{ObjectMeta: named, Spec: v1alpha1.SessionSpec{SessionType: v1alpha1.SessionTypeChat}}, metav1.CreateOptions{}))
	check(c.Sessions("team").AppendMessages(ctx, "hostile", &v1alpha1.SessionTranscript{Items: []v1alpha1.SessionMessage{
		{ID: "1", Role: v1alpha1.RoleUser, Content: text},
		{ID: "2", Role: v1alpha1.RoleAssistant, Content: text, ToolCalls: []v1alpha1.MessageToolCall{{ID: text[:40], Name: text[:60], Arguments: string(quoted(f.t, text[:500]))}}},
		{ID: "3", Role: v1alpha1.RoleTool, Name: text[:60], ToolCallID: text[:40], Content: text},
	}}, metav1.CreateOptions{}))
}

func quoted(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
