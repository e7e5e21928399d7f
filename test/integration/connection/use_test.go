// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// refreshes is the counter of refreshes.
const refreshes = "platform_connections_refreshes_total"

// ended links an account whose access token has ended since.
func (x *tools) ended(c *standalone.Client) row {
	x.T.Helper()
	x.provider.Expires(600)
	linked := x.linked(c, "")
	x.clock.By.Add(int64(10 * time.Minute))
	return linked
}

// seen is the connection as its owner sees it.
func (x *tools) seen(c *standalone.Client, name string) row {
	x.T.Helper()
	return host.Decode[row](x.T, c.Get("/api/v1/connections/"+name).Want(x.T, http.StatusOK))
}

// Agents of several tasks use an account whose access token has ended: it is refreshed once, and all of them read with the new one.
func TestRefreshForAgents(t *testing.T) {
	t.Parallel()
	const tasks = 4
	x := newTools(t, readScript, "find")
	ann := x.person("user-ann")
	linked := x.ended(ann)
	for i := range tasks {
		x.begin(ann, fmt.Sprintf("task-%d", i))
	}
	for i := range tasks {
		name := fmt.Sprintf("task-%d", i)
		if task := x.end(name); task.Status.Phase != v1alpha1.TaskSucceeded || !strings.Contains(x.result(ann, name), "q:shoes") {
			t.Errorf("task: %+v", task.Status)
		}
	}
	calls := x.provider.Calls()
	if len(calls) != tasks {
		t.Fatalf("%d calls", len(calls))
	}
	for _, c := range calls {
		if c.Access != calls[0].Access {
			t.Error("the calls have several tokens")
		}
	}
	if n := x.provider.Requests("/token"); n != 2 || x.counted(refreshes, "refreshed") != 1 {
		t.Errorf("%d requests for tokens, and counted %d refreshes", n, x.counted(refreshes, "refreshed"))
	}
	if c := x.get(linked.Name); c.Status.LastRefreshTime == nil || c.Status.GrantSequence != 1 || c.Status.State != v1alpha1.ConnectionReady {
		t.Errorf("status %+v", c.Status)
	}
	x.leaked(x.provider.Secrets())
}

// A provider that does not honour a grant any longer is asked once. The model and the person are told, and another consent makes it good.
func TestRefreshRevoked(t *testing.T) {
	t.Parallel()
	x := newTools(t, readScript, "find")
	ann := x.person("user-ann")
	linked := x.ended(ann)
	x.provider.Answers("/token", func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant"}`)) // a client that left needs no answer
		return true
	})
	for i := range 2 {
		name := fmt.Sprintf("refused-%d", i)
		x.ask(ann, name)
		if got := x.result(ann, name); !strings.Contains(got, "platform connection connect provider -n team") {
			t.Errorf("result: %s", got)
		}
		if got := x.seen(ann, linked.Name); got.State != string(v1alpha1.ConnectionRevoked) || got.Ready {
			t.Errorf("the person sees %+v", got)
		}
	}
	if n := x.provider.Requests("/token"); n != 2 || len(x.provider.Calls()) > 0 || x.counted(refreshes, "revoked") != 1 {
		t.Errorf("%d requests for tokens, calls %v", n, x.provider.Calls())
	}
	x.provider.Answers("/token", nil)
	x.linked(ann, "")
	x.ask(ann, "again")
	if got := x.result(ann, "again"); !strings.Contains(got, "q:shoes") {
		t.Errorf("result: %s", got)
	}
	x.leaked(x.provider.Secrets())
}

// A provider that cannot refresh a token now is asked again later, and the person need not do anything.
func TestRefreshLater(t *testing.T) {
	t.Parallel()
	x := newTools(t, readScript, "find")
	ann := x.person("user-ann")
	linked := x.ended(ann)
	x.provider.Answers("/token", func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "later", http.StatusServiceUnavailable)
		return true
	})
	x.ask(ann, "early")
	if got := x.result(ann, "early"); !strings.Contains(got, "cannot be refreshed now") || strings.Contains(got, "connection connect") {
		t.Errorf("result: %s", got)
	}
	if got := x.seen(ann, linked.Name); got.State != string(v1alpha1.ConnectionExpired) || got.Ready {
		t.Errorf("the person sees %+v", got)
	}
	x.provider.Answers("/token", nil)
	x.clock.By.Add(int64(time.Minute))
	x.ask(ann, "late")
	if got := x.result(ann, "late"); !strings.Contains(got, "q:shoes") {
		t.Errorf("result: %s", got)
	}
	if got := x.seen(ann, linked.Name); got.State != string(v1alpha1.ConnectionReady) || !got.Ready {
		t.Errorf("the person sees %+v", got)
	}
	if n := x.provider.Requests("/token"); n != 3 || x.counted(refreshes, "failed") != 1 || x.counted(refreshes, "refreshed") != 1 {
		t.Errorf("%d requests for tokens", n)
	}
}
