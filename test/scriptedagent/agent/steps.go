// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// steps are what an agent can be told to do. Some of them break the protocol, as agents do.
func steps() map[string]func(t *turn, args string) {
	all := good()
	maps.Copy(all, odd())
	return all
}

// good are what agents should do.
func good() map[string]func(t *turn, args string) {
	return map[string]func(t *turn, args string){
		"say":   (*turn).say,
		"think": func(t *turn, text string) { t.update(chunk("agent_thought_chunk", text)) },
		"echo":  func(t *turn, _ string) { t.say(strings.Join(t.texts, "|")) },
		"plan": func(t *turn, args string) {
			entries := []any{}
			for e := range strings.SplitSeq(args, ",") {
				text, done := strings.CutSuffix(e, "+")
				status := map[bool]string{true: "completed", false: "pending"}[done]
				entries = append(entries, map[string]any{"content": text, "priority": "medium", "status": status})
			}
			t.update(map[string]any{"sessionUpdate": "plan", "entries": entries})
		},
		"tool": func(t *turn, args string) {
			kind, title, _ := strings.Cut(args, " ")
			t.callEnded(t.call(kind, title, map[string]any{"of": title}), false, "ok")
		},
		"tool-failed": func(t *turn, kind string) { t.callEnded(t.call(kind, "a call", nil), true, "no") },
		"tool-open":   func(t *turn, kind string) { t.call(kind, "a call", map[string]any{}) },
		"diff": func(t *turn, path string) {
			id := t.call("edit", "Edit "+path, map[string]any{"path": path})
			t.update(map[string]any{
				"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed", "locations": []any{map[string]any{"path": path}},
				"content": []any{map[string]any{"type": "diff", "path": filepath.Join(t.dir, path), "oldText": nil, "newText": "new\n"}},
			})
		},
		"read": func(t *turn, path string) {
			answer := <-t.ask("fs/read_text_file", map[string]any{"sessionId": session, "path": t.in(path)})
			var r struct{ Content string }
			if answer.Error == nil && json.Unmarshal(answer.Result, &r) == nil {
				t.say(r.Content)
				return
			}
			t.say(said(answer))
		},
		"read-line": func(t *turn, path string) {
			t.say(said(<-t.ask("fs/read_text_file", map[string]any{"sessionId": session, "path": t.in(path), "line": 2, "limit": 1})))
		},
		"write": func(t *turn, args string) {
			path, text, _ := strings.Cut(args, " ")
			t.say(said(<-t.ask("fs/write_text_file", map[string]any{"sessionId": session, "path": t.in(path), "content": text})))
		},
		"touch": func(t *turn, args string) {
			path, text, _ := strings.Cut(args, " ")
			if err := os.WriteFile(t.in(path), []byte(text), 0o600); err != nil {
				t.say(err.Error())
			}
		},
		"shell": func(t *turn, command string) {
			out, err := t.execute(command)
			t.say(out)
			if err != nil {
				t.say(err.Error())
			}
		},
		"permit": func(t *turn, args string) {
			kind, title, _ := strings.Cut(args, " ")
			input := map[string]any{"command": title}
			id := t.call(kind, title, input)
			got := t.permitted(id, kind, title, input)
			t.callEnded(id, got != "yes", got)
			t.say(got)
		},
		"run": func(t *turn, command string) { // a command, if it is permitted
			input := map[string]any{"command": command}
			id := t.call("execute", command, input)
			if got := t.permitted(id, "execute", command, input); got != "yes" {
				t.callEnded(id, true, "not permitted: "+got)
				return
			}
			out, err := t.execute(command)
			t.callEnded(id, err != nil, out)
			t.say(out)
		},
		"permit-json": func(t *turn, args string) { // a kind, and the arguments
			kind, raw, _ := strings.Cut(args, " ")
			input := json.RawMessage(raw)
			id := t.call(kind, "a call", input)
			got := t.permitted(id, kind, "a call", input)
			t.callEnded(id, got != "yes", got)
			t.say(got)
		},
		"permit-bare": func(t *turn, args string) { // without arguments
			kind, title, _ := strings.Cut(args, " ")
			id := t.call(kind, title, nil)
			got := t.permitted(id, kind, title, nil)
			t.callEnded(id, got != "yes", got)
			t.say(got)
		},
		"permit-running": func(t *turn, args string) { // asked for when it has begun
			kind, title, _ := strings.Cut(args, " ")
			input := map[string]any{"command": title}
			id := t.call(kind, title, input)
			t.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress"})
			got := t.permitted(id, kind, title, input)
			t.callEnded(id, got != "yes", got)
			t.say(got)
		},
		"edit": func(t *turn, args string) { // what the client writes after it permitted the call
			path, text, _ := strings.Cut(args, " ")
			input := map[string]any{"path": t.in(path), "text": text}
			id := t.call("edit", "Edit "+path, input)
			got := t.permitted(id, "edit", "Edit "+path, input)
			if got == "yes" {
				got = said(<-t.ask("fs/write_text_file", map[string]any{"sessionId": session, "path": t.in(path), "content": text}))
			}
			t.callEnded(id, got != "{}", got)
			t.say(got)
		},
		"replace": func(t *turn, args string) { // FILE OLD => NEW, by the client, if it is permitted
			path, change, _ := strings.Cut(args, " ")
			was, is, _ := strings.Cut(change, " => ")
			input := map[string]any{"file_path": t.in(path), "old_string": was, "new_string": is}
			id := t.call("edit", "Edit "+path, input)
			got := t.permitted(id, "edit", "Edit "+path, input)
			if text, err := os.ReadFile(t.in(path)); err != nil {
				got = err.Error()
			} else if got == "yes" {
				got = said(<-t.ask("fs/write_text_file", map[string]any{"sessionId": session, "path": t.in(path), "content": strings.ReplaceAll(string(text), was, is)}))
			}
			if t.callEnded(id, got != "{}", got); got != "{}" {
				t.say(got)
			}
		},
		"edit-elsewhere": func(t *turn, path string) { // another file than that which was permitted
			id := t.call("edit", "Edit a file", map[string]any{"path": t.in("here")})
			got := t.permitted(id, "edit", "Edit a file", map[string]any{"path": t.in("here")})
			t.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": id, "locations": []any{map[string]any{"path": t.in(path)}}})
			got += " " + said(<-t.ask("fs/write_text_file", map[string]any{"sessionId": session, "path": t.in(path), "content": "x"}))
			t.callEnded(id, false, got)
			t.say(got)
		},
		"permit-tool": func(t *turn, name string) {
			t.say(decision(<-t.ask("session/request_permission", map[string]any{
				"sessionId": session, "toolCall": map[string]any{"toolCallId": "named", "_meta": map[string]any{"vendor": map[string]any{"toolName": name}}},
				"options": []any{map[string]any{"optionId": "yes", "name": "Yes", "kind": "allow_once"}, map[string]any{"optionId": "no", "name": "No", "kind": "reject_always"}},
			})))
		},
		"ask": func(t *turn, prompt string) { t.say(ask(prompt) + "\n") },
		"post": func(t *turn, raw string) { // asks with members of a body
			var members map[string]any
			if err := json.Unmarshal([]byte(raw), &members); err != nil {
				t.say(err.Error())
				return
			}
			t.say(post(members) + "\n")
		},
		"asks": func(t *turn, args string) { // N times, at once
			count, prompt, _ := strings.Cut(args, " ")
			n, _ := strconv.Atoi(count)
			var all sync.WaitGroup
			for range n {
				all.Go(func() { ask(prompt) })
			}
			all.Wait()
		},
		"platform-tools": func(t *turn, _ string) { t.say(t.mcp("tools/list", map[string]any{})) },
		"platform": func(t *turn, args string) { // a tool, and its arguments
			name, raw, _ := strings.Cut(args, " ")
			t.say(t.mcp("tools/call", map[string]any{"name": name, "arguments": json.RawMessage(raw)}) + "\n")
		},
		"platform-given-up": func(t *turn, args string) { // N calls of a tool, each of which is given up before it is answered
			count, rest, _ := strings.Cut(args, " ")
			name, raw, _ := strings.Cut(rest, " ")
			n, _ := strconv.Atoi(count)
			for range n {
				ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond) // an impatient client
				t.mcpWithin(ctx, "tools/call", map[string]any{"name": name, "arguments": json.RawMessage(raw)})
				cancel()
			}
		},
		"delegate": func(t *turn, args string) { // an agent, and its prompt; says what it did
			agent, prompt, _ := strings.Cut(args, " ")
			var made struct{ Data struct{ TaskName string } }
			answer := t.mcp("tools/call", map[string]any{"name": "delegate_task", "arguments": map[string]any{"agent": agent, "prompt": strings.ReplaceAll(prompt, ";", "\n")}})
			if err := json.Unmarshal([]byte(answer), &made); err != nil || made.Data.TaskName == "" {
				t.say(answer)
				return
			}
			t.say(t.mcp("tools/call", map[string]any{"name": "wait_for_tasks", "arguments": map[string]any{"tasks": []string{made.Data.TaskName}}}))
		},
		"permit-platform": func(t *turn, name string) { // asks as Claude Code does
			title := "mcp__platform__" + name
			id := t.call("other", title, map[string]any{})
			got := t.permitted(id, "other", title, map[string]any{})
			t.callEnded(id, got != "yes", got)
			t.say(got + "\n")
		},
		"asks-timed": func(t *turn, args string) { // N times, one after the other; says what it is answered, and after how many nanoseconds
			count, prompt, _ := strings.Cut(args, " ")
			n, _ := strconv.Atoi(count)
			for range n {
				began := time.Now()
				answer := ask(prompt)
				t.say(fmt.Sprintf("%s %d\n", answer, time.Since(began).Nanoseconds())) // this is what is measured
			}
		},
		"tools-timed": func(t *turn, count string) { // N calls, each with the time at which it is announced as its id, in nanoseconds
			n, _ := strconv.Atoi(count)
			for range n {
				id := strconv.FormatInt(time.Now().UnixNano(), 10)
				t.update(map[string]any{"sessionUpdate": "tool_call", "toolCallId": id, "title": "a call", "kind": "read", "status": "in_progress"})
				t.callEnded(id, false, "ok")
				time.Sleep(20 * time.Millisecond) // so that calls are measured one by one
			}
		},
		"usage": func(t *turn, _ string) {
			t.update(map[string]any{"sessionUpdate": "usage_update", "used": 10, "size": 100})
		},
		"mode": func(t *turn, id string) {
			t.update(map[string]any{"sessionUpdate": "current_mode_update", "currentModeId": id})
		},
		"commands": func(t *turn, name string) { t.update(commands(name)) },
		"end":      (*turn).end,
		"await-cancel": func(t *turn, text string) {
			if text != "" {
				t.say(text)
			}
			<-t.cancelled
		},
		"ticks": func(t *turn, path string) { t.ticks(path, t.cancelled) },
		"silent": func(t *turn, fifo string) { // until somebody has opened the FIFO for writing, and closed it
			if _, err := os.ReadFile(t.in(fifo)); err != nil {
				t.say(err.Error())
			}
		},
	}
}

// execute runs a command in the working folder, and returns what it prints.
func (t *turn) execute(command string) (string, error) {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = t.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// ticks appends to a file until it is told to stop, which may be never.
func (t *turn) ticks(path string, until <-chan struct{}) {
	clock := time.NewTicker(10 * time.Millisecond) // what an agent does has no other event than time
	defer clock.Stop()
	for {
		file, err := os.OpenFile(t.in(path), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.say(err.Error())
			return
		}
		_, err = file.WriteString("tick\n")
		if err := errors.Join(err, file.Close()); err != nil {
			t.say(err.Error())
			return
		}
		select {
		case <-until:
			return
		case <-clock.C:
		}
	}
}

// in returns an absolute path in the working folder.
func (t *turn) in(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(t.dir, path)
}

func chunk(update, text string) map[string]any {
	return map[string]any{"sessionUpdate": update, "content": map[string]any{"type": "text", "text": text}}
}

func commands(name string) map[string]any {
	return map[string]any{"sessionUpdate": "available_commands_update", "availableCommands": []any{map[string]any{"name": name, "description": "a command"}}}
}
