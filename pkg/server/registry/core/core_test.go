// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

// server is one with more that the tests of this package need.
type server struct {
	*coretest.Server
	t testing.TB
}

const controllers = coretest.Controllers

func start(t *testing.T) *server { t.Helper(); return &server{coretest.Start(t), t} }

func startIn(t *testing.T, dir string) *server {
	t.Helper()
	return &server{coretest.StartIn(t, dir), t}
}

func startAt(t *testing.T, dir string, now clock.WithTickerAndDelayedExecution) *server {
	t.Helper()
	return &server{coretest.StartAt(t, dir, now), t}
}

// The server accepts all examples. test/arch sees that there is one of every kind.
func TestExamples(t *testing.T) {
	s := start(t)
	for _, folder := range []string{"", "connectors/", "create/"} { // those of create cannot be applied
		files, err := filepath.Glob("../../../../artifacts/examples/" + folder + "*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, path := range files {
			// This server has neither models nor a ledger, lets nobody impersonate others or read what gateways deliver, and knows no person.
			if !slices.Contains([]string{"chat.yaml", "usagereport.yaml", "gatewayidentity.yaml", "gatewayrecordquery.yaml", "connectionauthorization.yaml"}, filepath.Base(path)) {
				s.accepts(path)
			}
		}
	}
}

func (s *server) accepts(path string) {
	s.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	for docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			s.t.Fatal(path, err)
		}
		obj, err := s.Decode(string(doc))
		if err != nil {
			s.t.Error(path, err)
			continue
		}
		if _, err := s.Apply(v1alpha1.Plural(obj.GetObjectKind().GroupVersionKind().Kind), string(doc)); err != nil {
			s.t.Error(path, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	s := start(t)
	task := s.MustApply("tasks", `apiVersion: core.platform.ai/v1alpha1
kind: Task
metadata: {name: a}
spec: {type: agent, agentRef: {name: x}, prompt: p, workspace: {gitRepo: "https://h/r"}, sessionRef: {name: s}, retryPolicy: {maxRetries: 1}}`).(*v1alpha1.Task)
	spec := task.Spec
	if *spec.Priority != 500 || spec.TimeZone != "UTC" || spec.ConcurrencyPolicy != v1alpha1.ConcurrencyForbid || *spec.StartingDeadlineSeconds != 100 ||
		*spec.SuccessfulRunsHistoryLimit != 3 || *spec.FailedRunsHistoryLimit != 1 || *spec.RetryPolicy.BackoffMultiplier != 2 ||
		!*spec.SessionRef.Append || *spec.SessionRef.MaxMessages != 50 || spec.Workspace.Intent != v1alpha1.WorkspaceRead ||
		spec.Workspace.PushBranch != "" || *spec.Timeout != "30m" {
		t.Errorf("task: %+v", spec)
	}
	tool := s.MustApply("tools", `apiVersion: core.platform.ai/v1alpha1
kind: Tool
metadata: {name: a}
spec: {description: d, http: {url: "https://h/"}}`).(*v1alpha1.Tool)
	if h := tool.Spec.HTTP; h.Method != v1alpha1.ToolPost || h.AuthInject != v1alpha1.AuthInjectHeader || *h.Timeout != "30s" {
		t.Errorf("tool: %+v", h)
	}
	agent := s.MustApply("agents", `apiVersion: core.platform.ai/v1alpha1
kind: Agent
metadata: {name: a}
spec: {coordination: {enabled: true}, tools: [{name: t}], session: {}}`).(*v1alpha1.Agent)
	if c := agent.Spec.Coordination; *c.MaxConcurrentChildren != 5 || *c.MaxDepth != 3 || *c.MaxTasks != 200 || c.MaxIterations != 0 || !*agent.Spec.Tools[0].Enabled || *agent.Spec.Session.MaxMessages != 50 {
		t.Errorf("agent: %+v", agent.Spec)
	}
	provider := s.MustApply("providers", `apiVersion: core.platform.ai/v1alpha1
kind: Provider
metadata: {name: a}
spec: {type: openai, secretRef: {name: s}}`).(*v1alpha1.Provider)
	if provider.Spec.SecretRef.Key != "api-key" {
		t.Errorf("provider: %+v", provider.Spec)
	}
}
