// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// Secrets that must be found nowhere. No redaction pattern recognises them, so
// the platform must never write them in the first place.
const (
	providerKey  = "correct-horse-battery-staple-provider"
	storedSecret = "correct-horse-battery-staple-secret"
)

// scripts is the folder of the scripted model's scripts.
const scripts = "../scriptedmodel/scripts/"

// startModel runs the scripted model with a script and returns its base URL.
func startModel(t *testing.T, s place, script string) string {
	t.Helper()
	model := kit.Start(t, nil, kit.Bin(t, "scriptedmodel"), "--script", script, "--listen", net.JoinHostPort(s.Address(), "0"))
	line := model.Await(t, "listening on")
	return line[strings.LastIndex(line, " ")+1:]
}

// apply applies the demo's manifest for a model endpoint, with its own secret beside it.
func applyTeam(t *testing.T, s place, url string) {
	t.Helper()
	applyTeamOf(t, s, v1alpha1.ProviderOpenAI, url)
}

// applyTeamOf does the same for an endpoint that speaks the protocol of a vendor.
func applyTeamOf(t *testing.T, s place, vendor v1alpha1.ProviderType, url string) {
	t.Helper()
	data, err := os.ReadFile("../../artifacts/demo/team.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manifest := strings.NewReplacer("${MODEL_KEY}", providerKey, "${MODEL_URL}", url, "${MODEL_NAME}", "scripted-1", "${MODEL_TYPE}", string(vendor)).Replace(string(data))
	file := filepath.Join(t.TempDir(), "team.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	s.MustShell(t, "kubectl create -f "+file)
	s.MustShell(t, "kubectl create secret generic other --from-literal=value="+storedSecret)
	s.MustShell(t, "kubectl wait --for=condition=Ready --timeout=300s agent/coder")
}

func applyTask(t *testing.T, s place, name, prompt string) {
	t.Helper()
	s.MustShell(t, fmt.Sprintf(`kubectl create -f - <<< '{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":%q},"spec":{"type":"ai","agentRef":{"name":"coder"},"prompt":%q,"timeout":"5m"}}'`, name, prompt))
}

func getJSON(t *testing.T, s place, what string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s.MustShell(t, "kubectl get -o json "+what)), into); err != nil {
		t.Fatal(err)
	}
}

// TestAgentTask runs a whole agent task and then looks for its secrets in
// everything that the server stores, logs and answers.
func TestAgentTask(t *testing.T) {
	everywhere(t, func(t *testing.T, s place) { agentTask(t, s, v1alpha1.ProviderOpenAI) })
}

// TestAgentTaskOnAnthropic is the same task with a model that speaks the Messages protocol.
func TestAgentTaskOnAnthropic(t *testing.T) {
	everywhere(t, func(t *testing.T, s place) { agentTask(t, s, v1alpha1.ProviderAnthropic) })
}

func agentTask(t *testing.T, s place, vendor v1alpha1.ProviderType) {
	applyTeamOf(t, s, vendor, startModel(t, s, scripts+"demo.yaml"))
	s.MustShell(t, "kubectl apply -f ../../artifacts/demo/task.yaml")
	s.MustShell(t, "kubectl wait --for=jsonpath='{.status.phase}'=Succeeded --timeout=300s task/primes")

	var task v1alpha1.Task
	getJSON(t, s, "task primes", &task)
	if u := task.Status.Usage; u == nil || u.InputTokens == nil || *u.InputTokens == 0 {
		t.Errorf("usage is %+v", u)
	}
	taskPath := native(s, "tasks/primes")
	if got := s.MustShell(t, "kubectl get --raw "+taskPath+"/result"); !strings.Contains(got, `2\n3\n5\n7\n11\n13\n17\n19\n23\n29`) {
		t.Errorf("result: %s", got)
	}
	answers := s.Records(t)
	for _, line := range []string{
		"kubectl get tasks,agents,providers,tools,skills,sessions,executionevents,events,configmaps,serviceaccounts -A -o yaml",
		"kubectl get --raw " + taskPath + "/log", "kubectl get --raw " + taskPath + "/result", "kubectl get --raw " + taskPath + "/artifacts",
		"kubectl get --raw /metrics", "kubectl describe secrets", "kubectl get secrets",
	} {
		answers[line] = s.MustShell(t, line)
	}
	for _, secret := range []string{providerKey, storedSecret} {
		for from, text := range answers {
			if strings.Contains(text, secret) {
				t.Errorf("%s is in the output of %s", secret, from)
			}
		}
		searchFolder(t, s.Data(), secret)
	}
	s.RestartServer(t)
	for _, secret := range []string{providerKey, storedSecret} {
		searchFolder(t, s.Data(), secret) // includes what was flushed at the end
	}
}

// searchFolder looks for the bytes of a secret, plain and in base64, in every file.
func searchFolder(t *testing.T, dir, secret string) {
	t.Helper()
	// The middle of a base64 text does not depend on what stands before, for one of three offsets.
	needles := []string{secret}
	for offset := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", offset) + secret))
		needles = append(needles, encoded[4:len(encoded)-4])
	}
	eachFile(t, dir, func(path string, data []byte) {
		for _, n := range needles {
			if strings.Contains(string(data), n) {
				t.Errorf("%s is in %s", secret, path)
			}
		}
	})
}

// eachFile reads every file below a folder, but for some folders in it. Servers may write there meanwhile; files that they have removed are skipped.
func eachFile(t *testing.T, dir string, f func(path string, data []byte), except ...string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		var data []byte
		if err == nil && slices.Contains(except, path) {
			return fs.SkipDir
		}
		if err == nil && d.Type().IsRegular() {
			if data, err = os.ReadFile(path); err == nil {
				files++
				f(path, data)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil || files == 0 {
		t.Fatalf("searched %d files: %v", files, err)
	}
}

// TestModelFaults triggers each fault of the model and checks the outcome of the task.
func TestModelFaults(t *testing.T) {
	t.Parallel()
	everywhere(t, modelFaults)
}

func modelFaults(t *testing.T, s place) {
	cases := []struct {
		prompt  string
		phase   v1alpha1.TaskPhase
		message string // part of status.message
		events  []v1alpha1.EventType
	}{
		{"say-401", v1alpha1.TaskFailed, "401", []v1alpha1.EventType{v1alpha1.EventModelRequestFailed, v1alpha1.EventWorkerFailed, v1alpha1.EventTaskFailed}},
		{"say-429-once", v1alpha1.TaskSucceeded, "", []v1alpha1.EventType{v1alpha1.EventModelRequestFailed, v1alpha1.EventModelRequestCompleted}},
		{"say-500-once", v1alpha1.TaskSucceeded, "", []v1alpha1.EventType{v1alpha1.EventModelRequestFailed, v1alpha1.EventModelRequestCompleted}},
		{"cut-once", v1alpha1.TaskSucceeded, "", []v1alpha1.EventType{v1alpha1.EventModelRequestFailed, v1alpha1.EventModelRequestCompleted}},
		{"say-400", v1alpha1.TaskFailed, "400", []v1alpha1.EventType{v1alpha1.EventModelRequestFailed}},
		{"bad-arguments", v1alpha1.TaskSucceeded, "", []v1alpha1.EventType{v1alpha1.EventToolCallFailed}},
		{"no-usage", v1alpha1.TaskSucceeded, "", []v1alpha1.EventType{v1alpha1.EventModelRequestCompleted}},
		{"loop-for-ever", v1alpha1.TaskFailed, "iterations", []v1alpha1.EventType{v1alpha1.EventToolCallFailed}},
	}
	applyTeam(t, s, startModel(t, s, scripts+"faults.yaml"))
	for _, tc := range cases {
		applyTask(t, s, tc.prompt, tc.prompt)
	}
	s.MustShell(t, "kubectl wait --for=condition=Complete --timeout=300s task --all")
	for _, tc := range cases {
		t.Run(tc.prompt, func(t *testing.T) {
			var task v1alpha1.Task
			getJSON(t, s, "task "+tc.prompt, &task)
			if task.Status.Phase != tc.phase || !strings.Contains(task.Status.Message, tc.message) {
				t.Errorf("phase %s, message %q", task.Status.Phase, task.Status.Message)
			}
			var events v1alpha1.ExecutionEventList
			getJSON(t, s, "executionevents --field-selector taskName="+tc.prompt, &events)
			var types []v1alpha1.EventType
			for i, e := range events.Items {
				types = append(types, e.Type)
				if e.Seq != int64(i+1) {
					t.Errorf("event %d has seq %d", i, e.Seq)
				}
			}
			for _, want := range tc.events {
				if !slices.Contains(types, want) {
					t.Errorf("no %s in %v", want, types)
				}
			}
			if u := task.Status.Usage; tc.prompt == "no-usage" && (u == nil || u.InputTokens != nil) {
				t.Errorf("usage that was not reported is %+v", u)
			}
		})
	}
}
