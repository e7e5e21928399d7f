// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/llm"
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
