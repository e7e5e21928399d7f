// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/platform-ai/platform/test/acpschema"
)

// Messages of a client that keeps to the protocol.
const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`
	newSession = `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/x","mcpServers":[]}}`
	prompt     = `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"do: await-cancel a"}]}}`
	cancel     = `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}`
)

// TestStrict: a client that breaks the protocol, or its order, is told so at once: the agent ends.
func TestStrict(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		want  string
	}{
		"begins with a session":              {[]string{newSession}, "came before initialize"},
		"begins with a prompt":               {[]string{prompt}, "came before initialize"},
		"initializes twice":                  {[]string{initialize, initialize}, "came twice"},
		"names no version":                   {[]string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`}, "protocolVersion"},
		"names a version that is no number":  {[]string{strings.Replace(initialize, "1,\"client", "\"1\",\"client", 1)}, "protocolVersion"},
		"does not say that it is JSON-RPC":   {[]string{strings.Replace(initialize, `"jsonrpc":"2.0",`, "", 1)}, "jsonrpc"},
		"sends a notification as a request":  {[]string{initialize, newSession, strings.Replace(cancel, `"method"`, `"id":9,"method"`, 1)}, "only requests have an id"},
		"sends a request as a notification":  {[]string{strings.Replace(initialize, `"id":1,`, "", 1)}, "only requests have an id"},
		"works in no absolute folder":        {[]string{initialize, strings.Replace(newSession, "/x", "x", 1)}, "must be absolute"},
		"lacks a list of servers":            {[]string{initialize, strings.Replace(newSession, `,"mcpServers":[]`, "", 1)}, "mcpServers"},
		"prompts before there is a session":  {[]string{initialize, prompt}, "no prompt for the session"},
		"prompts another session":            {[]string{initialize, newSession, strings.Replace(prompt, "s1", "s2", 1)}, "no prompt for the session"},
		"prompts with nothing":               {[]string{initialize, newSession, strings.Replace(prompt, `{"type":"text","text":"do: await-cancel a"}`, "", 1)}, "no prompt for the session"},
		"prompts with an unknown block":      {[]string{initialize, newSession, strings.Replace(prompt, `"type":"text"`, `"type":"smell"`, 1)}, "session/prompt"},
		"prompts while a turn is going on":   {[]string{initialize, newSession, prompt, prompt}, "a turn is going on"},
		"calls a method that does not exist": {[]string{initialize, `{"jsonrpc":"2.0","id":2,"method":"session/dance","params":{}}`}, "session/dance"},
		"answers what it was not asked":      {[]string{initialize, `{"jsonrpc":"2.0","id":"a1","result":{}}`}, "a request that was not sent"},
		"prints":                             {[]string{"hello"}, "no message"},
	} {
		t.Run(name, func(t *testing.T) {
			var errors bytes.Buffer
			in, client := io.Pipe()
			go func() {
				defer client.Close()
				for _, line := range tc.lines {
					if _, err := io.WriteString(client, line+"\n"); err != nil {
						return
					}
				}
			}()
			if code := Run(in, io.Discard, &errors); code != ExitStrict || !strings.Contains(errors.String(), tc.want) {
				t.Errorf("it ended with %d: %s; want %s", code, errors.String(), tc.want)
			}
			_ = in.Close()
		})
	}
}

// TestKeepsToTheProtocol: a conversation of both sides is allowed by the official schema, and the agent ends with its input.
func TestKeepsToTheProtocol(t *testing.T) {
	in, client := io.Pipe()
	agent, out := io.Pipe()
	code := make(chan int, 1)
	var errors bytes.Buffer
	go func() {
		code <- Run(in, out, &errors)
		_ = out.Close()
	}()
	talk, lines := acpschema.NewConversation(), bufio.NewScanner(agent)
	send := func(line string) {
		if err := talk.Check(acpschema.Client, []byte(line)); err != nil {
			t.Error(err)
		}
		if _, err := io.WriteString(client, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	next := func() string {
		if !lines.Scan() {
			t.Fatalf("it ended: %s", errors.String())
		}
		if err := talk.Check(acpschema.Agent, lines.Bytes()); err != nil {
			t.Error(err)
		}
		return lines.Text()
	}
	for _, line := range []string{initialize, newSession, prompt} {
		send(line)
		next() // the last one is what the agent says
	}
	send(cancel)
	if got := next(); !strings.Contains(got, `"stopReason":"cancelled"`) {
		t.Errorf("it answered %s", got)
	}
	_ = client.Close()
	if got := <-code; got != 0 {
		t.Errorf("it ended with %d: %s", got, errors.String())
	}
}
