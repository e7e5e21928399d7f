// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tokenexchange_test

import (
	"bytes"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tokenexchange"
	"github.com/platform-ai/platform/test/tokenservice"
)

// world is a token service, a transaction and the token of a task in it.
type world struct {
	t           *testing.T
	tts         *tokenservice.Service
	transaction *v1alpha1.TaskTransaction
	subject     string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, tts: tokenservice.New(t)}
	w.transaction = &v1alpha1.TaskTransaction{ID: "txn-1", Issuer: w.tts.URL, Subject: "ann", Scopes: []string{"a", "b", "c"}}
	w.subject = w.sign(tokenservice.Claims{})
	return w
}

func (w *world) sign(claims tokenservice.Claims) string {
	w.t.Helper()
	all := tokenservice.Claims{"sub": "ann", "txn": "txn-1", "scope": "a b c"}
	maps.Copy(all, claims)
	token, err := w.tts.Sign("txntoken+jwt", all)
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

// exchange exchanges a token as a worker does, whose options came through its environment.
func (w *world) exchange(subject string, o tokenexchange.Options) (string, error) {
	w.t.Helper()
	o.Timeout = time.Minute // a busy machine is not a slow service
	if err := o.Check(); err != nil {
		w.t.Fatal(err)
	}
	env := o.Env()
	o, ok, err := tokenexchange.FromEnv(func(name string) string { return env[name] })
	if err != nil || !ok {
		w.t.Fatal(ok, err)
	}
	s, err := tokenexchange.New(o, clock.RealClock{})
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Exchange(w.t.Context(), subject, w.transaction)
}

// TestExchange: the request is that of RFC 8693, and the token is the one that the service issued.
func TestExchange(t *testing.T) {
	w := newWorld(t)
	o := tokenexchange.Options{Endpoint: w.tts.URL + "/token", ChildScope: " a  b ", Audience: "other", ChildTTL: 2 * time.Minute}
	token, err := w.exchange(w.subject, o)
	if err != nil {
		t.Fatal(err)
	}
	done := w.tts.Exchanges()
	if len(done) != 1 || done[0].Token != token {
		t.Fatalf("%d exchanges", len(done))
	}
	want := map[string]string{
		"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "requested_token_type": "urn:ietf:params:oauth:token-type:txn_token",
		"subject_token_type": "urn:ietf:params:oauth:token-type:txn_token", "scope": "a b", "audience": "other", "expires_in": "120",
	}
	for name, value := range want {
		if done[0].Form[name] != value {
			t.Errorf("%s: %q, want %q", name, done[0].Form[name], value)
		}
	}
	if len(done[0].Form) != len(want) {
		t.Errorf("sent %v", done[0].Form)
	}
}

// TestNothingIsAsked: a scope that the transaction lacks, and a token that has expired, are refused without a request.
func TestNothingIsAsked(t *testing.T) {
	w := newWorld(t)
	o := tokenexchange.Options{Endpoint: w.tts.URL + "/token", ChildScope: "a d"}
	if _, err := w.exchange(w.subject, o); cause(err) != tokenexchange.CauseScope || !strings.Contains(err.Error(), "no scope d") {
		t.Error(err)
	}
	o.ChildScope = "a"
	if _, err := w.exchange(w.sign(tokenservice.Claims{"exp": 1000}), o); cause(err) != tokenexchange.CauseSubject {
		t.Error(err)
	}
	if done := w.tts.Exchanges(); len(done) > 0 {
		t.Error(done)
	}
}

// cause returns the cause of an error that says that another try is of no use.
func cause(err error) tokenexchange.Cause {
	if failed, ok := errors.AsType[*tokenexchange.Error](err); ok && failed.Refused() {
		return failed.Cause
	}
	return ""
}

// TestAuthorities: a service with a certificate of a private authority is reached with that authority, and not without.
func TestAuthorities(t *testing.T) {
	w := newWorld(t)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.tts.ServeHTTP(rw, r) }))
	t.Cleanup(secure.Close)
	o := tokenexchange.Options{Endpoint: secure.URL + "/token", ChildScope: "a"}
	failed, _ := errors.AsType[*tokenexchange.Error](second(w.exchange(w.subject, o)))
	if failed == nil || failed.Cause != tokenexchange.CauseUnreachable || strings.Contains(failed.Message, w.subject) {
		t.Error(failed)
	}
	var file bytes.Buffer
	if err := pem.Encode(&file, &pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}); err != nil {
		t.Fatal(err)
	}
	o.CA = file.String()
	if _, err := w.exchange(w.subject, o); err != nil {
		t.Error(err)
	}
}

// TestFileOfAuthorities: authorities that do not fit in a variable of a worker's environment are refused when the server starts.
func TestFileOfAuthorities(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.pem")
	for size, want := range map[int]string{0: "", 64 << 10: "", 64<<10 + 1: "at most 65536 are possible"} {
		if err := os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
			t.Fatal(err)
		}
		o := tokenexchange.Options{Endpoint: "https://tokens.example.com/token"}
		switch err := o.ReadCA(path); {
		case want == "" && (err != nil || len(o.CA) != size):
			t.Errorf("%d bytes: %v, %d were read", size, err, len(o.CA))
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || o.CA != ""):
			t.Errorf("%d bytes: %v, %d were read", size, err, len(o.CA))
		}
	}
	var none tokenexchange.Options // without an endpoint no worker gets it
	if err := none.ReadCA(path); err != nil || none.CA != "" {
		t.Errorf("%v, %q", err, none.CA)
	}
}

func second(_ string, err error) error { return err }
