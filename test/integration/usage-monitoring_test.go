// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// expressions returns what the alert rules and the dashboard evaluate.
func expressions(t *testing.T) (all []string) {
	t.Helper()
	var rules struct {
		Spec struct {
			Groups []struct{ Rules []struct{ Expr string } }
		}
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	for file, decode := range map[string]func([]byte) error{
		"alerts.yaml":    func(b []byte) error { return yaml.Unmarshal(b, &rules) },
		"dashboard.json": func(b []byte) error { return json.Unmarshal(b, &board) },
	} {
		data, err := os.ReadFile("../../manifests/monitoring/" + file)
		if err == nil {
			err = decode(data)
		}
		if err != nil {
			t.Fatal(file, err)
		}
	}
	for _, g := range rules.Spec.Groups {
		for _, r := range g.Rules {
			all = append(all, r.Expr)
		}
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	return all
}

// TestMetricsOfMonitoring: a running server serves every metric that the alert rules and the dashboard name, with every label
// by which they select or group, but those of other programs.
func TestMetricsOfMonitoring(t *testing.T) {
	t.Parallel()
	p, _ := withChat(t, "turns: [{times: 1, reply: {text: Hello.}}, {times: 1, reply: {text: Hello., noUsage: true}}, {reply: {text: Hello.}}]")
	client := restAs(t, p.Server, "default", "client", "edit")
	for range 2 { // the second answer does not report its usage
		const body = `{"model":"scripted-1","messages":[{"role":"user","content":"hello"}]}`
		if got := client.with("X-Platform-Tools", "disabled").do(http.MethodPost, "/openai/v1/chat/completions", body); got.code != http.StatusOK {
			t.Fatalf("%d %s", got.code, got.body)
		}
	}
	client.chat(map[string]any{"message": "hello"}, http.StatusOK)
	client.get(tasksPath+"/none").want(t, http.StatusNotFound)
	client.post("/api/v1/chat", `{"message":"`+strings.Repeat("x", 20<<20)+`"}`).want(t, http.StatusRequestEntityTooLarge)
	task, worker := restTask(t, p.Server, "a")
	const path = "/internal/v1/events/default/task/a"
	worker.post(path, `{"type":"ToolCallFailed","severity":"error","content":{"tool":"x","errorType":"timeout","durationMs":5}}`).want(t, http.StatusCreated)
	worker.post(path, `{"type":"TaskSucceeded"}`).want(t, http.StatusForbidden)
	if code, body := get(t, p.Server.client(), tasksPath+"/"+task.Name+"/events", ""); code != http.StatusOK {
		t.Fatal(code, body)
	}
	_, metrics := get(t, p.Server.client(), "/metrics", "")
	name, label := regexp.MustCompile(`\b(?:platform|process)_\w+`), regexp.MustCompile(`(?:by \(([\w, ]+)\))|\{(\w+)[=~!]`)
	checked := 0
	for _, expr := range expressions(t) {
		for _, metric := range name.FindAllString(expr, -1) {
			if strings.HasPrefix(metric, "platform_router_") || strings.HasPrefix(metric, "platform_worker_identity_") {
				continue // of platform-router and platform-apiserver
			}
			checked++
			series := regexp.MustCompile(`(?m)^` + metric + `(\{.*\})? `).FindString(metrics)
			if series == "" {
				t.Errorf("%s: the server does not serve %s", expr, metric)
			}
			for _, found := range label.FindAllStringSubmatch(expr, -1) {
				for _, l := range strings.Split(found[1]+found[2], ", ") {
					if l != "job" && !strings.Contains(series, l+`="`) { // Prometheus adds the job
						t.Errorf("%s: %s has no label %s: %s", expr, metric, l, series)
					}
				}
			}
		}
	}
	if checked < 25 {
		t.Errorf("%d metrics were checked", checked)
	}
}
