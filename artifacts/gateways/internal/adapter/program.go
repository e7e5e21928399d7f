// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// Version is the version of the adapters.
const Version = "1.0"

// Flags are what all adapters are told. Tokens are in files and never among the arguments.
type Flags struct {
	Listen, CertFile, KeyFile  string
	TokenFile                  string
	EventsURL, EventsTokenFile string
	EventsCAFile               string
	Data                       string
	Capabilities               protocol.Capabilities
	Handlers                   map[string]http.Handler // other servers, by address
	fs                         *flag.FlagSet
	ready                      func(address string)
}

// NewFlags returns the flags of a program.
func NewFlags(name string) (*Flags, *flag.FlagSet) {
	f := &Flags{fs: flag.NewFlagSet(name, flag.ContinueOnError), Handlers: map[string]http.Handler{}}
	f.Capabilities = protocol.Capabilities{ProtocolVersion: protocol.Version, ProtocolVersions: &protocol.VersionRange{Min: 1, Max: 1}, AdapterName: name, AdapterVersion: Version}
	f.Capabilities.Capabilities = protocol.Capability{InboundText: true, OutboundText: true, IdempotentDelivery: true, ExplicitSessions: true, InterimMessages: true}
	f.fs.StringVar(&f.Listen, "listen", "127.0.0.1:8443", "address at which the platform reaches the adapter")
	f.fs.StringVar(&f.CertFile, "tls-cert-file", "", "certificate of the adapter; needed unless --listen is a loopback address. It is read again for each connection.")
	f.fs.StringVar(&f.KeyFile, "tls-key-file", "", "key of the certificate")
	f.fs.StringVar(&f.TokenFile, "token-file", "", "file with the bearer token that the platform sends: that of the gateway's outboundAuthRef. Of several lines each is accepted.")
	f.fs.StringVar(&f.EventsURL, "events-url", "", "where events are posted: https://PLATFORM/api/v1/gateways/NAMESPACE/NAME/events")
	f.fs.StringVar(&f.EventsTokenFile, "events-token-file", "", "file with the bearer token for it: that of the gateway's inboundAuthRef")
	f.fs.StringVar(&f.EventsCAFile, "events-ca-file", "", "certificates of authorities for it, instead of those of the system")
	f.fs.StringVar(&f.Data, "data", "", "folder for what must not be lost; on a disk that stays")
	return f, f.fs
}

// Parse reads the arguments.
func (f *Flags) Parse(args []string) error {
	if err := f.fs.Parse(args); err != nil {
		return err //nolint:wrapcheck // it was told already
	}
	if f.fs.NArg() > 0 {
		return fmt.Errorf("there are no arguments, and %q is one", f.fs.Arg(0))
	}
	for name, value := range map[string]string{"token-file": f.TokenFile, "events-url": f.EventsURL, "events-token-file": f.EventsTokenFile, "data": f.Data} {
		if value == "" {
			return fmt.Errorf("--%s is required", name)
		}
	}
	at, err := url.Parse(f.EventsURL)
	if err != nil || at.Host == "" || (at.Scheme != "https" && (at.Scheme != "http" || !loopback(at.Hostname()))) {
		return errors.New("--events-url must be an https address; http is for this machine alone")
	}
	host, _, err := net.SplitHostPort(f.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if f.CertFile == "" && !loopback(host) {
		return errors.New("--tls-cert-file is required unless --listen is a loopback address")
	}
	return nil
}

// loopback reports whether a host is this machine alone.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// client returns the client for the platform.
func (f *Flags) client() (*http.Client, error) {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("there is no transport")
	}
	transport = transport.Clone()
	transport.MaxIdleConnsPerHost = mostAtOnce
	if f.EventsCAFile != "" {
		pool, err := CertPool(f.EventsCAFile)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

// CertPool reads certificates of authorities.
func CertPool(path string) (*x509.CertPool, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read certificates: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("%s has no certificate", path)
	}
	return pool, nil
}

// Main runs an adapter until it is told to end, and returns the exit code.
func Main(f *Flags, chat func(log *slog.Logger) (Chat, error)) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := f.Parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		var c Chat
		if c, err = chat(log); err == nil {
			err = f.Run(ctx, c, log)
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		return 1
	}
	return 0
}

// Run runs an adapter until the context ends.
func (f *Flags) Run(ctx context.Context, chat Chat, log *slog.Logger) (err error) {
	client, err := f.client()
	if err != nil {
		return err
	}
	deliveries, err := OpenDeliveries(f.Data, chat, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, deliveries.Close()) }()
	outbox, err := OpenOutbox(f.Data, Platform{URL: f.EventsURL, Token: Secret(f.EventsTokenFile), Client: client}, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, outbox.Close()) }()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(errStopped)
	tasks := []func() error{
		func() error { outbox.Run(ctx); return nil },
		func() error { return chat.Run(ctx, outbox) },
		func() error {
			return f.serve(ctx, f.Listen, &Server{Capabilities: f.Capabilities, Deliveries: deliveries, Chat: chat, Tokens: TokenFile(f.TokenFile), Log: log})
		},
	}
	for address, handler := range f.Handlers {
		tasks = append(tasks, func() error { return f.serve(ctx, address, handler) })
	}
	ends := make(chan error, len(tasks))
	for _, task := range tasks {
		go func() {
			err := task()
			if ctx.Err() == nil {
				stop(errStopped) // none ends before the others
			} else if errors.Is(err, context.Canceled) || errors.Is(err, errStopped) {
				err = nil
			}
			ends <- err
		}()
	}
	for range tasks {
		err = errors.Join(err, <-ends)
	}
	return err
}

// serve serves until the context ends.
func (f *Flags) serve(ctx context.Context, address string, h http.Handler) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if f.ready != nil {
		f.ready(l.Addr().String())
	}
	server := HTTPServer(h)
	ended := context.AfterFunc(ctx, func() {
		grace, stop := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer stop()
		if server.Shutdown(grace) != nil {
			_ = server.Close() // the grace is over
		}
	})
	defer ended()
	if f.CertFile == "" {
		err = server.Serve(l)
	} else {
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("the certificate of the adapter: %w", err)
			}
			return &c, nil
		}}
		err = server.ServeTLS(l, "", "")
	}
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve: %w", err)
}
