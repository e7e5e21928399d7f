// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// peerToken is the token of the administrator of the peer.
const peerToken = "bench"

// peer is a stock kube-apiserver on an etcd that syncs, with a kind of ours as a CustomResourceDefinition.
type peer struct {
	url string
	ca  *x509.CertPool
	end []func() error // in reverse order
	// pids are those of its programs.
	pids []int
}

// startPeer starts the programs of bin in dir, and waits until the kind is served.
func startPeer(ctx context.Context, bin, dir string) (_ *peer, err error) {
	p := &peer{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.stop())
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	etcd, other := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	if err := p.run(ctx, filepath.Join(bin, "etcd"), "--data-dir", filepath.Join(dir, "etcd"), "--log-level=error", "--listen-client-urls", etcd,
		"--advertise-client-urls", etcd, "--listen-peer-urls", other, "--initial-advertise-peer-urls", other, "--initial-cluster", "default="+other); err != nil {
		return nil, err
	}
	key, err := makeKey(filepath.Join(dir, "sa.key"))
	if err != nil {
		return nil, err
	}
	tokens := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte(peerToken+`,bench,bench,"system:masters"`+"\n"), 0o600); err != nil {
		return nil, err
	}
	if err := p.run(ctx, filepath.Join(bin, "kube-apiserver"), "--etcd-servers", etcd, "--bind-address=127.0.0.1", "--secure-port", ports[2],
		"--cert-dir", filepath.Join(dir, "pki"), "--token-auth-file", tokens, "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://bench.invalid", "--service-account-key-file", key, "--service-account-signing-key-file", key); err != nil {
		return nil, err
	}
	p.url = "https://127.0.0.1:" + ports[2]
	if err := retry(ctx, func() error {
		cert, err := os.ReadFile(filepath.Join(dir, "pki", "apiserver.crt"))
		if err != nil {
			return err
		}
		if p.ca = x509.NewCertPool(); !p.ca.AppendCertsFromPEM(cert) {
			return errors.New("no certificate yet")
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return p, p.define(ctx)
}

// define creates the CustomResourceDefinition and waits until objects are served. Its schema accepts everything, which is
// the cheapest one for the peer.
func (p *peer) define(ctx context.Context) error {
	c := p.client()
	const crd = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"skills.core.platform.ai",
		"annotations":{"api-approved.kubernetes.io":"unapproved, a benchmark"}},"spec":{"group":"core.platform.ai","scope":"Namespaced",
		"names":{"plural":"skills","singular":"skill","kind":"Skill","listKind":"SkillList"},"versions":[{"name":"v1alpha1","served":true,"storage":true,
		"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`
	if err := retry(ctx, func() error {
		return send(ctx, c, http.MethodPost, p.url+"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", []byte(crd), nil)
	}); err != nil {
		return err
	}
	return retry(ctx, func() error { return send(ctx, c, http.MethodGet, p.url+besidePath, nil, nil) })
}

// client returns a client with connections of its own.
func (p *peer) client() *http.Client {
	t := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.ca, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, DisableCompression: true}
	return &http.Client{Transport: bearer{t}}
}

type bearer struct{ *http.Transport }

// RoundTrip adds the token.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+peerToken)
	return b.Transport.RoundTrip(r)
}

func (p *peer) run(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	p.pids = append(p.pids, cmd.Process.Pid)
	p.end = append(p.end, func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		_ = cmd.Wait() // a program that a signal ended is what is wanted
		return nil
	})
	return nil
}

func (p *peer) stop() (err error) {
	for _, end := range slices.Backward(p.end) {
		err = errors.Join(err, end())
	}
	return err
}

// retry calls f until it succeeds, for at most a minute.
func retry(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := f()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the peer does not start: %w", err)
		}
		wait(ctx, 100*time.Millisecond)
	}
}

func freePorts(n int) (ports []string, err error) {
	for range n {
		l, e := net.Listen("tcp", "127.0.0.1:0")
		if e != nil {
			return nil, errors.Join(err, e)
		}
		defer func() { err = errors.Join(err, l.Close()) }()
		_, port, e := net.SplitHostPort(l.Addr().String())
		ports, err = append(ports, port), errors.Join(err, e)
	}
	return ports, err
}

// makeKey writes a key that signs tokens.
func makeKey(path string) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}
