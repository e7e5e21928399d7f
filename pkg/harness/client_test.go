// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package harness_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/harness"
	"github.com/platform-ai/platform/test/pipenet"
	"github.com/platform-ai/platform/test/referenceruntime/runtime"
)

var (
	token = strings.Repeat("token-", 6)
	key   = []byte(strings.Repeat("key+/", 8))
)

// serve serves a handler in a bubble and returns a client of it, without limits.
func serve(t *testing.T, h http.Handler) *harness.Client {
	t.Helper()
	l := pipenet.Listen()
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(l) }()
	transport := &http.Transport{DialContext: l.DialContext}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return harness.New(harness.Options{
		Endpoint: &url.URL{Scheme: "http", Host: "runtime.example.com"}, Transport: transport, Token: token, Key: key, Instance: "i-1", Epoch: 1, Clock: clock.RealClock{},
	})
}

// start returns a client of a reference runtime that knows its limits.
func start(t *testing.T, broken ...string) *harness.Client {
	t.Helper()
	r, err := runtime.New(runtime.Options{Instance: "i-1", Token: token, Key: key, Dir: t.TempDir(), MinLease: time.Second, Broken: broken})
	if err != nil {
		t.Fatal(err)
	}
	c := serve(t, r)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	a, err := c.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c.For("i-1", 1, a.Capabilities.Limits)
}

// created returns a new session.
func created(t *testing.T, c *harness.Client) *harness.Session {
	t.Helper()
	s := c.Session("s", 1)
	if _, err := s.Create(t.Context(), harness.NewOperation(), harness.SessionSpec{}); err != nil {
		t.Fatal(err)
	}
	return s
}

func all(s *harness.Stream) (events []*harness.Event, err error) {
	for {
		e, err := s.Next()
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

// silent waits until the client has gone. A server notices that only once the body was read.
func silent(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// TestKeep: a lease that is kept lasts, and Keep says when it was lost.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := created(t, start(t))
		stream, err := s.Start(t.Context(), harness.NewOperation(), "p", harness.PromptSpec{Texts: []string{"do: await-cancel"}, LeaseMillis: 3000})
		if err != nil {
			t.Fatal(err)
		}
		kept := make(chan error)
		go func() { kept <- s.Keep(t.Context(), "p", 3000) }()
		time.Sleep(5 * time.Minute)
		if st, err := s.Get(t.Context()); err != nil || st.State != harness.SessionRunning {
			t.Fatalf("%+v, %v", st, err)
		}
		if _, err := s.Cancel(t.Context(), harness.NewOperation(), "p", ""); err != nil {
			t.Fatal(err)
		}
		events, err := all(stream)
		if !errors.Is(err, io.EOF) || events[len(events)-1].Result.Outcome != harness.CancelledThen {
			t.Errorf("%v, %v", events, err)
		}
		if err := <-kept; !harness.Refused(err, harness.LeaseLost) {
			t.Errorf("the end of the prompt ends the lease with %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			silent(r)
		}))
		began := time.Now()
		err := c.Session("s", 1).Keep(t.Context(), "p", 3000)
		if err == nil || time.Since(began) != 3*time.Second {
			t.Errorf("a lease of 3 s was taken for lost after %s: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Session("s", 1).Keep(ctx, "p", 3000); err != nil {
			t.Errorf("whoever stops gets %v", err)
		}
	})
}

// TestCut: a prompt goes on without its reader, who reads the rest later.
func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := created(t, start(t))
		stream, err := s.Start(t.Context(), harness.NewOperation(), "p", harness.PromptSpec{Texts: []string{"do: say one\ndo: permit edit x\ndo: say two"}, LeaseMillis: 60_000})
		if err != nil {
			t.Fatal(err)
		}
		var question *harness.Permission
		for question == nil {
			e, err := stream.Next()
			if err != nil {
				t.Fatal(err)
			}
			question = e.Permission
		}
		if err := stream.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Next(); !errors.Is(err, harness.ErrCut) {
			t.Errorf("a stream that was closed: %v", err)
		}
		if err := s.Answer(t.Context(), harness.NewOperation(), "p", question.ID, harness.PermissionAnswer{Decision: harness.Allow, ArgumentsDigest: question.ArgumentsDigest}); err != nil {
			t.Fatal(err)
		}
		rest, err := s.Resume(t.Context(), "p", stream.Last())
		if err != nil {
			t.Fatal(err)
		}
		events, err := all(rest)
		if !errors.Is(err, io.EOF) || len(events) != 4 || events[0].Type != harness.EventPermissionSettled || events[3].Result.Text != "two" {
			t.Errorf("%d events, %v", len(events), err)
		}
	})
}

// TestAlive: silence with signs of life is no end; without them it is one.
func TestAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := created(t, start(t))
		stream, err := s.Start(t.Context(), harness.NewOperation(), "p", harness.PromptSpec{Texts: []string{"do: await-cancel"}, LeaseMillis: 600_000})
		if err != nil {
			t.Fatal(err)
		}
		events, err := all(stream) // the lease ends after ten minutes of silence
		if !errors.Is(err, io.EOF) || len(events) != 2 || events[1].Result.Outcome != harness.LostLease {
			t.Errorf("%v, %v", events, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", harness.TypeStream)
			_, _ = io.WriteString(w, `{"seq":1,"type":"accepted","session":"s","generation":1,"prompt":"p","leaseMillis":1}`+"\n")
			_ = http.NewResponseController(w).Flush()
			silent(r)
		})).For("i-1", 1, &v1alpha1.AgentRuntimeLimits{})
		stream, err := c.Session("s", 1).Start(t.Context(), "op", "p", harness.PromptSpec{Texts: []string{"x"}, LeaseMillis: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Next(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute) // the reader's own time does not count
		began := time.Now()
		if _, err := stream.Next(); !errors.Is(err, harness.ErrSilent) || !errors.Is(err, harness.ErrCut) || time.Since(began) != 30*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// TestHostile: what a runtime answers against the protocol is refused, with a reason, within bounds, and without a secret.
func TestHostile(t *testing.T) {
	quoted, err := json.Marshal(token)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		status     int
		kind, body string
		want       error
		says       string
	}{
		"a page":             {200, "text/html", "<html>", harness.ErrProtocol, "Content-Type must be application/json"},
		"not JSON":           {200, "application/json", "{", harness.ErrProtocol, "the answer to GET /v2/status"},
		"endless":            {200, "application/json", strings.Repeat(" ", 5<<20), harness.ErrProtocol, "more than 4194304 bytes"},
		"a redirect":         {302, "text/html", "", harness.ErrProtocol, "redirect (status 302), which is not followed"},
		"repeats the token":  {200, "application/json", fmt.Sprintf(`{"protocol":%s,%s:1}`, quoted, quoted), harness.ErrProtocol, "[a secret]"},
		"another protocol":   {200, "application/json", `{"protocol":"platform.harness.v3","instance":"i","lifecycle":"serving","controllerEpoch":0,"runningPrompts":0,"sessions":[]}`, harness.ErrProtocol, "protocol must be"},
		"an error":           {409, "application/json", fmt.Sprintf(`{"error":{"code":409,"reason":"Busy","message":%s}}`, quoted), nil, "Busy: [a secret]"},
		"an error of others": {502, "text/html", "<html>", harness.ErrProtocol, "status 502 is not an error of the protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Authorization") != "Bearer "+token {
						t.Error("no token")
					}
					w.Header().Set("Content-Type", tc.kind)
					w.Header().Set("Location", "/elsewhere")
					w.WriteHeader(tc.status)
					_, _ = io.WriteString(w, tc.body)
				}))
				_, err := c.Status(t.Context())
				if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), token) {
					t.Errorf("%v; want %q", err, tc.says)
				}
			})
		})
	}
}

// TestUnreachable: a runtime that does not answer is unreachable after a while, and one whose health is bad is not.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { silent(r) }))
		began := time.Now()
		if _, err := c.Capabilities(t.Context()); !errors.Is(err, harness.ErrUnreachable) || time.Since(began) != 30*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", harness.TypeJSON)
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"protocol":"platform.harness.v2","instance":"i","status":"unhealthy"}`)
		}))
		if h, err := c.Health(t.Context()); err != nil || h.Status != harness.HealthUnhealthy {
			t.Errorf("%+v, %v", h, err)
		}
	})
}

// TestBootstrap: an instance without credentials takes one pair, once, and answers nothing before that.
func TestBootstrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bootstrap := strings.Repeat("b", 40)
		r, err := runtime.New(runtime.Options{Instance: "i-1", BootstrapToken: bootstrap, Dir: t.TempDir(), MinLease: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Close() }()
		l := pipenet.Listen()
		server := &http.Server{Handler: r}
		go func() { _ = server.Serve(l) }()
		transport := &http.Transport{DialContext: l.DialContext}
		defer func() {
			transport.CloseIdleConnections()
			_ = server.Shutdown(context.Background())
		}()
		with := func(token string, key []byte) *harness.Client {
			return harness.New(harness.Options{
				Endpoint: &url.URL{Scheme: "http", Host: "runtime.example.com"}, Transport: transport, Token: token, Key: key, Instance: "i-1", Epoch: 1, Clock: clock.RealClock{},
			})
		}
		full := with(token, key)
		if _, err := full.Status(t.Context()); !harness.Refused(err, harness.Unavailable) {
			t.Errorf("before: %v", err)
		}
		given := harness.Credentials{ControllerToken: token, OperationKey: key}
		if err := full.Bootstrap(t.Context(), "op-1", given); !harness.Refused(err, harness.Unauthenticated) {
			t.Errorf("with another token: %v", err)
		}
		for range 2 { // the answer to the first may have been lost
			if err := with(bootstrap, nil).Bootstrap(t.Context(), "op-1", given); err != nil {
				t.Error(err)
			}
		}
		if err := with(bootstrap, nil).Bootstrap(t.Context(), "op-2", harness.Credentials{ControllerToken: strings.Repeat("x", 32), OperationKey: key}); !harness.Refused(err, harness.AlreadyBootstrapped) {
			t.Errorf("once more: %v", err)
		}
		if _, err := with(bootstrap, nil).Status(t.Context()); !harness.Refused(err, harness.Unauthenticated) {
			t.Errorf("the bootstrap token reads the status: %v", err)
		}
		if _, err := full.Drain(t.Context(), "op-3", false); err != nil {
			t.Error(err)
		}
	})
}

// TestDelta: a delta that is not the one that was frozen is refused, before and after it came.
func TestDelta(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := []byte("a delta")
		sent := content
		c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", harness.TypeWorkspace)
			_, _ = w.Write(sent)
		}))
		d := &harness.DeltaStatus{ID: "d", Bytes: int64(len(content)), Digest: "sha256:0b7a5aac1a3dc0b3fa8a2f2b8f0d6a2c6cf5b0b6bd5ef4f3f6bdb4ce5d4c1dd1"}
		var file bytes.Buffer
		for _, wrong := range []string{"a delta", "a delt", "a delta and more, much more than was said"} {
			sent = []byte(wrong)
			file.Reset()
			if err := c.Session("s", 1).Fetch(t.Context(), d, &file); !errors.Is(err, harness.ErrProtocol) || file.Len() > len(content)+1 {
				t.Errorf("%q: %v, %d bytes written", wrong, err, file.Len())
			}
		}
	})
}
