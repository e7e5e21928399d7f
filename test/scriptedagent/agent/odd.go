// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/platform-ai/platform/test/acpschema"
)

// odd are what agents do nevertheless: what breaks the protocol, or keeps to it and surprises.
func odd() map[string]func(t *turn, args string) {
	return map[string]func(t *turn, args string){
		"stubborn": func(t *turn, path string) { t.ticks(path, nil) },
		"flood": func(t *turn, args string) { // a number, and a kind
			count, kind, _ := strings.Cut(args, " ")
			n, _ := strconv.Atoi(count)
			var answers []<-chan message
			for i := range n {
				answers = append(answers, t.asks(fmt.Sprintf("f%d", i), cmp.Or(kind, "read"), "a call", map[string]any{"n": i}, "allow_always", "allow_once", "reject_once"))
			}
			counted := map[string]int{}
			for _, answer := range answers {
				counted[decision(<-answer)]++
			}
			var words []string
			for word, n := range counted {
				words = append(words, fmt.Sprintf("%s=%d", word, n))
			}
			t.say(sorted(words))
		},
		"permit-always": func(t *turn, args string) { // offers no permission for one call
			kind, title, _ := strings.Cut(args, " ")
			t.say(decision(<-t.asks("always", kind, title, map[string]any{"command": title}, "allow_always", "reject_once")))
		},
		"permit-ignored": func(t *turn, args string) { // makes the call whatever was decided
			kind, title, _ := strings.Cut(args, " ")
			id := t.call(kind, title, map[string]any{"command": title})
			t.say(t.permitted(id, kind, title, map[string]any{"command": title}))
			t.callEnded(id, false, "done")
		},
		"permit-changed": func(t *turn, args string) { // makes another call than that which was permitted
			kind, title, _ := strings.Cut(args, " ")
			id := t.call(kind, title, map[string]any{"command": title})
			t.say(t.permitted(id, kind, title, map[string]any{"command": title}))
			t.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed", "rawInput": map[string]any{"command": "another"}})
		},
		"permit-again": func(t *turn, args string) { // asks twice for one call
			kind, title, _ := strings.Cut(args, " ")
			input := map[string]any{"command": title}
			id := t.call(kind, title, input)
			first := t.permitted(id, kind, title, input)
			second := t.permitted(id, kind, title, input)
			t.callEnded(id, second != "yes", second)
			t.say(first + " " + second)
		},
		"permit-late": func(t *turn, _ string) { // after the turn was cancelled
			<-t.cancelled
			t.say(t.permitted("late", "execute", "a call", nil))
		},
		"permit-abandoned": func(t *turn, _ string) { // the agent gives up its own request
			answer := t.ask("session/request_permission", map[string]any{
				"sessionId": session, "toolCall": map[string]any{"toolCallId": "held"}, "options": []any{map[string]any{"optionId": "yes", "name": "Yes", "kind": "allow_once"}},
			})
			t.mu.Lock()
			id := fmt.Sprintf("a%d", t.next)
			t.mu.Unlock()
			t.send(message{Method: "$/cancel_request", Params: encoded(map[string]any{"requestId": id})})
			t.say(said(<-answer))
		},
		"permit-open": func(t *turn, args string) { // does not wait for the decision
			kind, title, _ := strings.Cut(args, " ")
			t.asks("open", kind, title, map[string]any{"command": title}, "allow_once", "reject_once")
		},
		"permit-none": func(t *turn, kind string) { // offers nothing
			t.say(decision(<-t.asks("none", kind, "a call", nil)))
		},
		"permit-ended": func(t *turn, kind string) { // for a call that has ended
			id := t.call(kind, "a call", map[string]any{})
			t.callEnded(id, false, "ok")
			t.say(t.permitted(id, kind, "a call", map[string]any{}))
		},
		"permit-twice": func(t *turn, _ string) { // two requests with one id, of which the first is then given up
			t.mu.Lock()
			waits := make(chan message, 1)
			t.waiting[`"u"`] = waits
			t.mu.Unlock()
			request := encode(message{ID: []byte(`"u"`), Method: "session/request_permission", Params: encoded(map[string]any{
				"sessionId": session, "toolCall": map[string]any{"toolCallId": "held"}, "options": []any{map[string]any{"optionId": "yes", "name": "Yes", "kind": "allow_once"}},
			})})
			t.talk.Extension(acpschema.Client, `"u"`, "session/request_permission")
			t.raw(request)
			t.raw(request)
			second := said(<-waits)
			t.talk.Extension(acpschema.Client, `"u"`, "session/request_permission")
			t.send(message{Method: "$/cancel_request", Params: encoded(map[string]any{"requestId": "u"})})
			t.say(second + " " + decision(<-waits))
		},
		"foreign": func(t *turn, text string) { // says something in a session that nobody began
			t.send(message{Method: "session/update", Params: encoded(map[string]any{"sessionId": "another", "update": chunk("agent_message_chunk", text)})})
		},
		"tool-ended": func(t *turn, id string) { t.callEnded(id, false, "ok") }, // a call that was not announced
		"tools": func(t *turn, count string) { // that many, each announced and ended
			n, _ := strconv.Atoi(count)
			for i := range n { // too many for the schema to look at
				t.raw(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call","toolCallId":"m%d","title":"a call","status":"completed"}}}`+"\n", i))
			}
		},
		"notifications": func(t *turn, count string) {
			n, _ := strconv.Atoi(count)
			for i := range n {
				t.raw(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"x/%d","params":{}}`+"\n", i))
			}
		},
		"late": func(t *turn, text string) { // updates after the end of the turn
			t.end("end_turn")
			t.say(text)
		},
		"stop-twice": func(t *turn, _ string) {
			t.end("end_turn")
			t.raw(encode(message{ID: t.id, Result: encoded(map[string]any{"stopReason": "refusal"})}))
		},
		"error": func(t *turn, code string) {
			n, _ := strconv.Atoi(code)
			t.over()
			t.send(message{ID: t.id, Error: &failure{n, "the agent failed"}})
		},
		"answer": func(t *turn, result string) { // any result
			t.over()
			t.raw([]byte(`{"jsonrpc":"2.0","id":` + string(t.id) + `,"result":` + result + "}\n"))
		},
		"answer-with": func(t *turn, members string) { // neither result nor error, or both
			t.over()
			t.raw([]byte(`{"jsonrpc":"2.0","id":` + string(t.id) + members + "}\n"))
		},
		"unsupported": func(t *turn, method string) { // from now on
			t.mu.Lock()
			defer t.mu.Unlock()
			t.unsupported[method] = true
		},
		"unknown-request": func(t *turn, method string) {
			t.mu.Lock()
			waits := make(chan message, 1)
			t.waiting[`"u"`] = waits
			t.mu.Unlock()
			t.talk.Extension(acpschema.Client, `"u"`, method)
			t.raw([]byte(`{"jsonrpc":"2.0","id":"u","method":"` + method + `","params":{}}` + "\n"))
			t.say(said(<-waits))
		},
		"terminal": func(t *turn, command string) {
			t.say(said(<-t.ask("terminal/create", map[string]any{"sessionId": session, "command": command})))
		},
		"elicit": func(t *turn, _ string) {
			t.say(said(<-t.ask("elicitation/create", map[string]any{"sessionId": session, "mode": "form", "message": "Who?", "requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}}})))
		},
		"unknown-notification": func(t *turn, method string) {
			t.raw([]byte(`{"jsonrpc":"2.0","method":"` + method + `","params":{}}` + "\n"))
		},
		"unknown-update": func(t *turn, kind string) {
			t.raw([]byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"` + kind + `"}}}` + "\n"))
		},
		"strange-tool": func(t *turn, _ string) { // optional fields of other types, which clients must leave out
			t.raw([]byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call","toolCallId":"x","title":"t","kind":7,"status":["a"],"content":"b","locations":3,"_meta":[]}}}` + "\n"))
			t.callEnded("x", false, "ok")
			t.callEnded("x", true, "again")
		},
		"broken-update": func(t *turn, _ string) {
			t.raw([]byte(`{"jsonrpc":"2.0","method":"session/update","params":[1]}` + "\n"))
		},
		"bare": func(t *turn, line string) { t.raw([]byte(line + "\n")) },
		"half": func(t *turn, code string) { // ends in the middle of its answer
			t.over()
			t.raw([]byte(`{"jsonrpc":"2.0","id":` + string(t.id) + `,"result":{"stopRea`))
			n, _ := strconv.Atoi(code)
			t.agent.stop(n, "")
			runtime.Goexit()
		},
		"close-output": func(t *turn, _ string) { // and goes on
			if out, ok := t.out.(io.Closer); ok {
				_ = out.Close()
			}
			select {}
		},
		"immortal": func(t *turn, _ string) { // neither SIGTERM nor the end of its input ends it
			signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM)
			t.ending.Add(1)
		},
		"noise": func(t *turn, bytesOf string) {
			n, _ := strconv.Atoi(bytesOf)
			for written := 0; written < n; written += 100 {
				t.raw([]byte(strings.Repeat("x", 99) + "\n"))
			}
		},
		"stderr": func(t *turn, bytesOf string) {
			n, _ := strconv.Atoi(bytesOf)
			_, _ = t.err.Write(bytes.Repeat([]byte("e"), n))
		},
		"long-line": func(t *turn, bytesOf string) {
			n, _ := strconv.Atoi(bytesOf)
			t.raw([]byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"`))
			block := bytes.Repeat([]byte("y"), 1<<16)
			for written := 0; written < n; written += len(block) {
				t.raw(block)
			}
			t.raw([]byte("\"}}}}\n"))
		},
		"split": func(t *turn, text string) { // a character in two writes
			line := encode(message{Method: "session/update", Params: encoded(map[string]any{"sessionId": session, "update": chunk("agent_message_chunk", text)})})
			for _, b := range line {
				t.raw([]byte{b})
			}
		},
		"bad-utf8": func(t *turn, _ string) {
			t.raw([]byte("{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"a\xe2\x82\"}}}}\n"))
		},
		"ignore-cancel": func(*turn, string) { select {} },
		"exit": func(t *turn, code string) {
			n, _ := strconv.Atoi(code)
			t.agent.stop(n, "")
			runtime.Goexit()
		},
	}
}
