// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/install"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/apiserver"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	kinds "github.com/platform-ai/platform/pkg/server/registry/core/connection"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/custody"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/object"
	"github.com/platform-ai/platform/test/oauthprovider"
)

// world is a Hub over a store on disk, with a provider and its Secret. The end of its test sees that no log, error or status had a secret.
type world struct {
	*Hub

	t        *testing.T
	ctx      context.Context
	provider *oauthprovider.Provider
	clock    *clocktesting.FakePassiveClock
	disk     *disk
	host     *host
	network  *network
	metrics  *prometheus.Registry
	options  Options
	scheme   *runtime.Scheme

	mu   sync.Mutex // guards all below
	said bytes.Buffer
	// sent are the refresh tokens that the provider was asked with, and answer answers in its place.
	sent   []string
	answer oauthprovider.Answer
}

// begin is when the tests begin.
var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// hour is how long an access token of the provider lives.
const hour = time.Hour

// newWorld makes one. The manifest of the provider has further lines.
func newWorld(t *testing.T, lines ...string) *world {
	t.Helper()
	w := &world{
		t: t, provider: oauthprovider.New(t), clock: clocktesting.NewFakePassiveClock(begin), metrics: prometheus.NewRegistry(),
		host: &host{secret: &corev1.Secret{Data: map[string][]byte{"secret": []byte(oauthprovider.ClientSecret)}}},
	}
	w.network = &network{RoundTripper: w.provider.Transport()}
	w.ctx = klog.NewContext(t.Context(), funcr.New(func(prefix, args string) { w.note(prefix, args) }, funcr.Options{Verbosity: 10}))
	w.provider.Answers("/token", w.token)
	e, err := local.Open(t.Context(), local.Options{Dir: t.TempDir()})
	w.check(err)
	db, err := object.Open(t.Context(), e, object.Options{})
	w.check(err)
	scheme, err := apiserver.NewScheme(install.Install)
	w.check(err)
	w.scheme = scheme
	stored := kinds.NewStored()
	getter := object.NewRESTOptionsGetter(object.RESTOptions{DB: db, Scheme: scheme, Codecs: apiserver.Codecs(scheme)})
	workers := &guard.Workers{}
	for _, r := range guard.Close(workers, kinds.Resources(kinds.Options{Stored: stored, REST: func(context.Context) bool { return false }, Clock: w.clock, Workers: workers})) {
		w.check(r.Register(scheme))
		paths, err := r.Storage(t.Context(), resource.Config{Scheme: scheme, RESTOptions: getter, Clock: w.clock})
		w.check(err)
		t.Cleanup(func() {
			for _, s := range paths {
				s.Destroy()
			}
		})
	}
	t.Cleanup(func() {
		db.Close()
		w.check(e.Close())
	})
	w.disk = &disk{Engine: e}
	w.options = Options{
		Base: "https://platform.test", Connections: stored.Connections, Providers: stored.Providers, Custody: custody.New(e, w.keys()), Engine: w.disk,
		Key: bytes.Repeat([]byte{7}, minKey), Host: w.host, Transport: w.network, Clock: w.clock, Metrics: w.metrics,
	}
	w.restart()
	w.apply(lines...)
	t.Cleanup(w.silent)
	return w
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// keys are new keys of custody.
func (w *world) keys() *custody.Keys {
	w.t.Helper()
	keys, err := custody.OpenKeys(filepath.Join(w.t.TempDir(), "keys"))
	w.check(err)
	return keys
}

// restart forgets what is in memory alone.
func (w *world) restart() {
	w.t.Helper()
	h, err := New(w.options)
	w.check(err)
	w.Hub = h
}

// apply writes the provider, which is accepted.
func (w *world) apply(lines ...string) {
	w.t.Helper()
	p := &v1alpha1.ConnectorProvider{}
	w.check(yaml.UnmarshalStrict([]byte(oauthprovider.Manifest(lines...)), p))
	w.scheme.Default(p)
	_, _, err := w.options.Providers.Ensure(w.ctx, p, false)
	w.check(err)
	_, err = w.options.Providers.UpdateStored(w.in(), p.Name, func(p *v1alpha1.ConnectorProvider) error {
		for _, name := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionResolvedRefs} {
			meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: "Test"})
		}
		return nil
	})
	w.check(err)
}

// in is the context of the server in the namespace.
func (w *world) in() context.Context { return resource.AsServer(w.ctx, "team") }

// ann is who links accounts.
var ann = &external.Identity{Namespace: "team", Requester: v1alpha1.TaskRequester{Issuer: "https://issuer.test", Subject: "user-ann"}}

// link links an account, or links it anew.
func (w *world) link() *v1alpha1.Connection {
	w.t.Helper()
	status, err := w.Connect(w.in(), "team", ann, "provider", "", false)
	w.check(err)
	back, err := url.Parse(w.provider.Consent(w.t, status.AuthorizeURL))
	w.check(err)
	c, completion, err := w.comeBack(w.in(), back.Query())
	w.check(err)
	c, err = w.Complete(w.in(), c, completion, false)
	w.check(err)
	return c
}

// get reads a connection.
func (w *world) get(c *v1alpha1.Connection) *v1alpha1.Connection {
	w.t.Helper()
	now, err := w.options.Connections.Get(w.in(), c.Name)
	w.check(err)
	return now
}

// kept returns the custody of a connection.
func (w *world) kept(c *v1alpha1.Connection) *document {
	w.t.Helper()
	d, _, err := w.vault.load(c.UID)
	w.check(err)
	return d
}

// leave deletes a connection, whose tokens are not given back yet.
func (w *world) leave(c *v1alpha1.Connection) *v1alpha1.Connection {
	w.t.Helper()
	w.check(w.options.Connections.Remove(w.ctx, c))
	return w.get(c)
}

// after sets the clock to a time after the begin.
func (w *world) after(d time.Duration) { w.clock.SetTime(begin.Add(d)) }

// good uses a connection, and returns the token.
func (w *world) good(c *v1alpha1.Connection) Token {
	w.t.Helper()
	token, err := w.Use(w.ctx, c)
	if err != nil || token.Access.Empty() || token.Type != "Bearer" || token.Sequence != w.get(c).Status.GrantSequence {
		w.t.Fatalf("use: %v %+v", err, token)
	}
	return token
}

// bad uses a connection that cannot be used, and returns the error.
func (w *world) bad(c *v1alpha1.Connection) error {
	w.t.Helper()
	token, err := w.Use(w.ctx, c)
	if err == nil || token != (Token{}) {
		w.t.Fatalf("use: %v %+v", err, token)
	}
	w.note("error", fmt.Sprintf("%v %+v", err, err))
	return err
}

// ready checks the condition Ready and the state of a connection.
func (w *world) ready(c *v1alpha1.Connection, status metav1.ConditionStatus, reason string, state v1alpha1.ConnectionState) {
	w.t.Helper()
	s := w.get(c).Status
	is := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
	if is == nil || is.Status != status || is.Reason != reason || is.Message == "" || s.State != state {
		w.t.Errorf("state %s, %+v, want %s %s and %s", s.State, is, status, reason, state)
	}
	text, err := json.Marshal(s)
	w.check(err)
	w.note("status", string(text))
}

// counted returns a counter of refreshes.
func (w *world) counted(outcome string) int {
	return int(testutil.ToFloat64(w.counts.refreshes.WithLabelValues(outcome)))
}

// token answers a request for tokens.
func (w *world) token(rw http.ResponseWriter, r *http.Request) bool {
	if r.PostFormValue("grant_type") != "refresh_token" {
		return false
	}
	w.mu.Lock()
	w.sent = append(w.sent, r.PostFormValue("refresh_token"))
	answer := w.answer
	w.mu.Unlock()
	return answer != nil && answer(rw, r)
}

// refreshes answers the requests for refreshes in place of the provider; nil leaves them to the provider.
func (w *world) refreshes(a oauthprovider.Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = a
}

// requests returns the refresh tokens that were sent.
func (w *world) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}

// held has the answers to refreshes wait, which the provider has given by then. entered receives from each, and leave lets all go on.
func (w *world) held() (entered chan struct{}, leave func()) {
	entered, left := make(chan struct{}, 16), make(chan struct{})
	w.refreshes(func(rw http.ResponseWriter, r *http.Request) bool {
		answer := httptest.NewRecorder()
		w.provider.Answer(answer, r)
		entered <- struct{}{}
		<-left
		return status(answer.Code, answer.Body.String())(rw, r)
	})
	leave = sync.OnceFunc(func() {
		w.refreshes(nil)
		close(left)
	})
	w.t.Cleanup(leave)
	return entered, leave
}

// status answers with a status, a body and headers, which are pairs.
func status(code int, body string, headers ...string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body)) // a client that left needs none
		return true
	}
}

// cut ends the connection without an answer.
func cut(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }

// used is the result of a Use.
type used struct {
	token Token
	err   error
}

// begins begins a Use.
func (w *world) begins(ctx context.Context, c *v1alpha1.Connection) chan used {
	done := make(chan used, 1)
	go func() {
		token, err := w.Use(ctx, c)
		done <- used{token, err}
	}()
	return done
}

// note keeps what was logged or answered.
func (w *world) note(what, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintln(&w.said, what, text)
}

// silent fails the test if a secret was logged or answered.
func (w *world) silent() {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := w.said.String()
	for _, secret := range w.provider.Secrets() {
		if strings.Contains(said, secret) {
			w.t.Errorf("%s was said:\n%s", secret, said)
		}
	}
}
