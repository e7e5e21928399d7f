// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/storage/archive"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	turnstore "github.com/platform-ai/platform/pkg/storage/turn"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestTurnsThatCannotBeRead: a server starts although it cannot decode what an earlier one stored of two turns. Their sessions say
// so once and go on, a client that follows a turn gets to an end, and a metric counts them.
func TestTurnsThatCannotBeRead(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	metrics := prometheus.NewRegistry()
	p, _ := standalone.WithChat(t, orchestrator, func(o *standalone.Options) { o.Metrics = metrics })
	c := p.REST(t, "default", "editor", "platform-editor")
	followed, kept := c.StartChat("run it"), c.Chat(map[string]any{"message": "hello"}, http.StatusOK).SessionID
	framesOf(c, followed, "")
	one, two := p.Session(followed).UID, p.Session(kept).UID
	p.Stop(t)

	e, err := local.Open(t.Context(), local.Options{Dir: filepath.Join(p.DataDir, archive.StoreFolder), Mark: filepath.Join(p.DataDir, local.MarkFile)})
	if err != nil {
		t.Fatal(err)
	}
	turns := turnstore.New(e)
	_, first := turns.Begin(t.Context(), one, []byte(`{"id": "x`), true)
	_, second := turns.Begin(t.Context(), two, []byte(`{"id": "y", "namespace": "default", "session": "`+kept+`", "spec": {"message": "what now?"}}`), false)
	broken := turns.Apply(t.Context(), two, turnstore.Change{Step: []byte("nothing"), Number: 0})
	if err := errors.Join(first, second, broken, e.Close()); err != nil {
		t.Fatal(err)
	}

	const aside = "could not read what it had stored"
	said := map[string]int{}
	for _, start := range []string{"first", "second"} { // the second one knows nothing of them
		p.StartAgain(t)
		for session, message := range map[string]string{followed: "could not read after a restart", kept: "what now?"} {
			kit.Await(t, "the session says what became of its turn", func() bool {
				all := p.Transcript(session, 100)
				n := len(all)
				return n > 2 && strings.Contains(all[n-1].Content, aside) && strings.Contains(all[n-2].Content, message) && !strings.Contains(all[n-3].Content, aside)
			})
		}
		if got := standalone.Measured(t, metrics, "platform_chat_turns_set_aside_total"); start == "first" && got != 2 {
			t.Errorf("%v turns are counted, want 2", got)
		}
		for _, session := range []string{followed, kept} {
			n := len(p.Transcript(session, 100))
			if start == "second" && n != said[session] {
				t.Errorf("the session has %d messages after the second start, and had %d before", n, said[session])
			}
			said[session] = n
		}
		c = p.REST(t, "default", "editor", "platform-editor")
		if all := framesOf(c, followed, ""); kinds(all) != "error" || !strings.Contains(all[0].Data, aside) {
			t.Errorf("frames: %+v", all)
		}
		p.Stop(t)
	}
	p.StartAgain(t)
	c = p.REST(t, "default", "editor", "platform-editor")
	for _, session := range []string{followed, kept} {
		c.Chat(map[string]any{"message": "hello", "sessionId": session}, http.StatusOK)
	}
}
