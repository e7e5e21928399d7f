// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command referenceruntime is a small complete runtime of the protocol platform.harness.v2, with a scripted agent: see package runtime.
// --break makes it break one requirement, for tests of the conformance kit.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/platform-ai/platform/test/referenceruntime/runtime"
)

// flags are those of the command.
type flags struct {
	listen, tokenFile, keyFile, bootstrapFile, certificate, certificateKey, dir string
	minLease, maxLease                                                          time.Duration
	broken                                                                      []string
}

func main() {
	var f flags
	pflag.StringVar(&f.listen, "listen", "127.0.0.1:0", "address to listen on; port 0 takes a free one")
	pflag.StringVar(&f.tokenFile, "token-file", "", "file with the controller token")
	pflag.StringVar(&f.keyFile, "operation-key-file", "", "file with the operation key")
	pflag.StringVar(&f.bootstrapFile, "bootstrap-token-file", "", "file with a bootstrap token, instead of both")
	pflag.StringVar(&f.certificate, "tls-cert-file", "", "certificate; without one, http is served")
	pflag.StringVar(&f.certificateKey, "tls-private-key-file", "", "key of the certificate")
	pflag.StringVar(&f.dir, "dir", "", "folder for the files of sessions (required)")
	pflag.DurationVar(&f.minLease, "min-lease", time.Second, "shortest lease of a prompt")
	pflag.DurationVar(&f.maxLease, "max-lease", 0, "longest lease of a prompt; 0 means ten minutes")
	pflag.StringSliceVar(&f.broken, "break", nil, "requirements to break: "+strings.Join(runtime.Breaks(), ", "))
	pflag.Parse()
	if pflag.NArg() > 0 || f.dir == "" {
		pflag.Usage()
		os.Exit(2)
	}
	if err := run(&f); err != nil {
		fmt.Fprintln(os.Stderr, "referenceruntime:", err)
		os.Exit(1)
	}
}

// run serves until a signal comes.
func run(f *flags) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := runtime.Options{Instance: "reference-" + strings.ToLower(rand.Text()), Dir: f.dir, MinLease: f.minLease, MaxLease: f.maxLease, Broken: f.broken}
	for _, file := range []struct {
		name string
		to   *string
	}{{f.tokenFile, &o.Token}, {f.bootstrapFile, &o.BootstrapToken}} {
		text, err := secret(file.name)
		if err != nil {
			return err
		}
		*file.to = text
	}
	key, err := secret(f.keyFile)
	if err != nil {
		return err
	}
	o.Key = []byte(key)
	r, err := runtime.New(o)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	scheme := "http"
	serve := func() error { return srv.Serve(l) }
	if f.certificate != "" {
		scheme, serve = "https", func() error { return srv.ServeTLS(l, f.certificate, f.certificateKey) }
	}
	fmt.Printf("listening on %s://%s\n", scheme, l.Addr())
	if err := serve(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// secret reads a secret from a file. White space around it does not belong to it.
func secret(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	raw, err := os.ReadFile(file)
	return strings.TrimSpace(string(raw)), err
}
