// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"

	"k8s.io/client-go/util/cert"
)

// pair is the certificate of the proxy and the router, with its key, as files.
type pair struct{ cert, key string }

func newPair(dir string) (pair, error) {
	c, k, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return pair{}, err
	}
	p := pair{filepath.Join(dir, "proxy.crt"), filepath.Join(dir, "proxy.key")}
	return p, errors.Join(os.WriteFile(p.cert, c, 0o600), os.WriteFile(p.key, k, 0o600))
}

// Proxy serves a httputil.ReverseProxy to an address with TLS on a free port until ctx ends. It prints its address.
func Proxy(ctx context.Context, certFile, keyFile, to string) error {
	u, err := url.Parse(to)
	if err != nil {
		return err
	}
	proxy := httputil.NewSingleHostReverseProxy(u)
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // that of net/http
	transport.MaxIdleConnsPerHost = parallel
	proxy.Transport = transport
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &http.Server{Handler: proxy}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	fmt.Printf("address=%q\n", l.Addr())
	if err := s.ServeTLS(l, certFile, keyFile); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// forwarder is a running proxy or router.
type forwarder struct {
	cmd     *exec.Cmd
	address string
}

var printedAddress = regexp.MustCompile(`address="([^"]+)"`)

// forward runs a program that prints its address.
func forward(cmd *exec.Cmd, pipe func() (io.ReadCloser, error)) (*forwarder, error) {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	out, err := pipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if found := printedAddress.FindStringSubmatch(lines.Text()); found != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
			return &forwarder{cmd, found[1]}, nil
		}
	}
	return nil, fmt.Errorf("%s ended before it served: %w", cmd.Path, cmd.Wait())
}

// startProxy runs this program as a proxy.
func startProxy(ctx context.Context, p pair, to string) (*forwarder, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-proxy", to, "-proxy-cert", p.cert, "-proxy-key", p.key)
	return forward(cmd, cmd.StdoutPipe)
}

// startRouter runs platform-router in front of an installation.
func startRouter(ctx context.Context, bin string, p pair, kubeconfig, to string) (*forwarder, error) {
	routes := filepath.Join(filepath.Dir(p.cert), "routes.yaml")
	if err := os.WriteFile(routes, []byte("namespaces: {default: \""+to+"\"}\n"), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "platform-router"), "--bind-address", "127.0.0.1:0", "--routes-file", routes,
		"--tls-cert-file", p.cert, "--tls-private-key-file", p.key, "--kubeconfig", kubeconfig)
	return forward(cmd, cmd.StderrPipe)
}

// stop ends the program and waits for it.
func (f *forwarder) stop() error {
	if err := f.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return f.cmd.Wait()
}

// target returns the program with a client for each connection, which sends a token unless it is empty.
func (f *forwarder) target(p pair, token string) target {
	t := target{url: "https://" + f.address + path, pid: f.cmd.Process.Pid, token: token}
	roots := x509.NewCertPool()
	if pem, err := os.ReadFile(p.cert); err == nil {
		roots.AppendCertsFromPEM(pem)
	}
	for range modelClients {
		t.clients = append(t.clients, &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}})
	}
	return t
}
