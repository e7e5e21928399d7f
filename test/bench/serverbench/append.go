// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const base = "/apis/core.platform.ai/v1alpha1/namespaces/default/"

// openTask makes a task whose stream stays open, and waits until it runs.
func openTask(ctx context.Context, c *http.Client, url, name string) error {
	body := fmt.Sprintf(`{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":%q},"spec":{"type":"container","command":["sleep"],"args":["86400"]}}`, name)
	if err := send(ctx, c, http.MethodPost, url+base+"tasks", []byte(body), nil); err != nil {
		return err
	}
	return follow(ctx, c, url, name, func(f frame) (bool, error) {
		switch f.Object.Status.Phase {
		case "Running":
			return true, nil
		case "Failed", "Cancelled", "Succeeded":
			return false, fmt.Errorf("task %s is %s: %s", name, f.Object.Status.Phase, f.Object.Status.Message)
		}
		return false, nil
	})
}

// deleteTask removes a task and waits until its run is stopped and it is gone.
func deleteTask(ctx context.Context, c *http.Client, url, name string) error {
	deleted := false
	return follow(ctx, c, url, name, func(f frame) (bool, error) {
		if !deleted {
			deleted = true
			return false, send(ctx, c, http.MethodDelete, url+base+"tasks/"+name, nil, nil)
		}
		return f.Type == "DELETED", nil
	})
}

// frame is the part of a watch event of a task that is read here.
type frame struct {
	Type   string
	Object struct {
		Status struct{ Phase, Message string }
	}
}

// follow watches a task, from its current state on, until see is done.
func follow(ctx context.Context, c *http.Client, url, name string, see func(frame) (done bool, err error)) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+base+"tasks?watch=true&fieldSelector=metadata.name="+name, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	frames := json.NewDecoder(resp.Body)
	for {
		var f frame
		if err := frames.Decode(&f); err != nil {
			return fmt.Errorf("watch task %s: %w", name, err)
		}
		if done, err := see(f); done || err != nil {
			return err
		}
	}
}

func send(ctx context.Context, c *http.Client, method, url string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: status %d: %s", method, url, resp.StatusCode, data)
	}
	if out != nil {
		return json.Unmarshal(data, out)
	}
	return nil
}

// sendMinimal posts as workers do, who do not read what was stored.
func sendMinimal(ctx context.Context, c *http.Client, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Prefer", "return=minimal")
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if data, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("POST %s: status %d: %s: %w", url, resp.StatusCode, data, err)
	}
	return nil
}

// workerToken makes a service account that may append events to every task, as workers together may, and a token of it.
func workerToken(ctx context.Context, c *http.Client, url string) (string, error) {
	return accountToken(ctx, c, url, "bench", `{"apiGroups":["core.platform.ai"],"resources":["tasks/events"],"verbs":["create"]}`)
}

// accountToken makes a service account whose role has the rules, and a token of it.
func accountToken(ctx context.Context, c *http.Client, url, name, rules string) (string, error) {
	const accounts = "/api/v1/namespaces/default/serviceaccounts"
	for path, body := range map[string]string{
		accounts: `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"` + name + `"}}`,
		"/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles": `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role",
			"metadata":{"name":"` + name + `"},"rules":[` + rules + `]}`,
		"/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings": `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding",
			"metadata":{"name":"` + name + `"},"subjects":[{"kind":"ServiceAccount","name":"` + name + `","namespace":"default"}],
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"` + name + `"}}`,
	} {
		if err := send(ctx, c, http.MethodPost, url+path, []byte(body), nil); err != nil {
			return "", err
		}
	}
	var token struct{ Status struct{ Token string } }
	err := send(ctx, c, http.MethodPost, url+accounts+"/"+name+"/token",
		[]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`), &token)
	return token.Status.Token, err
}

// buildLog is 1 KiB of text as a build prints it, with paths and one URL.
var buildLog = strings.Repeat("go: downloading example.org/module v1.2.3 => /root/pkg/mod/cache ok  \n", 14) + "see https://example.org/builds/42 for all of it"

// payload is the body of one append of n events with 1 KiB of content each.
func payload(n int) ([]byte, error) {
	item := map[string]any{
		"apiVersion": "core.platform.ai/v1alpha1", "kind": "ExecutionEvent", "type": "ModelMessage",
		"summary": "the model answered in thirty-nine bytes", "content": map[string]any{"text": buildLog},
	}
	if n == 1 {
		return json.Marshal(item)
	}
	items := make([]any, n)
	for i := range items {
		items[i] = item
	}
	return json.Marshal(map[string]any{"apiVersion": "core.platform.ai/v1alpha1", "kind": "ExecutionEventList", "items": items})
}

// appendLoad describes clients that append batches of events to tasks, each
// client with a connection of its own.
type appendLoad struct {
	token          string
	tasks          []string
	clients, batch int
}

// run drives appends through TLS, authentication, authorization, redaction and fsync for d. It returns events a second,
// and the processor time of the server for each request, in microseconds.
func (l appendLoad) run(ctx context.Context, s *server, d time.Duration) (rate, each float64, err error) {
	body, err := payload(l.batch)
	if err != nil {
		return 0, 0, err
	}
	used, err := s.cpu()
	if err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		wait     sync.WaitGroup
		requests atomic.Int64
		stop     atomic.Bool
	)
	from := time.Now()
	for i := range l.clients {
		c, url, err := s.client(l.token)
		if err != nil {
			return 0, 0, err
		}
		path := url + base + "tasks/" + l.tasks[i%len(l.tasks)] + "/events"
		wait.Go(func() {
			defer c.CloseIdleConnections()
			for !stop.Load() {
				if err := sendMinimal(ctx, c, path, body); err != nil {
					cancel(err)
					return
				}
				requests.Add(1)
			}
		})
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	n, took := requests.Load(), time.Since(from)
	stop.Store(true)
	wait.Wait()
	if err := context.Cause(ctx); err != nil {
		return 0, 0, err
	}
	until, err := s.cpu()
	if err != nil {
		return 0, 0, err
	}
	return float64(n*int64(l.batch)) / took.Seconds(), (until - used) * 1e6 / float64(max(requests.Load(), 1)), nil
}
