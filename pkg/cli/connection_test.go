// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

const (
	testConnection = "github-0123456789ab"
	testAuthorize  = "https://accounts.example.com/authorize?state=a.b&scope=read"
	testCompletion = "bm9uY2U.bWFj"
)

// links is a server with one connection, whose watches a test writes. It notes what it is asked for.
type links struct {
	t        *testing.T
	now      v1alpha1.Connection
	begun    v1alpha1.ConnectionAuthorizationStatus
	watching func(watch int, send func(event string, c v1alpha1.Connection), r *http.Request)

	mu      sync.Mutex // guards all below
	asked   []string
	watches int
}

func newLinks(t *testing.T) (*links, string) {
	t.Helper()
	l := &links{t: t, now: v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{Name: testConnection, Namespace: "default", UID: "u", ResourceVersion: "5"},
		Spec:       v1alpha1.ConnectionSpec{ProviderRef: v1alpha1.LocalReference{Name: "github"}, Mode: v1alpha1.ConnectionReadOnly},
		Status:     v1alpha1.ConnectionStatus{State: v1alpha1.ConnectionPending, GrantSequence: 1},
	}}
	l.begun = v1alpha1.ConnectionAuthorizationStatus{AuthorizeURL: testAuthorize, Connection: &l.now}
	s := httptest.NewServer(l)
	t.Cleanup(s.Close)
	return l, s.URL
}

// linked is the connection after a newer consent.
func (l *links) linked() v1alpha1.Connection {
	c := l.now
	c.ResourceVersion = "7"
	c.Status = v1alpha1.ConnectionStatus{State: v1alpha1.ConnectionReady, GrantSequence: 2, GrantedScopes: []string{"read", "write"}}
	return c
}

func (l *links) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		l.t.Error(err)
	}
	path := strings.TrimPrefix(r.URL.Path, "/apis/core.platform.ai/v1alpha1/namespaces/default/")
	l.mu.Lock()
	l.asked = append(l.asked, strings.TrimSpace(r.Method+" "+path+" "+string(body)))
	if r.URL.Query().Get("watch") != "" {
		l.watches++
		n := l.watches
		l.mu.Unlock()
		if q := r.URL.Query(); q.Get("fieldSelector") != "metadata.name="+testConnection || q.Get("resourceVersion") != "5" {
			l.t.Errorf("watch of %v", q)
		}
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		l.watching(n, func(event string, c v1alpha1.Connection) {
			l.write(w, "Connection", map[string]any{"type": event, "object": withKind(l.t, &c, "Connection")})
			w.(http.Flusher).Flush()
		}, r)
		return
	}
	l.mu.Unlock()
	switch path {
	case "connectionauthorizations":
		l.write(w, "ConnectionAuthorization", withKind(l.t, &v1alpha1.ConnectionAuthorization{ObjectMeta: l.now.ObjectMeta, Status: l.begun}, "ConnectionAuthorization"))
	case "connections/" + testConnection + "/complete":
		c := l.linked()
		l.write(w, "ConnectionCompletion", withKind(l.t, &v1alpha1.ConnectionCompletion{Status: v1alpha1.ConnectionCompletionStatus{Connection: &c}}, "ConnectionCompletion"))
	default:
		l.write(w, "Connection", withKind(l.t, &l.now, "Connection"))
	}
}

// withKind is an object with its kind.
func withKind(t *testing.T, object any, kind string) map[string]any {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Error(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Error(err)
	}
	out["apiVersion"], out["kind"] = "core.platform.ai/v1alpha1", kind
	return out
}

func (l *links) write(w http.ResponseWriter, kind string, answer map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		l.t.Errorf("%s: %v", kind, err)
	}
}

// run runs a command, and returns what it printed.
func (l *links) run(address string, c clock.Clock, s Streams, args string) (out, errs string, code int) {
	l.t.Helper()
	var o, e bytes.Buffer
	s.Out, s.Err = &o, &e
	if s.In == nil {
		s.In = strings.NewReader("")
	}
	cmd, term := newCommand(s, "platform")
	term.clock = c
	cmd.SetArgs(append([]string{"--kubeconfig", "/dev/null", "-s", address}, strings.Fields(args)...))
	err := execute(func() error { return cmd.ExecuteContext(l.t.Context()) }, cmd)
	if err := term.screen.Flush(); err != nil {
		l.t.Error(err)
	}
	if err != nil && !silent(err) {
		note(&e, "platform: "+explain(err))
	}
	return o.String(), e.String(), exitCode(l.t.Context(), err)
}

// TestConnectWaitsByWatch: the command shows the address and ends with the first consent that is newer than the one before, also across a
// watch that is cut; and only the connection goes to standard output if that is what is asked for.
func TestConnectWaitsByWatch(t *testing.T) {
	l, address := newLinks(t)
	l.watching = func(n int, send func(string, v1alpha1.Connection), _ *http.Request) {
		if n == 1 {
			send("BOOKMARK", v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "6"}})
			send("MODIFIED", l.now) // a change that is no consent
			return
		}
		send("MODIFIED", l.linked())
	}
	out, errs, code := l.run(address, clock.RealClock{}, Streams{}, "connection connect github --mode readWrite --no-browser -o json")
	var c v1alpha1.Connection
	if err := json.Unmarshal([]byte(out), &c); err != nil || code != 0 || c.Status.GrantSequence != 2 || c.Kind != "Connection" {
		t.Errorf("exit code %d, %v\n%s%s", code, err, out, errs)
	}
	if !strings.Contains(errs, "\n  "+testAuthorize+"\n") || !strings.Contains(errs, "platform connection complete "+testConnection+" -n default\n") {
		t.Errorf("the address is missing:\n%s", errs)
	}
	if l.watches != 2 || !strings.Contains(l.asked[0], `"providerRef":{"name":"github"},"mode":"readWrite"`) {
		t.Errorf("%d watches, asked for %q", l.watches, l.asked)
	}
}

// TestConnectEnds: how the waiting ends without a consent.
func TestConnectEnds(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.Connection) string
		code   int
		says   string
	}{
		"deleted": {func(*v1alpha1.Connection) string { return "DELETED" }, 3, "was disconnected meanwhile"},
		"being deleted": {func(c *v1alpha1.Connection) string {
			c.DeletionTimestamp = &metav1.Time{Time: gatewayNow}
			return "MODIFIED"
		}, 3, "was disconnected meanwhile"},
		"another":        {func(c *v1alpha1.Connection) string { c.UID = types.UID("v"); return "MODIFIED" }, 3, "was disconnected meanwhile"},
		"linked, but no": {func(c *v1alpha1.Connection) string { notReady(c); return "MODIFIED" }, 1, "the connection is Error: ProviderMissing: gone"},
	} {
		l, address := newLinks(t)
		l.watching = func(_ int, send func(string, v1alpha1.Connection), _ *http.Request) {
			now := l.now
			event := c.change(&now)
			send(event, now)
		}
		out, errs, code := l.run(address, testclock.NewFakeClock(gatewayNow), Streams{}, "connection connect github --no-browser")
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%s: exit code %d\n%s%s", name, code, out, errs)
		}
	}

	// The time is over: of the server, as this machine's clock has it, or if the clocks differ the usual one.
	for name, by := range map[string]time.Duration{"as the server says": 5 * time.Minute, "the clocks differ": -time.Hour, "far ahead": time.Hour} {
		l, address := newLinks(t)
		l.begun.ExpiresAt = &metav1.Time{Time: gatewayNow.Add(by)}
		fake := testclock.NewFakeClock(gatewayNow)
		l.watching = func(_ int, _ func(string, v1alpha1.Connection), r *http.Request) {
			left := consentTime
			if by > 0 {
				left = min(by, consentTime)
			}
			fake.Step(left - time.Second)
			select {
			case <-r.Context().Done():
				t.Errorf("%s: it ended a second early", name)
			default:
			}
			fake.Step(time.Second)
			<-r.Context().Done()
		}
		out, errs, code := l.run(address, fake, Streams{}, "connection connect github --no-browser")
		if code != 4 || !strings.Contains(errs, "not completed in time") {
			t.Errorf("%s: exit code %d\n%s%s", name, code, out, errs)
		}
	}

	// Only an https address is shown and opened.
	l, address := newLinks(t)
	l.begun.AuthorizeURL = "javascript:alert(1)"
	out, errs, code := l.run(address, testclock.NewFakeClock(gatewayNow), Streams{}, "connection connect github")
	if code != 1 || strings.Contains(out+errs, "alert") || !strings.Contains(errs, "no https address") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

func notReady(c *v1alpha1.Connection) {
	c.Status = v1alpha1.ConnectionStatus{State: v1alpha1.ConnectionError, GrantSequence: 2, Conditions: []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}, {Type: v1alpha1.ConditionProviderResolved, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonProviderMissing, Message: "gone"},
	}}
}

// TestDisconnectAsks: nothing is deleted without a yes, and the command waits for the end of exactly that connection.
func TestDisconnectAsks(t *testing.T) {
	const command = "connection disconnect " + testConnection
	for _, c := range []struct {
		args, in   string
		ask        bool
		code       int
		says       string
		deletes    bool
		withoutEnd bool
	}{
		{command, "y\n", false, 1, "no terminal to ask on; add --yes", false, false},
		{command, "\n", true, 1, "disconnect " + testConnection + ", your account at github? [y/N] platform: nothing was disconnected", false, false},
		{command, "y\n", true, 0, "connection " + testConnection + " disconnected", true, false},
		{command + " --yes", "", false, 0, "connection " + testConnection + " disconnected", true, false},
		{command + " -y --wait=false", "", false, 0, "is being disconnected", true, true},
	} {
		l, address := newLinks(t)
		l.watching = func(_ int, send func(string, v1alpha1.Connection), _ *http.Request) {
			closing := l.now
			closing.DeletionTimestamp = &metav1.Time{Time: gatewayNow}
			send("MODIFIED", closing)
			send("DELETED", closing)
		}
		out, errs, code := l.run(address, testclock.NewFakeClock(gatewayNow), Streams{Ask: c.ask, In: strings.NewReader(c.in)}, c.args)
		all := strings.Join(l.asked, "\n")
		if code != c.code || !strings.Contains(errs+out, c.says) || strings.Contains(all, "DELETE connections/"+testConnection) != c.deletes {
			t.Errorf("%s with %q: exit code %d\n%s%s%s", c.args, c.in, code, all, out, errs)
		}
		if c.deletes && !strings.Contains(all, `"preconditions":{"uid":"u"}`) || (l.watches == 1) != (c.deletes && !c.withoutEnd) {
			t.Errorf("%s: %d watches, asked for %s", c.args, l.watches, all)
		}
	}
}

// TestComplete: the token is read from standard input, as it is or in the address of the page, and is not printed.
func TestComplete(t *testing.T) {
	const page = "https://platform.example.com/settings/connectors?"
	good := page + "status=pending&connection=" + testConnection + "&namespace=default#completion=" + testCompletion
	for _, c := range []struct {
		in, says string
		ask      bool
		code     int
	}{
		{testCompletion, "connection " + testConnection + " linked: readOnly, granted read write\n", false, 0},
		{" " + testCompletion + "\r\nmore", "linked", false, 0},
		{good + "\n", "Paste the address to which the browser was sent, or its completion token: ", true, 0},
		{"", "there is nothing on standard input", false, 1},
		{"a secret", "neither a completion token nor the address", false, 1},
		{strings.Repeat("x", 200) + "." + strings.Repeat("x", 200), "neither a completion token nor the address", false, 1},
		{strings.Replace(good, "default", "team", 1), "is for namespace team, and not for default", false, 1},
		{strings.Replace(good, testConnection, "other", 1), "is for connection other, and not for " + testConnection, false, 1},
		{page + "status=error&reason=access_denied", "the consent failed (access_denied); connect again", false, 1},
		{page + "status=pending", "has no completion token", false, 1},
		{"https://%zz/" + testCompletion, "the text is not an address", false, 1},
	} {
		l, address := newLinks(t)
		out, errs, code := l.run(address, testclock.NewFakeClock(gatewayNow), Streams{Ask: c.ask, In: strings.NewReader(c.in)}, "connection complete "+testConnection)
		all := strings.Join(l.asked, "\n")
		if code != c.code || !strings.Contains(out+errs, c.says) || strings.Contains(out+errs, testCompletion) {
			t.Errorf("%q: exit code %d\n%s%s", c.in, code, out, errs)
		}
		if sent := strings.Contains(all, "POST connections/"+testConnection+"/complete ") && strings.Contains(all, `"completion":"`+testCompletion+`"`); sent != (c.code == 0) {
			t.Errorf("%q: asked for %q", c.in, all)
		}
	}
}
