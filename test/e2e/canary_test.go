// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/corpus"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// control is not a secret. It is written beside the canaries, and finding it shows
// that the search covers the places where they went.
const control = "a-word-that-stays"

// TestCanaries sends every canary through a run of an agent, through the output
// of a command and through posted events, and then looks for the bytes of the
// secrets in everything that the server stores, logs and answers.
func TestCanaries(t *testing.T) {
	canaries := corpus.Canaries()
	groups := grouped(canaries, 12_000)
	notes := t.TempDir()
	s := local{kit.StartServer(t, t.TempDir(), "--allow-host-commands", "--sandbox-read-path="+notes)}
	applyTeam(t, s, startModelWith(t, s, canaryScript(t, groups)))
	s.MustShell(t, `kubectl patch agent coder --type=merge -p '{"spec":{"coordination":{"approvalRequiredTools":["file_write"]}}}'`)

	apply(t, s, map[string]any{
		"apiVersion": "core.platform.ai/v1alpha1", "kind": "Task", "metadata": map[string]any{"name": "said"},
		"spec": map[string]any{"type": "ai", "agentRef": map[string]any{"name": "coder"}, "prompt": "Tell me what you know.", "timeout": "5m", "sessionRef": map[string]any{"name": "talk", "create": true}},
	})
	gate := printAndWait(t, s, "printed", notes, groups)
	postEvents(t, s, "printed", canaries)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range groups {
		approveNext(t, s, control+": "+canaries[0].Text)
	}
	s.MustShell(t, "kubectl wait --for=jsonpath='{.status.phase}'=Succeeded --timeout=300s task/said task/printed")

	answers := canaryAnswers(t, s)
	for from, text := range answers {
		findCanaries(t, canaries, from, []byte(text))
	}
	searchCanaries(t, s.DataDir, canaries)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	searchCanaries(t, s.DataDir, canaries) // includes what was flushed at the end
}

// grouped joins the texts of the canaries to texts of some length.
func grouped(canaries []corpus.Canary, length int) []string {
	var groups []string
	text := control + "\n\n"
	for i, c := range canaries {
		text += c.Text + "\n\n"
		if len(text) >= length || i == len(canaries)-1 {
			groups = append(groups, text)
			text = control + "\n\n"
		}
	}
	return groups
}

// canaryScript is a model that writes each group of canaries into a file, reads
// it, prints it, and finally repeats everything in its answer.
func canaryScript(t *testing.T, groups []string) *script.Script {
	t.Helper()
	sc := &script.Script{Models: []string{"scripted-1"}}
	call := func(name string, arguments map[string]any) script.ToolCall {
		raw, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		return script.ToolCall{Name: name, Arguments: raw}
	}
	for i, g := range groups {
		file := fmt.Sprintf("notes-%d.txt", i)
		sc.Turns = append(sc.Turns, script.Turn{
			Match: script.Match{Turn: i + 1},
			Reply: script.Reply{Text: "I found this:\n" + g, ToolCalls: []script.ToolCall{
				call("file_write", map[string]any{"path": file, "content": g}),
				call("file_read", map[string]any{"path": file}),
				// The working folder is the user's own and is kept, so what is searched for must not be in it.
				call("code_exec", map[string]any{"language": "bash", "code": "cat " + file + "; rm " + file}),
			}},
		})
	}
	sc.Turns = append(sc.Turns, script.Turn{Match: script.Match{Turn: len(groups) + 1}, Reply: script.Reply{Text: strings.Join(groups, "\n")}})
	return sc
}

func startModelWith(t *testing.T, s place, sc *script.Script) string {
	t.Helper()
	raw, err := json.Marshal(sc)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return startModel(t, s, file)
}

func apply(t *testing.T, s place, object any) {
	t.Helper()
	s.MustShell(t, "kubectl create -f "+jsonFile(t, object))
}

func jsonFile(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "object.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// printAndWait starts a command that prints the groups, from a file in dir, which
// programs of runs may read, and ends when the file
// exists whose name is returned.
func printAndWait(t *testing.T, s place, name, dir string, groups []string) (gate string) {
	t.Helper()
	gate = filepath.Join(dir, "go")
	if err := os.WriteFile(filepath.Join(dir, "notes"), []byte(strings.Join(groups, "\n")+control+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	apply(t, s, map[string]any{
		"apiVersion": "core.platform.ai/v1alpha1", "kind": "Task", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"type": "container", "command": []string{"sh", "-c"}, "args": []string{"cat " + dir + "/notes; until [ -e " + gate + " ]; do sleep 0.1; done"}},
	})
	s.MustShell(t, "kubectl wait --for=jsonpath='{.status.phase}'=Running --timeout=300s task/"+name)
	return gate
}

// approveNext waits for a call that needs approval and approves it.
func approveNext(t *testing.T, s place, reason string) {
	t.Helper()
	name := awaitPending(t, s, "status.state=pending")
	decision := jsonFile(t, map[string]any{
		"apiVersion": "core.platform.ai/v1alpha1", "kind": "ApprovalDecision", "spec": map[string]any{"decision": "approve", "reason": reason},
	})
	s.MustShell(t, "kubectl create --raw /apis/core.platform.ai/v1alpha1/namespaces/default/approvals/"+name+"/decision -f "+decision)
}

// postEvents appends an event for each canary, with its surroundings in every
// field: the first ones alone, the others in batches.
func postEvents(t *testing.T, s place, task string, canaries []corpus.Canary) {
	t.Helper()
	path := "/apis/core.platform.ai/v1alpha1/namespaces/default/tasks/" + task + "/events"
	kind := func(k string) map[string]any {
		return map[string]any{"apiVersion": "core.platform.ai/v1alpha1", "kind": k}
	}
	var batch []any
	for i, c := range canaries {
		e := kind("ExecutionEvent")
		e["type"], e["severity"], e["toolName"] = v1alpha1.EventToolCallCompleted, "info", "notes"
		texts, values := []string{control}, []any{control}
		for _, m := range c.Embeddings() {
			if m.JSON {
				values = append(values, apiextensionsv1.JSON{Raw: []byte(m.Text)})
			} else {
				texts = append(texts, m.Text)
			}
		}
		e["summary"] = control + " " + texts[1+i%(len(texts)-1)]
		e["contentText"], e["content"] = strings.Join(texts, "\n\n"), map[string]any{"values": values}
		e["toolCallID"] = fmt.Sprintf("call-%d", i)
		if i < 5 {
			s.MustShell(t, "kubectl create --raw "+path+" -f "+jsonFile(t, e))
			continue
		}
		if batch = append(batch, e); len(batch) == 60 || i == len(canaries)-1 {
			list := kind("ExecutionEventList")
			list["items"] = batch
			s.MustShell(t, "kubectl create --raw "+path+" -f "+jsonFile(t, list))
			batch = nil
		}
	}
}

// canaryAnswers requests everything that the server returns about the two tasks.
func canaryAnswers(t *testing.T, s local) map[string]string {
	t.Helper()
	const base = "/apis/core.platform.ai/v1alpha1/namespaces/default/"
	last := strings.TrimSpace(s.MustShell(t, "kubectl get executionevents -o jsonpath='{.items[-1:].metadata.name}'"))
	watch := kit.Start(t, s.Env(t), kit.Bin(t, "kubectl"), "get", "--raw", base+"executionevents?watch=true")
	watch.Await(t, `"name":"`+last+`"`)
	_ = watch.Stop() // a signal ended it
	answers := map[string]string{"log of the server": s.Output(), "watch of events": watch.Output()}
	if !strings.Contains(answers["watch of events"], control) {
		t.Errorf("the watch does not show the texts: %.2000s", answers["watch of events"])
	}
	shows := []string{
		"kubectl get executionevents -o json", "kubectl get executionevents", "kubectl get approvals -o json",
		"kubectl get --raw " + base + "sessions/talk/transcript",
	}
	for _, task := range []string{"said", "printed"} {
		for _, sub := range []string{"log", "result", "events?limit=1000", "stream"} {
			shows = append(shows, "kubectl get --raw '"+base+"tasks/"+task+"/"+sub+"'")
		}
		shows = append(shows, "kubectl get --raw '/api/v1/tasks/"+task+"/events?limit=1000'", "kubectl get --raw /api/v1/tasks/"+task+"/stream", "kubectl get --raw /api/v1/tasks/"+task+"/logs")
	}
	for _, line := range shows {
		answers[line] = s.MustShell(t, line)
		if !strings.Contains(answers[line], control) {
			t.Errorf("%s does not show the texts: %.2000s", line, answers[line])
		}
	}
	for _, line := range []string{
		"kubectl get tasks,agents,sessions,events,configmaps,approvals -A -o yaml", "kubectl describe tasks", "kubectl get --raw /metrics",
		"kubectl get --raw " + base + "tasks/said/trace", "kubectl get --raw " + base + "tasks/printed/trace",
	} {
		answers[line] = s.MustShell(t, line)
	}
	return answers
}

// searchCanaries looks for the secrets in every file of a folder.
func searchCanaries(t *testing.T, dir string, canaries []corpus.Canary) {
	t.Helper()
	seen := false
	eachFile(t, dir, func(path string, data []byte) {
		seen = seen || bytes.Contains(data, []byte(control))
		findCanaries(t, canaries, strings.TrimPrefix(path, dir), data)
	})
	if !seen {
		t.Fatal("the texts are in no file")
	}
}

func findCanaries(t *testing.T, canaries []corpus.Canary, where string, data []byte) {
	t.Helper()
	for _, c := range canaries {
		for _, secret := range c.Secrets {
			if i := bytes.Index(data, []byte(secret)); i >= 0 {
				t.Errorf("%s: %q is in %s: …%q…", c.Name, secret, where, data[max(0, i-100):min(len(data), i+len(secret)+50)])
			}
		}
	}
}
