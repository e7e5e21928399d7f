// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gatewaytest runs the programs of adapters as processes that can be killed, between a chat server and a platform that stores events
// and posts answers.
package gatewaytest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/gateway/conformance"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// Patience is how long something that must happen is waited for.
const Patience = time.Minute

// NeedServers skips a test that needs chat servers, unless they are asked for, and returns the path of a program.
func NeedServers(t *testing.T, program string) string {
	t.Helper()
	if os.Getenv("GATEWAY_TEST_SERVERS") == "" {
		t.Skip("GATEWAY_TEST_SERVERS is not set: see the comment of the package")
	}
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skip(err)
	}
	return path
}

// FreePort returns a port that nobody listens on.
func FreePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// Certificate writes a certificate for a name, and its key, to DIR/cert.pem and DIR/key.pem.
func Certificate(t *testing.T, dir, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	Write(t, filepath.Join(dir, "cert.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	Write(t, filepath.Join(dir, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}

// Write writes a file.
func Write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Process is a program that can be killed and started again.
type Process struct {
	t       *testing.T
	name    string
	args    []string
	address string // where it listens
	cmd     *exec.Cmd
}

// Start starts a program and waits until it listens on an address.
func Start(t *testing.T, address, name string, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, name: name, args: args, address: address}
	p.Start()
	t.Cleanup(p.Kill)
	return p
}

// Start starts the program again.
func (p *Process) Start() {
	p.t.Helper()
	p.cmd = exec.Command(p.name, p.args...)
	if testing.Verbose() {
		p.cmd.Stdout, p.cmd.Stderr = os.Stderr, os.Stderr
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	Await(p.t, p.name+" listens", func() bool {
		c, err := net.Dial("tcp", p.address)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
}

// Kill ends the program as a crash does.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// Await waits until something is so.
func Await(t *testing.T, what string, so func() bool) {
	t.Helper()
	until := time.Now().Add(Patience)
	for !so() {
		if time.Now().After(until) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(10 * time.Millisecond) // there is nothing to wait on in other processes
	}
}

// Platform stores events.
type Platform struct {
	*httptest.Server

	mu     sync.Mutex
	events map[string]protocol.Event
	fresh  chan protocol.Event
}

// NewPlatform returns a platform without events.
func NewPlatform(t *testing.T) *Platform {
	p := &Platform{events: map[string]protocol.Event{}, fresh: make(chan protocol.Event, 10_000)}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// ServeHTTP stores an event.
func (p *Platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var e protocol.Event
	if err := protocol.Decode(r.Body, protocol.MaxEventBody, &e); err != nil || len(e.Check()) > 0 {
		http.Error(w, fmt.Sprint(err, e.Check()), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	status := protocol.ReplyDuplicate
	if _, ok := p.events[e.ExternalEventID]; !ok {
		status = protocol.ReplyAccepted
		p.events[e.ExternalEventID] = e
		p.fresh <- e
	}
	w.WriteHeader(http.StatusAccepted)
	_ = json.NewEncoder(w).Encode(protocol.Reply{Status: status, EventID: "gev-" + e.ExternalEventID})
}

// Next returns the next event.
func (p *Platform) Next(t *testing.T) protocol.Event {
	t.Helper()
	select {
	case e := <-p.fresh:
		return e
	case <-time.After(Patience): // it never comes
		t.Fatal("no event came")
	}
	return protocol.Event{}
}

// Adapter is an adapter between a chat server and a platform.
type Adapter struct {
	*Process
	URL, Token string
	data       string
}

// Data returns the folder of the adapter.
func (a *Adapter) Data() string { return a.data }

// NewAdapter builds and starts an adapter.
func NewAdapter(t *testing.T, program string, p *Platform, args ...string) *Adapter {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, program)
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/platform-ai/platform/artifacts/gateways/cmd/"+program).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	a := &Adapter{Token: rand.Text(), data: dir + "/data"}
	Write(t, dir+"/token", a.Token)
	Write(t, dir+"/events-token", rand.Text())
	address := fmt.Sprintf("127.0.0.1:%d", FreePort(t))
	a.URL = "http://" + address
	a.Process = Start(t, address, bin, append([]string{
		"--listen", address, "--token-file", dir + "/token", "--events-url", p.URL, "--events-token-file", dir + "/events-token", "--data", a.data,
	}, args...)...)
	return a
}

// Deliver posts an answer to an event until it has its outcome.
func (a *Adapter) Deliver(t *testing.T, e *protocol.Event, id, text string) protocol.Answer {
	t.Helper()
	raw, err := json.Marshal(protocol.Delivery{
		ProtocolVersion: protocol.Version, DeliveryID: id, IdempotencyID: id, OriginatingEventID: "gev-1", Kind: protocol.KindFinal,
		AccountID: e.AccountID, ContextID: e.ContextID, ThreadID: e.ThreadID, ReplyTarget: e.ReplyTarget, Text: text,
	})
	if err != nil {
		t.Fatal(err)
	}
	var answer protocol.Answer
	Await(t, "the delivery "+id+" has an outcome", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.URL+protocol.PathDeliveries, strings.NewReader(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+a.Token)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer func() { _ = res.Body.Close() }()
		answer = protocol.Answer{}
		return protocol.Decode(res.Body, protocol.MaxAnswer, &answer) == nil && answer.Check() == nil && answer.Status != protocol.RetryableError
	})
	return answer
}

// Kit runs the conformance kit, whose restarts are kills.
func (a *Adapter) Kit(t *testing.T, o conformance.Options) {
	t.Helper()
	o.URL, o.Token = a.URL, a.Token
	o.Restart = func(context.Context) error {
		a.Kill()
		a.Start()
		return nil
	}
	r := conformance.Run(t.Context(), o)
	t.Log(r.Text())
	if !r.Conforms || r.Counts[conformance.Skipped] > 0 {
		t.Error(r.Text())
	}
}
