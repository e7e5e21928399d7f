// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// agree fails the test unless the status of a connection and what is kept for it say the same: so many grants were committed, which are
// revoked, and nothing else is, when the person disconnects. Before that the person connects once more, which always succeeds.
func (c *child) agree(what string, person *standalone.Client, name string, committed ...string) {
	c.T.Helper()
	state := v1alpha1.ConnectionReady
	if len(committed) == 0 {
		state = v1alpha1.ConnectionPending
	}
	if s := c.get(name).Status; s.GrantSequence != int64(len(committed)) || s.State != state {
		c.T.Errorf("%s: the connection is %s with %d grants, want %s with %d", what, s.State, s.GrantSequence, state, len(committed))
	}
	again, refresh := c.granted(person)
	if again.Name != name || !again.Ready {
		c.T.Errorf("%s: connected anew: %+v", what, again)
	}
	want := append(slices.Clone(committed), refresh)
	slices.Reverse(want)
	if got := c.disconnect(person, name); !slices.Equal(got, want) {
		c.T.Errorf("%s: revoked %v, want %v", what, got, want)
	}
	for code, n := range c.provider.Exchanged() {
		if n > 1 {
			c.T.Errorf("%s: %s was exchanged %d times", what, code, n)
		}
	}
}

// mirrored returns an Answer that has the provider answer into a buffer, calls between, and sends the whole answer then.
func (c *child) mirrored(between func()) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		buffer := httptest.NewRecorder()
		c.provider.Answer(buffer, r)
		between()
		maps.Copy(w.Header(), buffer.Header())
		w.Header().Set("Content-Length", strconv.Itoa(buffer.Body.Len()))
		w.WriteHeader(buffer.Code)
		_, _ = w.Write(buffer.Body.Bytes())
		_ = http.NewResponseController(w).Flush()
		return true
	}
}

// stop returns a func that waits until leave is called, or the test ends; at is closed when it is called for the first time.
func stop(t *testing.T) (at <-chan struct{}, wait, leave func()) {
	t.Helper()
	entered, left := make(chan struct{}), make(chan struct{})
	enter := sync.OnceFunc(func() { close(entered) })
	leave = sync.OnceFunc(func() { close(left) })
	t.Cleanup(leave) // before the provider ends, which waits for its requests
	return entered, func() { enter(); <-left }, leave
}

// The server is killed at each step of a consent. After each of them a consent is there or not, and never half of one.
func TestCrashAtEachStep(t *testing.T) {
	t.Parallel()
	c := newChild(t)
	c.apply()
	const subject = "user-ann"
	ann := c.person(subject)
	name := connector.Name("provider", c.tokens.URL, subject)
	crash := func() {
		t.Helper()
		c.crash()
		ann = c.person(subject)
	}
	// lost has a browser come back to a server that is killed before it has answered.
	lost := func(address string, at <-chan struct{}) {
		t.Helper()
		_, answered := begin(t.Context(), c.browser(), http.MethodGet, c.local(address), "")
		<-at
		crash()
		c.unanswered(answered)
	}

	// Begun, and nobody knows: the server reads the request never.
	ann.Get("/api/v1/connections").Want(t, http.StatusOK) // so there is a connection of TCP
	c.freeze()
	sent, answered := begin(t.Context(), ann, http.MethodPost, "/api/v1/connections", `{"provider":"provider"}`)
	<-sent
	crash()
	c.unanswered(answered)
	ann.Get("/api/v1/connections/"+name).Problem(t, http.StatusNotFound)

	// The state is stored: the consent goes on.
	begun := c.connect(ann, "")
	crash()
	address := c.provider.Consent(t, begun.AuthorizeURL)
	completion := c.parked(address)
	c.refused(address, "invalid_state")
	c.complete(ann, name, completion).Want(t, http.StatusOK)
	c.agree("state stored", ann, name, c.provider.Refresh(c.parameter(address, "code")))

	// The code is received, and not sent: the state is spent.
	begun = c.connect(ann, "")
	address = c.provider.Consent(t, begun.AuthorizeURL)
	at, wait, leave := stop(t)
	c.provider.Hello(wait)
	lost(address, at)
	c.provider.Hello(nil)
	leave()
	c.refused(address, "invalid_state")
	if n := c.provider.Exchanged()[c.parameter(address, "code")]; n != 0 {
		t.Errorf("code received: exchanged %d times", n)
	}
	c.agree("code received", ann, name)

	// The exchange is sent, and not answered.
	begun = c.connect(ann, "")
	address = c.provider.Consent(t, begun.AuthorizeURL)
	at, wait, leave = stop(t)
	c.provider.Answers("/token", func(http.ResponseWriter, *http.Request) bool { wait(); return true })
	lost(address, at)
	c.provider.Answers("/token", nil)
	leave()
	c.refused(address, "invalid_state")
	c.agree("exchange sent", ann, name)

	// It is answered, and the server does not read that.
	begun = c.connect(ann, "")
	address = c.provider.Consent(t, begun.AuthorizeURL)
	mirrored := make(chan struct{})
	answer := c.mirrored(c.freeze)
	c.provider.Answers("/token", func(w http.ResponseWriter, r *http.Request) bool { defer close(mirrored); return answer(w, r) })
	lost(address, mirrored)
	c.provider.Answers("/token", nil)
	c.refused(address, "invalid_state")
	if c.provider.Refresh(c.parameter(address, "code")) == "" {
		t.Error("exchange answered: there are no tokens")
	}
	c.agree("exchange answered", ann, name)

	// Tokens are parked, and the browser left before it was told.
	begun = c.connect(ann, "")
	address = c.provider.Consent(t, begun.AuthorizeURL)
	at, wait, leave = stop(t)
	c.provider.Answers("/token", func(http.ResponseWriter, *http.Request) bool { wait(); return false })
	ctx, left := context.WithCancel(t.Context())
	_, answered = begin(ctx, c.browser(), http.MethodGet, c.local(address), "")
	<-at
	before := c.counted(consents, "parked")
	left()
	<-answered
	leave()
	kit.Await(t, "tokens that are parked", func() bool { return c.counted(consents, "parked") == before+1 })
	crash()
	c.provider.Answers("/token", nil)
	c.refused(address, "invalid_state")
	c.agree("parked", ann, name)

	// The browser has the completion.
	begun = c.connect(ann, "")
	completion, refresh := c.consented(begun.AuthorizeURL)
	crash()
	if s := c.get(name).Status; s.State != v1alpha1.ConnectionPending {
		t.Errorf("completion shown: %+v", s)
	}
	c.complete(ann, name, completion).Want(t, http.StatusOK)
	c.agree("completion shown", ann, name, refresh)

	// The completion is posted, and the server reads it never.
	begun = c.connect(ann, "")
	completion, refresh = c.consented(begun.AuthorizeURL)
	c.freeze()
	sent, answered = begin(t.Context(), ann, http.MethodPost, "/api/v1/connections/"+name+"/complete", `{"completion":"`+completion+`"}`)
	<-sent
	crash()
	c.unanswered(answered)
	c.complete(ann, name, completion).Want(t, http.StatusOK)
	c.agree("completion posted", ann, name, refresh)

	// The completion is posted, and it is not known how far the server came: it is committed with the status, or neither is.
	begun = c.connect(ann, "")
	completion, refresh = c.consented(begun.AuthorizeURL)
	sent, answered = begin(t.Context(), ann, http.MethodPost, "/api/v1/connections/"+name+"/complete", `{"completion":"`+completion+`"}`)
	<-sent
	crash()
	done := <-answered
	switch s := c.get(name).Status; {
	case s.State == v1alpha1.ConnectionReady:
		c.complete(ann, name, completion).Problem(t, http.StatusConflict, "used")
	case done.err == nil && done.Code == http.StatusOK:
		t.Errorf("completed, and after the crash the connection is %+v", s)
	default:
		c.complete(ann, name, completion).Want(t, http.StatusOK)
	}
	c.agree("completion in flight", ann, name, refresh)

	// It is committed.
	_, refresh = c.granted(ann)
	crash()
	c.agree("committed", ann, name, refresh)

	// Disconnected: the provider is asked, and has not answered.
	_, refresh = c.granted(ann)
	revoked := len(c.provider.Revoked())
	at, wait, leave = stop(t)
	c.provider.Answers("/revoke", func(http.ResponseWriter, *http.Request) bool { wait(); return true })
	ann.Do(http.MethodDelete, "/api/v1/connections/"+name, "").Want(t, http.StatusNoContent)
	<-at
	c.process.Kill()
	c.provider.Answers("/revoke", nil)
	leave()
	c.start()
	ann = c.person(subject)
	c.gone(ann, name)
	if got := c.provider.Revoked()[revoked:]; !slices.Equal(got, []string{refresh}) {
		t.Errorf("disconnected: revoked %v", got)
	}

	// The provider has revoked, and the server does not know: it asks again.
	_, refresh = c.granted(ann)
	revoked = len(c.provider.Revoked())
	mirrored = make(chan struct{})
	answer = c.mirrored(c.freeze)
	c.provider.Answers("/revoke", func(w http.ResponseWriter, r *http.Request) bool { defer close(mirrored); return answer(w, r) })
	ann.Do(http.MethodDelete, "/api/v1/connections/"+name, "").Want(t, http.StatusNoContent)
	<-mirrored
	c.process.Kill()
	c.provider.Answers("/revoke", nil)
	c.start()
	ann = c.person(subject)
	c.gone(ann, name)
	if got := c.provider.Revoked()[revoked:]; !slices.Equal(got, []string{refresh, refresh}) {
		t.Errorf("revoked: revoked %v", got)
	}
	c.agreed()
}

// agreed stops the server, and fails the test if it keeps tokens of anybody.
func (c *child) agreed() {
	c.T.Helper()
	if err := c.process.Stop(); err != nil {
		c.T.Errorf("the server ended with: %v", err)
	}
	c.tombstones()
}

// dweller is a person who connects and disconnects while the server is killed.
type dweller struct {
	subject, name string
	rng           *rand.Rand
	client        *standalone.Client
	browser       *standalone.Client
	// Of the connection as it is now: the refresh tokens of consents whose completion was answered with success, and of those whose
	// completion was not answered.
	committed, perhaps []string
	// answered are the addresses of callbacks that were answered.
	answered []string
	// deleting says that the person has disconnected, which was perhaps not answered.
	deleting bool
}

// live connects several times, and perhaps disconnects, until the server does not answer. moment is called before each request.
func (d *dweller) live(c *child, moment func()) {
	ctx := context.Background()
	for range 1 + d.rng.IntN(3) {
		moment()
		begun := try(ctx, d.client, http.MethodPost, "/api/v1/connections", `{"provider":"provider"}`)
		if begun.err != nil || begun.Code != http.StatusCreated {
			return
		}
		address := c.provider.Consent(c.T, host.Decode[answer](c.T, begun.Answer).AuthorizeURL)
		moment()
		back := try(ctx, d.browser, http.MethodGet, c.local(address), "")
		if back.err != nil {
			return
		}
		d.answered = append(d.answered, address)
		_, completion, ok := strings.Cut(back.Header.Get("Location"), "#completion=")
		if !ok {
			continue
		}
		moment()
		done := try(ctx, d.client, http.MethodPost, "/api/v1/connections/"+d.name+"/complete", `{"completion":"`+completion+`"}`)
		refresh := c.provider.Refresh(c.parameter(address, "code"))
		if done.err != nil {
			d.perhaps = append(d.perhaps, refresh)
			return
		}
		if done.Code == http.StatusOK {
			d.committed = append(d.committed, refresh)
		}
	}
	if d.rng.IntN(3) == 0 {
		moment()
		d.deleting = true
		try(ctx, d.client, http.MethodDelete, "/api/v1/connections/"+d.name, "")
	}
}

// own returns which tokens of the person were revoked, each once.
func (d *dweller) own(c *child) (revoked []string) {
	for _, token := range c.provider.Revoked() {
		if (slices.Contains(d.committed, token) || slices.Contains(d.perhaps, token)) && !slices.Contains(revoked, token) {
			revoked = append(revoked, token)
		}
	}
	return revoked
}

// over checks a connection that is gone: exactly what was committed was revoked.
func (d *dweller) over(c *child, grants int) {
	c.T.Helper()
	revoked := d.own(c)
	for _, token := range d.committed {
		if !slices.Contains(revoked, token) {
			c.T.Errorf("%s: %s was committed, and is not revoked", d.subject, token)
		}
	}
	if grants >= 0 && len(revoked) != grants {
		c.T.Errorf("%s: %d grants were revoked, and the connection had %d", d.subject, len(revoked), grants)
	}
	d.committed, d.perhaps = nil, nil
}

// settle checks after a crash that the connection is as the person left it, and that the person can connect.
func (d *dweller) settle(c *child, last bool) {
	c.T.Helper()
	for _, address := range d.answered {
		if to := c.back(address); to.Query().Get("status") != "error" {
			c.T.Errorf("%s: a state counted twice: %s", d.subject, to)
		}
	}
	d.answered = nil
	var now *v1alpha1.Connection
	kit.Await(c.T, "the end of the connection", func() bool {
		var err error
		if now, err = c.connections().Get(c.T.Context(), d.name, metav1.GetOptions{}); err != nil {
			now = nil
			return apierrors.IsNotFound(err)
		}
		return now.DeletionTimestamp == nil
	})
	if now == nil {
		if !d.deleting && len(d.committed) > 0 {
			c.T.Errorf("%s: the connection is gone", d.subject)
		}
		d.over(c, -1)
	} else {
		n := int(now.Status.GrantSequence)
		if n < len(d.committed) || n > len(d.committed)+len(d.perhaps) || (now.Status.State == v1alpha1.ConnectionReady) != (n > 0) {
			c.T.Errorf("%s: the connection is %s with %d grants; %d were committed, and perhaps %d", d.subject, now.Status.State, n, len(d.committed), len(d.perhaps))
		}
		if got := d.own(c); len(got) > 0 {
			c.T.Errorf("%s: still connected, and revoked: %v", d.subject, got)
		}
	}
	d.deleting = false
	linked, refresh := c.granted(d.client)
	d.committed = append(d.committed, refresh)
	n := int(c.get(d.name).Status.GrantSequence)
	if !linked.Ready {
		c.T.Errorf("%s: connected anew: %+v", d.subject, linked)
	}
	if last || n > 8 || d.rng.IntN(2) == 0 { // not more than a connection may have
		c.disconnect(d.client, d.name)
		d.over(c, n)
	}
}

// Two people connect and disconnect, and the server is killed at random moments: no code is exchanged twice, no state counts twice, what
// was committed is there, and is revoked in the end, and everybody can go on.
func TestCrashes(t *testing.T) {
	t.Parallel()
	rounds := 3
	if kit.Offered(kit.Minutes) {
		rounds = 12
		if n, err := strconv.Atoi(os.Getenv("ROUNDS")); err == nil {
			rounds = max(n, rounds)
		}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := newChild(t)
	c.apply()
	rng := rand.New(rand.NewPCG(seed, 0))
	people := make([]*dweller, 2)
	for i := range people {
		subject := fmt.Sprintf("user-%d", i)
		people[i] = &dweller{subject: subject, name: connector.Name("provider", c.tokens.URL, subject), rng: rand.New(rand.NewPCG(seed, uint64(i+1)))}
	}
	for round := range rounds {
		for _, d := range people {
			d.client, d.browser = c.person(d.subject), c.browser()
		}
		// The server is killed a moment after a random one of what happens in a round.
		var happened atomic.Int64
		at, delay, pid := int64(1+rng.IntN(24)), rng.IntN(20_000), c.process.Pid()
		moment := func() {
			if happened.Add(1) != at {
				return
			}
			go func() {
				for range delay {
					runtime.Gosched()
				}
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}()
		}
		for _, path := range []string{"/token", "/revoke"} {
			c.provider.Answers(path, c.mirrored(moment))
		}
		var all sync.WaitGroup
		for _, d := range people {
			all.Go(func() { d.live(c, moment) })
		}
		all.Wait()
		for happened.Load() < at { // less happened
			moment()
		}
		if err := c.process.Wait(); err == nil {
			t.Error("the server was not killed")
		}
		for _, path := range []string{"/token", "/revoke"} {
			c.provider.Answers(path, nil)
		}
		c.start()
		for _, d := range people {
			d.client = c.person(d.subject)
			d.settle(c, round == rounds-1)
		}
	}
	for code, n := range c.provider.Exchanged() {
		if n > 1 {
			t.Errorf("%s was exchanged %d times", code, n)
		}
	}
	c.agreed()
}
