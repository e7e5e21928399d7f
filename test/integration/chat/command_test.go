// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/cli"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestChatCommand: the command has one turn, or a conversation whose turns share a session, and shows calls of tools.
func TestChatCommand(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithChat(t, orchestrator)
	out, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "chat", "please", "run it")
	if code != 0 || !strings.HasPrefix(out, "I create it.\nDone: chat-") || !strings.Contains(errs, "→ create_container_task") || !strings.Contains(errs, "← create_container_task") ||
		!strings.Contains(errs, "session chat-session-") {
		t.Errorf("exit %d, output %q, errors %q", code, out, errs)
	}
	var o, e bytes.Buffer
	code = cli.Main(t.Context(), "platform", []string{"--kubeconfig", p.Kubeconfig, "chat"}, cli.Streams{
		In: strings.NewReader("run it\n\nwhat did I say first?\n"), Out: &o, Err: &e, Ask: true,
	})
	if code != 0 || !strings.HasSuffix(o.String(), "\nYou said run it.\n") || strings.Count(e.String(), "session chat-session-") != 1 {
		t.Errorf("exit %d, output %q, errors %q", code, o.String(), e.String())
	}
	if out, errs, code = standalone.Command(t.Context(), p.Kubeconfig, "chat", "--provider", "nothing", "hello"); code != 1 || !strings.Contains(errs, "nothing") {
		t.Errorf("exit %d, output %q, errors %q", code, out, errs)
	}
	for _, args := range [][]string{{"chat", "atach"}, {"chat", "atach", "chat-session-1"}} {
		if out, errs, code = standalone.Command(t.Context(), p.Kubeconfig, args...); code != 1 || out != "" || !strings.Contains(errs, `did you mean "platform chat attach"?`) {
			t.Errorf("%v: exit %d, output %q, errors %q", args, code, out, errs)
		}
	}
	if _, errs, code = standalone.Command(t.Context(), p.Kubeconfig, "chat"); code != 1 || !strings.Contains(errs, "there is no message") {
		t.Errorf("exit %d, errors %q", code, errs)
	}
}

// interrupting calls do once the text on was written to it.
type interrupting struct {
	bytes.Buffer
	on string
	do func()
}

func (w *interrupting) Write(b []byte) (int, error) {
	n, err := w.Buffer.Write(b)
	if strings.Contains(w.String(), w.on) {
		w.do()
	}
	return n, err
}

// interrupt runs the command, and presses Ctrl-C once standard error has a text.
func interrupt(p *standalone.Platform, on string, args ...string) (errs string, code int) {
	ctx, cancel := context.WithCancel(p.T.Context())
	defer cancel()
	w := &interrupting{on: on, do: cancel}
	code = cli.Main(ctx, "platform", append([]string{"--kubeconfig", p.Kubeconfig}, args...), cli.Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: w})
	return w.String(), code
}

// TestChatCommandInBackground: a background turn is begun with or without waiting for it, goes on after Ctrl-C, and is
// followed from its beginning or any frame as often as somebody wants.
func TestChatCommandInBackground(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithChat(t, orchestrator)
	out, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "chat", "--background", "run it")
	if code != 0 || !strings.HasPrefix(out, "I create it.\nDone: chat-") || !strings.Contains(errs, "→ create_container_task") {
		t.Fatalf("exit %d, output %q, errors %q", code, out, errs)
	}
	session, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "chat", "--detach", "run it")
	session = strings.TrimSpace(session)
	if code != 0 || !strings.HasPrefix(session, "chat-session-") || errs != "" {
		t.Fatalf("exit %d, output %q, errors %q", code, session, errs)
	}
	all, _, code := standalone.Command(t.Context(), p.Kubeconfig, "chat", "attach", session)
	if code != 0 || !strings.HasPrefix(all, "I create it.\nDone: chat-") {
		t.Errorf("attached: exit %d, output %q", code, all)
	}
	if rest, _, code := standalone.Command(t.Context(), p.Kubeconfig, "chat", "attach", session, "--after", "2"); code != 0 || rest == all || !strings.HasSuffix(all, rest) || !strings.Contains(rest, "Done: chat-") {
		t.Errorf("attached after the second frame: exit %d, output %q", code, rest)
	}
	for wrong, args := range map[string][]string{
		"not found":               {"attach", "nothing"},
		"had no background turn":  {"attach", "ordinary"},
		"the last frame of this":  {"attach", session, "--after", "1000"},
		"must be 0 or more":       {"attach", session, "--after", "-1"},
		"an argument is missing":  {"attach"},
		"message: is required":    {"--detach", " "},
		`Provider "nothing"`:      {"--detach", "--provider", "nothing", "hello"},
		"there is no message":     {"--background"},
		"chat-session-0000000000": {"attach", "chat-session-0000000000"},
	} {
		if wrong == "had no background turn" {
			_, _, _ = standalone.Command(t.Context(), p.Kubeconfig, "chat", "--session", "ordinary", "hello")
		}
		if out, errs, code := standalone.Command(t.Context(), p.Kubeconfig, append([]string{"chat"}, args...)...); code != 1 || !strings.Contains(errs, wrong) || out != "" {
			t.Errorf("%v: exit %d, output %q, errors %q", args, code, out, errs)
		}
	}
}

// TestChatCommandInterrupted: Ctrl-C leaves a background turn running, which somebody else sees to its end; a command or deleting the
// session cancels it. Ctrl-C cancels an ordinary turn.
func TestChatCommandInterrupted(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithChat(t, waitingModel)
	neverEnds(p, "forever")
	errs, code := interrupt(p, "→ wait_for_task", "chat", "--session", "left", "--background", "wait for it")
	if code != 130 || !strings.Contains(errs, "the turn goes on. To see it: platform chat attach left") {
		t.Fatalf("exit %d, errors %q", code, errs)
	}
	errs, code = interrupt(p, "→ wait_for_task", "chat", "attach", "left")
	if code != 130 || !strings.Contains(errs, "detached") {
		t.Errorf("attached: exit %d, errors %q", code, errs)
	}
	if _, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "chat", "--session", "left", "hello"); code != 1 || !strings.Contains(errs, "another turn of this session runs") {
		t.Errorf("the session of a turn that goes on: exit %d, errors %q", code, errs)
	}
	cancelled(p, "chat", "cancel", "left")
	chatted(p, "left", "turn ended without an answer: cancelled")
	if _, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "chat", "cancel", "left"); code != 0 {
		t.Errorf("there is no turn any more: exit %d, errors %q", code, errs)
	}
	if errs, code = interrupt(p, "→ wait_for_task", "chat", "--session", "left", "--background", "wait for it"); code != 130 {
		t.Fatalf("the session goes on: exit %d, errors %q", code, errs)
	}
	cancelled(p, "session", "delete", "left")
	if _, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "chat", "cancel", "left"); code != 1 || !strings.Contains(errs, "not found") {
		t.Errorf("there is no session any more: exit %d, errors %q", code, errs)
	}
	errs, code = interrupt(p, "→ wait_for_task", "chat", "--session", "kept", "wait for it")
	if code != 130 || !strings.Contains(errs, "cancelled; to go on: platform chat --session kept") {
		t.Errorf("an ordinary turn: exit %d, errors %q", code, errs)
	}
	chatted(p, "kept", "turn ended without an answer: cancelled")
}

// cancelled follows the background turn of session "left", which a command cancels meanwhile.
func cancelled(p *standalone.Platform, by ...string) {
	p.T.Helper()
	w := &interrupting{on: "→ wait_for_task"}
	w.do = func() {
		w.on = "never written"
		if _, errs, code := standalone.Command(p.T.Context(), p.Kubeconfig, by...); code != 0 {
			p.T.Errorf("%v: exit %d, errors %q", by, code, errs)
		}
	}
	code := cli.Main(p.T.Context(), "platform", []string{"--kubeconfig", p.Kubeconfig, "chat", "attach", "left"}, cli.Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: w})
	if code != 3 || !strings.Contains(w.String(), "cancelled") {
		p.T.Errorf("%v: the turn ends with exit %d, errors %q", by, code, w.String())
	}
}

// chatted waits until a session has a message with a text.
func chatted(p *standalone.Platform, session, text string) {
	p.T.Helper()
	kit.Await(p.T, "the session has "+text, func() bool {
		for _, m := range p.Transcript(session, 100) {
			if strings.Contains(m.Content, text) {
				return true
			}
		}
		return false
	})
}
