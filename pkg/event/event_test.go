// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

type ev = v1alpha1.ExecutionEvent

func raw(s string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(s)} }

func TestTable(t *testing.T) {
	const documented, own = 41, 5 // ToolCallJudged, the two of messages and the two of publications are not in the contract
	if n := len(Types()); n != documented+own {
		t.Errorf("%d types, the contract has %d, and there are %d more", n, documented, own)
	}
	var terminals, owned, decisions, lates []string
	for _, typ := range Types() {
		if Terminal(typ) {
			terminals = append(terminals, string(typ))
		}
		if ControllerOwned(typ) {
			owned = append(owned, string(typ))
		}
		if Late(typ) {
			lates = append(lates, string(typ))
		}
		if ApprovalDecision(typ) {
			decisions = append(decisions, string(typ))
		}
		if strings.HasPrefix(string(typ), "Approval") != Approval(typ) {
			t.Errorf("Approval(%s) = %v", typ, Approval(typ))
		}
	}
	want := []string{"TaskCancelled", "TaskFailed", "TaskSucceeded"}
	if diff := cmp.Diff(want, terminals); diff != "" {
		t.Error(diff)
	}
	wantDecisions := []string{"ApprovalApproved", "ApprovalCancelled", "ApprovalDeclined", "ApprovalExpired"}
	if diff := cmp.Diff(wantDecisions, decisions); diff != "" {
		t.Error(diff)
	}
	wantOwned := []string{
		"ApprovalApproved", "ApprovalCancelled", "ApprovalDeclined", "ApprovalExecutionUpdated", "ApprovalExpired", "DeliveryStateChanged", "GatewayDeliveryCompleted",
		"PlanUpdated", "TaskCancelled", "TaskCreated", "TaskFailed", "TaskForkCreated", "TaskForkRequested", "TaskJobCreated", "TaskMessageReceived", "TaskMessagesRead", "TaskPhaseChanged",
		"TaskStarted", "TaskSucceeded", "ToolCallJudged",
	}
	if diff := cmp.Diff(wantOwned, owned); diff != "" {
		t.Error(diff)
	}
	wantLates := []string{"GatewayDeliveryCompleted", "TaskForkCreated", "TaskForkRequested"}
	if diff := cmp.Diff(wantLates, lates); diff != "" {
		t.Error(diff)
	}
	if Known("TaskDeleted") || Known("") {
		t.Error("a type that is not in the list is known")
	}
}

// docs/security.md shows the table of types exactly.
func TestTableIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```events\n")
	block, _, _ = strings.Cut(block, "```")
	documented := map[string]string{}
	for line := range strings.Lines(block) {
		by, types, _ := strings.Cut(line, ":")
		for _, typ := range strings.FieldsFunc(types, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }) {
			documented[typ] = by
		}
	}
	want := map[string]string{}
	for _, typ := range Types() {
		want[string(typ)] = string(WrittenBy(typ))
	}
	if diff := cmp.Diff(want, documented); diff != "" {
		t.Errorf("the block events of docs/security.md differs from the table (-table +block):\n%s", diff)
	}
}

func TestNormalizeSeverity(t *testing.T) {
	for in, want := range map[v1alpha1.EventSeverity]v1alpha1.EventSeverity{
		"\tWarning\n": "warning", "ERROR": "error", "debug": "debug", "": "info", "fatal": "info",
	} {
		if got := NormalizeSeverity(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	minus := int64(-1)
	for _, tc := range []struct {
		name, field string
		event       ev
	}{
		{"good", "", ev{Type: "TaskStarted", DedupKey: strings.Repeat("a", 512), Content: raw(`{}`)}},
		{"no type", "type", ev{}},
		{"unknown type", "type", ev{Type: "Nonsense"}},
		{"session stream", "streamType", ev{Type: "TaskStarted", StreamType: "session"}},
		{"long key", "dedupKey", ev{Type: "TaskStarted", DedupKey: strings.Repeat("a", 513)}},
		{"broken content", "content", ev{Type: "TaskStarted", Content: raw(`{`)}},
		{"long tool", "toolName", ev{Type: "TaskStarted", ToolName: strings.Repeat("a", 513)}},
		{"negative", "inputTokens", ev{Type: "TaskStarted", InputTokens: &minus}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := Validate(&tc.event)
			var f *FieldError
			switch {
			case tc.field == "" && err != nil:
				t.Error(err)
			case tc.field != "" && (!errors.As(err, &f) || f.Field != tc.field || !errors.Is(err, ErrInvalid)):
				t.Errorf("got %v, want an error of %s", err, tc.field)
			}
		})
	}
}

func TestSanitizeCuts(t *testing.T) {
	e := &ev{
		Type: "ToolCallCompleted", Severity: "LOUD",
		Summary:     "first\nsecond " + strings.Repeat("ä", MaxSummaryChars),
		ContentText: strings.Repeat("b c ", MaxContentTextChars),
		Content:     raw(`{"a":"` + strings.Repeat("d", MaxContentBytes) + `"}`),
	}
	if r := Sanitize(e); !r.Truncated || r.Redacted {
		t.Errorf("report %+v", r)
	}
	for name, s := range map[string]struct {
		text  string
		limit int
	}{"summary": {e.Summary, MaxSummaryChars}, "contentText": {e.ContentText, MaxContentTextChars}} {
		if n := utf8.RuneCountInString(s.text); n != s.limit || !strings.HasSuffix(s.text, "…") {
			t.Errorf("%s has %d characters and ends %q", name, n, s.text[len(s.text)-8:])
		}
	}
	if !strings.HasPrefix(e.Summary, "first second ") || e.Severity != "info" {
		t.Errorf("summary %q…, severity %s", e.Summary[:20], e.Severity)
	}
	var c struct {
		Truncated     bool
		Preview       string
		OriginalBytes int
	}
	if err := json.Unmarshal(e.Content.Raw, &c); err != nil || !c.Truncated || !strings.HasPrefix(c.Preview, `{"a":"ddd`) || c.OriginalBytes != MaxContentBytes+8 {
		t.Errorf("content %.80s, %v", e.Content.Raw, err)
	}
	want := &v1alpha1.EventTruncation{
		SummaryTruncated: true, SummaryOriginalChars: 13 + MaxSummaryChars,
		ContentTextTruncated: true, ContentTextOriginalChars: 4 * MaxContentTextChars,
		ContentJSONTruncated: true, ContentJSONOriginalBytes: MaxContentBytes + 8,
	}
	if diff := cmp.Diff(want, e.Truncation); diff != "" {
		t.Error(diff)
	}
	twice(t, e)
}

// twice checks that sanitizing again changes nothing.
func twice(t *testing.T, e *ev) {
	t.Helper()
	before := e.DeepCopy()
	if r := Sanitize(e); r != (Report{}) {
		t.Errorf("sanitizing again: %+v", r)
	}
	if diff := cmp.Diff(before, e); diff != "" {
		t.Errorf("sanitizing again changed it:\n%s", diff)
	}
}

func TestSanitizeRedacts(t *testing.T) {
	secret := "ghp_" + strings.Repeat("aB3d", 6)
	e := &ev{
		Type: "ToolCallFailed", Summary: "with " + secret, ContentText: "Cookie: " + secret, ToolName: secret,
		DedupKey: "call " + secret, Content: raw(`{ "apiKey": "x", "log": "` + secret + `" }`),
		Truncation: &v1alpha1.EventTruncation{SummaryTruncated: true, SummaryOriginalChars: 9000, ContentTextOriginalChars: -4},
	}
	if r := Sanitize(e); !r.Redacted || r.Truncated {
		t.Errorf("report %+v", r)
	}
	b, err := json.Marshal(e)
	if err != nil || strings.Contains(string(b), secret) {
		t.Errorf("%s %v", b, err)
	}
	if got := string(e.Content.Raw); got != `{"apiKey":"[REDACTED]","log":"[REDACTED]"}` {
		t.Error(got)
	}
	if !strings.HasPrefix(e.DedupKey, "sha256-") {
		t.Errorf("dedupKey %q", e.DedupKey)
	}
	if diff := cmp.Diff(&v1alpha1.EventTruncation{SummaryTruncated: true, SummaryOriginalChars: 9000}, e.Truncation); diff != "" {
		t.Error(diff)
	}
	twice(t, e)
}

// A secret that a later field of an event shows to be one is removed from the earlier ones as well.
func TestSanitizeLabels(t *testing.T) {
	const secret = "vWf3kQz81LmPx7Rt"
	e := &ev{Type: "ToolCallFailed", ToolName: secret, StopReason: secret, Summary: "of " + secret, Content: raw(`{"password":"` + secret + `"}`)}
	if r := Sanitize(e); !r.Redacted {
		t.Errorf("report %+v", r)
	}
	if b, err := json.Marshal(e); err != nil || strings.Contains(string(b), secret) {
		t.Errorf("%s %v", b, err)
	}
	twice(t, e)
}

func TestLift(t *testing.T) {
	for _, tc := range []struct {
		name, typ, content, want string
	}{
		{"plain", "ModelRequestCompleted", `{"provider":"p","model":"m","inputTokens":1,"outputTokens":2,"stopReason":"end"}`, "p m end 1 2 - - -"},
		{"vendor spelling", "ModelRequestCompleted", `{"model_name":"m","finish_reason":"stop","usage":{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":1}}}`, " m stop 3 4 1 - -"},
		{"context", "ModelContextUpdated", `{"context_window_used":5,"contextWindow":10}`, "   - - - 5 10"},
		{"zero is a value", "ModelUsageUpdated", `{"inputTokens":0}`, "   0 - - - -"},
		{"no number", "ModelUsageUpdated", `{"inputTokens":1.5,"outputTokens":-1,"cachedTokens":null}`, "   - - - - -"},
		{"not on this type", "ToolCallCompleted", `{"model":"m","inputTokens":1}`, "   - - - - -"},
		{"no object", "ModelRequestFailed", `[1]`, "   - - - - -"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := &ev{Type: v1alpha1.EventType(tc.typ), Content: raw(tc.content)}
			Sanitize(e)
			var b strings.Builder
			b.WriteString(e.Provider + " " + e.Model + " " + e.StopReason)
			for _, c := range counts(e) {
				if *c.value == nil {
					b.WriteString(" -")
				} else {
					v, _ := json.Marshal(**c.value)
					b.WriteString(" " + string(v))
				}
			}
			if b.String() != tc.want {
				t.Errorf("got %q, want %q", b.String(), tc.want)
			}
			twice(t, e)
		})
	}
}

func TestName(t *testing.T) {
	if got := Name("a.b", 7); got != "a.b.0000000007" {
		t.Error(got)
	}
	for _, bad := range []string{"", ".", "a", "a.", ".0000000001", "a.1", "a.0000000000", "a.00000000001", "a.000000001x", "a.+000000001", "a.99999999999999999999"} {
		if task, seq, err := ParseName(bad); !errors.Is(err, ErrName) {
			t.Errorf("%q parses to %q %d", bad, task, seq)
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add("a", int64(1), "a.0000000001")
	f.Add("a.b", int64(99999999999), "x.12345678901")
	f.Fuzz(func(t *testing.T, task string, seq int64, name string) {
		if gotTask, gotSeq, err := ParseName(name); err == nil && Name(gotTask, gotSeq) != name {
			t.Fatalf("%q parses to %q %d", name, gotTask, gotSeq)
		}
		if task == "" || seq < 1 {
			return
		}
		if gotTask, gotSeq, err := ParseName(Name(task, seq)); err != nil || gotTask != task || gotSeq != seq {
			t.Fatalf("%q %d: %q %d %v", task, seq, gotTask, gotSeq, err)
		}
	})
}

func FuzzSanitize(f *testing.F) {
	f.Add("token=abc ", "https://u:p@h/?q", `{"a":"password=x"}`, 1)
	f.Add("Authorization: Bearer x", `"secret":"`, `[1,2]`, 5000)
	f.Fuzz(func(t *testing.T, a, b, content string, n int) {
		n = min(max(n, 1), 20_000)
		e := &ev{Type: "ModelRequestCompleted", Summary: strings.Repeat(a, 1+n/max(len(a), 1)), ContentText: strings.Repeat(b, 1+3*n/max(len(b), 1)), ToolName: a}
		if q, err := json.Marshal(strings.Repeat(a+b, 1+4*n/max(len(a+b), 1))); err == nil && json.Valid([]byte(content)) {
			e.Content = raw(`{"x":` + content + `,"y":` + string(q) + `}`)
		}
		if Validate(e) != nil {
			return
		}
		Sanitize(e)
		if utf8.RuneCountInString(e.Summary) > MaxSummaryChars || utf8.RuneCountInString(e.ContentText) > MaxContentTextChars {
			t.Fatal("over the limit")
		}
		if e.Content != nil && (len(e.Content.Raw) > MaxContentBytes || !json.Valid(e.Content.Raw)) {
			t.Fatalf("content of %d bytes", len(e.Content.Raw))
		}
		twice(t, e)
	})
}

func TestMeasures(t *testing.T) {
	for _, tc := range []struct{ typ, content, want string }{
		{"ModelRequestCompleted", `{"durationMs":1500}`, "model_request succeeded 1.5s"},
		{"ModelRequestFailed", `{"x":{"durationMs":1},"durationMs":20,"errorClass":"auth"}`, "model_request failed 20ms auth"},
		{"ToolCallCompleted", `{"durationMs":0}`, "tool_call succeeded 0s"},
		{"ToolCallFailed", `{"durationMs":"3","errorType":"Permission-Denied"}`, "permission"},
		{"ToolCallFailed", `{"durationMs":2592000001,"errorType":"invented"}`, "other"},
		{"ToolCallFailed", `{"errorType":7,"reason":"MaxIterations"}`, "limit"},
		{"TaskFailed", `"reason"`, "other"},
		{"TaskFailed", "", "other"},
		{"TaskStarted", `{"durationMs":5,"reason":"InternalError"}`, ""},
		{"ModelRequestCompleted", `{}`, ""},
	} {
		e := &ev{Type: v1alpha1.EventType(tc.typ)}
		if tc.content != "" {
			e.Content = raw(tc.content)
		}
		var got []string
		if m, r, d, ok := Reported(e); ok {
			got = append(got, m, r, d.String())
		}
		if c, ok := FailureCategory(e); ok {
			got = append(got, c)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s %s: %q, want %q", tc.typ, tc.content, got, tc.want)
		}
	}
}
