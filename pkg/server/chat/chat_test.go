// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// A secret is never shown, wherever the pieces of a text are cut, and nothing else is lost.
func TestTextHidesSecretsInPieces(t *testing.T) {
	t.Parallel()
	const secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF"
	whole := "The key is " + secret + " and the header is\nAuthorization: Bearer " + secret + "\n" + strings.Repeat("more words ", 20) + "end"
	for size := 1; size < len(whole); size += 7 {
		var shown text
		var out strings.Builder
		for at := 0; at < len(whole); at += size {
			out.WriteString(shown.add(whole[at:min(at+size, len(whole))]))
		}
		out.WriteString(shown.rest())
		got := out.String()
		if strings.Contains(got, "abcdefghij") || !strings.HasPrefix(got, "The key is ") || !strings.HasSuffix(got, "more words end") {
			t.Errorf("in pieces of %d: %q", size, got)
		}
	}
}

// TestRemovedOnce: a value that a turn identifies as a secret is removed from all that follows in its session, and in no other.
func TestRemovedOnce(t *testing.T) {
	t.Parallel()
	const secret = "Zk4Qx7hunter2"
	removed := newRemovals()
	of := func(uid types.UID) cleaner { return cleaner{removed.of(uid)} }
	if messages, _ := of("a").messages([]llm.Message{{Role: llm.RoleTool, Text: `{"log":"DB_PASSWORD=` + secret + `"}`}}); strings.Contains(messages[0].Text, secret) {
		t.Fatalf("%+v", messages)
	}
	shown := text{clean: of("a")}
	got := shown.add("The database took "+secret[:5]) + shown.add(secret[5:]+" and answered.\n") + shown.rest()
	if strings.Contains(got, secret) || !strings.HasSuffix(got, "and answered.\n") {
		t.Errorf("the answer: %q", got)
	}
	messages, withheld := of("a").messages([]llm.Message{{Role: llm.RoleAssistant, Text: "It is " + secret, ToolCalls: []llm.ToolCall{{ID: "1", Arguments: `{"try":"` + secret + `"}`}}}})
	if strings.Contains(messages[0].Text+messages[0].ToolCalls[0].Arguments, secret) || !slices.Equal(withheld, []string{"1"}) {
		t.Errorf("the next turn: %+v, %v", messages, withheld)
	}
	if got := of("b").text("try " + secret); got != "try "+secret {
		t.Errorf("another session: %q", got)
	}
	removed.forget("a")
	if got := of("a").text("try " + secret); got != "try "+secret {
		t.Errorf("a session that was deleted: %q", got)
	}
}

// An answer that repeats the one before it is not shown; any other is shown whole, wherever its pieces end.
func TestEcho(t *testing.T) {
	t.Parallel()
	const of = "It runs."
	for answer, want := range map[string]string{"It runs.": "", "It runs.\n": "", "It runs. Still.": "\n\nIt runs. Still.", "I wait.": "\n\nI wait.", "It": "\n\nIt", "": ""} {
		for size := 1; size <= len(answer)+1; size++ {
			e := echo{of: of}
			got := ""
			for piece := range slices.Chunk([]byte(answer), size) {
				got += e.add(string(piece))
			}
			if got += e.rest(); got != want {
				t.Errorf("%q in pieces of %d: %q, want %q", answer, size, got, want)
			}
		}
	}
	var e echo
	if got := e.add("a") + e.rest(); got != "a" {
		t.Errorf("without an earlier answer: %q", got)
	}
}

// Tools that manage objects are offered for what the user asks for, and for a confirmation of that.
func TestIntent(t *testing.T) {
	t.Parallel()
	asked := []v1alpha1.SessionMessage{{Role: v1alpha1.RoleUser, Content: "delete the agent old"}, {Role: v1alpha1.RoleAssistant, Content: "Really?"}}
	for name, tt := range map[string]struct {
		message string
		history []v1alpha1.SessionMessage
		want    string
	}{
		"a question":      {"which tasks run?", nil, ""},
		"create":          {"Create an agent that reviews code", nil, "create_agent create_tool"},
		"change":          {"change the prompt of agent x", nil, "update_agent"},
		"delete":          {"please remove the tool y", nil, "delete_agent delete_tool delete_session"},
		"confirmation":    {"yes, do it", asked, "delete_agent delete_tool delete_session"},
		"not a confirmed": {"which agents are there?", asked, ""},
	} {
		words := intent(tt.message, tt.history)
		var got []string
		for _, of := range builtin.In(builtin.Chats | builtin.APIs) {
			if of.Asked != builtin.Anything && wanted(of.Asked, words) {
				got = append(got, of.Name)
			}
		}
		if d := cmp.Diff(tt.want, strings.Join(got, " ")); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Each tool that the catalogue has in chats or in the vendors' APIs, and that runs do not have, has code here, once, and nothing else has.
// The code makes the tool that the catalogue describes.
func TestBindings(t *testing.T) {
	t.Parallel()
	bound := map[*builtin.Tool]bool{}
	for _, one := range bindings() {
		if bound[one.of] || one.of.In&(builtin.Chats|builtin.APIs) == 0 || one.of.In&builtin.Runs != 0 || one.of.Absent != nil {
			t.Errorf("%s: bound twice, or the catalogue does not have it here", one.of.Name)
		}
		bound[one.of] = true
		if d := cmp.Diff(one.of.Definition(), one.make(&toolbox{}).Definition()); d != "" {
			t.Errorf("%s (-catalogue +code):\n%s", one.of.Name, d)
		}
	}
	for _, of := range builtin.In(builtin.Chats | builtin.APIs) {
		if _, err := carriedOut(&toolbox{}, of, bindings()); err != nil && of.In&builtin.Runs == 0 {
			t.Error(err)
		}
		if wanted(of.Asked, "") != (of.Asked == builtin.Anything) || !wanted(of.Asked, "create, change, delete, pull requests, file_read") {
			t.Errorf("%s: no words ask for the intent %s", of.Name, of.Asked)
		}
	}
}

// The beginning of a text has whole characters, and a mark after them.
func TestBeginning(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "abc": "abc", "äöü": "äöü", "äöüß": "äöü" + cutMark, "abcd": "abc" + cutMark} {
		if got := beginning(text, 3); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// The task of a monitor is one of type ai with a schedule, the repository and the tools for reviews.
func TestMonitor(t *testing.T) {
	t.Parallel()
	b := &toolbox{Toolset: Toolset{Prefix: "chat-", Labels: map[string]string{"a": "b"}}}
	got := b.monitor(&builtin.PRMonitorArguments{
		Name: "Mine", RepoURL: "https://github.com/o/r", Schedule: "@hourly", AgentRef: "reviewer", ProviderRef: "p", ReadCredentialRef: "s", Prompt: "Look at tests.",
	})
	for _, part := range []string{`repo_url "https://github.com/o/r"`, "per_page 30", "event COMMENT", "Look at tests."} {
		if !strings.Contains(got.Spec.Prompt, part) {
			t.Errorf("the prompt lacks %s:\n%s", part, got.Spec.Prompt)
		}
	}
	got.Spec.Prompt = ""
	want := &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Name: "chat-mine", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{
			"platform.ai/pr-monitor-name": "Mine", "platform.ai/disable-coordination-tool-injection": "true",
		}},
		Spec: v1alpha1.TaskSpec{
			Type: v1alpha1.TaskTypeAI, AgentRef: &v1alpha1.NamespacedReference{Name: "reviewer"}, Schedule: "@hourly",
			AI: &v1alpha1.TaskAI{
				ProviderRef: &v1alpha1.NamespacedReference{Name: "p"},
				Tools:       []string{"list_pull_requests", "check_pr_review_marker", "check_pull_request_ci", "review_pull_request", "post_review_comment"},
			},
			Workspace: &v1alpha1.TaskWorkspace{GitRepo: "https://github.com/o/r", ReadCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "s"}},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("task (-want +got):\n%s", d)
	}
}

func TestCheckRepository(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"https://github.com/o/r", "https://github.com/o/r.git", "https://GitHub.com/o-1/r_.x", "git@github.com:o/r.git", "ssh://git@github.com/o/r",
	} {
		if err := checkRepository(address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{
		"", "o/r", "http://github.com/o/r", "https://example.com/o/r", "https://github.com.example.com/o/r", "https://github.com/o", "https://github.com/o/r/",
		"https://github.com/o/r/pull/1", "https://github.com/o/r/issues/1", "https://github.com/o/r/tree/main", "https://github.com/o/r/blob/main/x",
		"https://github.com/o/r/commit/abc", "https://github.com/o/r?tab=x", "https://github.com/o/r?", "https://github.com/o/r#x", "https://github.com/o/r#",
		"https://u:p@github.com/o/r", "https://token@github.com/o/r", "ssh://git:p@github.com/o/r", "git@example.com:o/r", "git@github.com:o/r/x", "file:///o/r",
		"https://github.com/o/..", "https://github.com:8443/o/r", "--upload-pack=x",
	} {
		if err := checkRepository(address); err == nil {
			t.Errorf("%q is accepted", address)
		}
	}
}

// Names of tasks are valid, carry the prefix of their session once, and differ between sessions.
func TestTaskNames(t *testing.T) {
	t.Parallel()
	of := func(uid types.UID) *toolbox {
		return &toolbox{Toolset: Toolset{Prefix: taskPrefix(&v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{UID: uid}})}}
	}
	b, other := of("one"), of("two")
	prefix := b.Prefix
	for name, want := range map[string]string{"Build It!": prefix + "build-it", prefix + "x": prefix + "x", "...": prefix + "task"} {
		if got := b.taskName(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	if long := b.taskName(strings.Repeat("long", 40)); len(long) > 63 || long == b.taskName(strings.Repeat("long", 41)) {
		t.Errorf("a long name: %s", long)
	}
	if b.taskName("x") == other.taskName("x") {
		t.Error("two sessions share names")
	}
}

// TestOrdinaryTextIsNotHeldBack: words of ordinary text are shown as soon as they are complete. Only what may begin a secret, or
// announces one, waits.
func TestOrdinaryTextIsNotHeldBack(t *testing.T) {
	t.Parallel()
	var shown text
	for i, c := range []struct{ piece, want string }{
		{"Sure", ""},
		{", I", "Sure, "},
		{" can. There are", "I can. There "},
		{" 12 tasks (", "are 12 tasks "},
		{"all done), ", "(all done), "},
		{"and the run r4nd0m took ", "and the run "}, // may be a part of a secret
		{"a while.\n", "r4nd0m took a while.\n"},
		{"Il y a ", "Il y a "},
		{"the password of ", "the "}, // may announce one
		{"the account", ""},
	} {
		if got := shown.add(c.piece); got != c.want {
			t.Errorf("%d: after %q %q was shown, want %q", i, c.piece, got, c.want)
		}
	}
	if got := shown.rest(); got != "password of the account" {
		t.Errorf("the rest: %q", got)
	}
}

// TestPiecesHideWhatTheWholeHides: whatever is removed from a line is removed however the line arrives, also if what says that it is a
// secret was shown before it.
func TestPiecesHideWhatTheWholeHides(t *testing.T) {
	t.Parallel()
	const secret = "swordF1sh7"
	for _, line := range []string{
		"Txn-Token: gateway.session.SECRET", "Cookie: a.b.SECRET", "password: a.b.SECRET", "Then api_key=a.b.SECRET and more of it", `It is {"user":"bob","pass": "SECRET"}`, "run tool --pass SECRET run",
		"master_key: SECRET", "Das Passwort ist SECRET.", "La contraseña es SECRET.", "Le mot de passe est SECRET.", "The token is SECRET and it works",
		"CREATE USER bob IDENTIFIED BY SECRET", "Use the following password:\n\nSECRET\n", "see https://bob:SECRET@example.com/a for it", "the unseal key of the vault, which nobody else may have, is below, so keep it:\nSECRET\n",
	} {
		whole := strings.ReplaceAll("Here is what I found for you in the logs. "+line, "SECRET", secret)
		if clean := (cleaner{}).text(whole); strings.Contains(clean, secret) {
			t.Errorf("%q is not hidden at all", line)
			continue
		}
		for size := 1; size < len(whole); size++ {
			var shown text
			var out strings.Builder
			for at := 0; at < len(whole); at += size {
				out.WriteString(shown.add(whole[at:min(at+size, len(whole))]))
			}
			out.WriteString(shown.rest())
			if strings.Contains(out.String(), secret) || !strings.HasPrefix(out.String(), "Here is what I found for you in the logs. ") {
				t.Errorf("in pieces of %d: %q", size, out.String())
				break
			}
		}
	}
}
