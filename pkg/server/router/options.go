// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/profiling"
	"github.com/platform-ai/platform/pkg/server/writetimeout"
)

const (
	defaultReadTimeout     = 30 * time.Second
	defaultShutdownTimeout = 30 * time.Minute
	connectTimeout         = 5 * time.Second // of a connection to an installation, and again of its TLS handshake
)

// Options configure the router program.
type Options struct {
	// BindAddress is the address to listen on, as address:port; port 0 takes a free one.
	BindAddress string
	// TLSCertFile and TLSKeyFile are the certificate and key of the listener, as PEM. They are read again when they
	// change. Without them the listener uses plain HTTP, for an ingress that terminates TLS.
	TLSCertFile, TLSKeyFile string
	// RoutesFile is the path of the routes file.
	RoutesFile string
	// RoutesReloadInterval is how often the routes file is checked for changes; 0 reads it only at the start.
	RoutesReloadInterval time.Duration
	// OriginCAFile contains CA certificates, as PEM, that are accepted for installations in addition to those of the
	// system.
	OriginCAFile string
	// Kubeconfig is the path of the kubeconfig for the API server that reviews tokens; empty uses the cluster that
	// the router runs in.
	Kubeconfig string
	// MetricsBindAddress is where /metrics is served, as address:port; empty serves none.
	MetricsBindAddress string
	// Profiling is the address where profiles are served; empty serves none.
	Profiling profiling.Address
	// ReadTimeout bounds the upload of a request.
	ReadTimeout time.Duration
	// WriteTimeout bounds each write and flush to a client.
	WriteTimeout time.Duration
	// ShutdownTimeout is how long requests may continue after the program was told to stop.
	ShutdownTimeout time.Duration
	// Origins are the origins whose pages may use the router, as a browser sends them; empty, or *, allows any.
	Origins []string

	// Clock is used for everything except network timeouts. Default: the real clock.
	Clock clock.WithTicker
	// Ready, if set, is called with the listeners' addresses once they listen; metrics is nil if there is no such
	// listener.
	Ready func(address, metrics net.Addr)
}

// NewOptions returns the default options.
func NewOptions() *Options {
	return &Options{
		BindAddress: ":8080", RoutesFile: "/etc/platform-router/routes.yaml",
		ReadTimeout: defaultReadTimeout, WriteTimeout: writetimeout.Router, ShutdownTimeout: defaultShutdownTimeout,
	}
}

// AddFlags binds the options to flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "address:port to listen on; port 0 takes a free one")
	fs.StringVar(&o.TLSCertFile, "tls-cert-file", o.TLSCertFile, "certificate of the listener, with its chain, as PEM; read again when it changes. Without it the listener is plain HTTP, for an ingress that ends TLS: tokens cross the network between them unencrypted")
	fs.StringVar(&o.TLSKeyFile, "tls-private-key-file", o.TLSKeyFile, "key of --tls-cert-file, as PEM")
	fs.StringVar(&o.RoutesFile, "routes-file", o.RoutesFile, "YAML file that says which installation serves which namespace: namespaces: {team-a: https://platform-apiserver.team-a.svc}")
	fs.DurationVar(&o.RoutesReloadInterval, "routes-reload-interval", o.RoutesReloadInterval, "how often --routes-file is checked for changes, which apply to later requests; an invalid file is reported and the routes stay as they were. 0 reads it at start only")
	fs.StringVar(&o.OriginCAFile, "origin-ca-file", o.OriginCAFile, "PEM file with authorities of the installations' certificates, in addition to those of the system")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "kubeconfig of the API server that reviews tokens; empty is the cluster that this runs in. It needs only the permission to create tokenreviews")
	fs.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress, "address:port that serves /metrics without TLS; empty disables it")
	o.Profiling.AddFlag(fs)
	fs.DurationVar(&o.ReadTimeout, "read-timeout", o.ReadTimeout, "how long the upload of a request may take")
	fs.DurationVar(&o.WriteTimeout, "write-timeout", o.WriteTimeout, "how long a client may take to accept one write or flush of an answer; the whole answer has no limit")
	fs.DurationVar(&o.ShutdownTimeout, "shutdown-timeout", o.ShutdownTimeout, "how long requests may go on after SIGTERM; a Pod's grace period must be 10s longer")
}

// validate checks what can be checked without reading files or using the network. Errors name the flag.
func (o *Options) validate() error {
	if (o.TLSCertFile == "") != (o.TLSKeyFile == "") {
		return errors.New("--tls-cert-file and --tls-private-key-file belong together")
	}
	for flag, d := range map[string]time.Duration{
		"--read-timeout": o.ReadTimeout, "--write-timeout": o.WriteTimeout, "--shutdown-timeout": o.ShutdownTimeout,
	} {
		if d <= 0 {
			return fmt.Errorf("%s: must be positive", flag)
		}
	}
	if o.RoutesReloadInterval < 0 {
		return errors.New("--routes-reload-interval: must not be negative")
	}
	return nil
}

// router makes the handler from the options.
func (o *Options) router() (*Router, error) {
	routes, err := ReadRoutes(o.RoutesFile)
	if err != nil {
		return nil, fmt.Errorf("--routes-file: %w", err)
	}
	reviews, err := o.reviews()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	transport, err := o.transport()
	if err != nil {
		return nil, fmt.Errorf("--origin-ca-file: %w", err)
	}
	return New(Config{
		Routes: routes, Reviews: reviews, Transport: transport, Origins: o.Origins, WriteTimeout: o.WriteTimeout, Clock: o.Clock,
	}), nil
}

// reviews returns the client that reviews tokens. It has no rate limit of its own: the API server's priority and
// fairness limits the router, and a limit here would let a few misbehaving clients delay all others.
func (o *Options) reviews() (authenticationv1.TokenReviewInterface, error) {
	var c *rest.Config
	var err error
	if o.Kubeconfig == "" {
		c, err = rest.InClusterConfig()
	} else {
		c, err = clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	}
	if err != nil {
		return nil, err
	}
	c.QPS, c.UserAgent = -1, "platform-router"
	if c.Proxy == nil { // a proxy in the kubeconfig is intended; that of the environment is not
		c.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
	client, err := authenticationv1.NewForConfig(c)
	if err != nil {
		return nil, err
	}
	return client.TokenReviews(), nil
}

// transport connects to the installations directly, whatever proxy the environment names, and without a time limit
// for the whole answer. Compression is left to client and installation.
func (o *Options) transport() (http.RoundTripper, error) {
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout: connectTimeout,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		DisableCompression:  true,
		ForceAttemptHTTP2:   true,
		// These pings detect a silent HTTP/2 connection. For HTTP/1, TCP's own keep-alive does.
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
	if o.OriginCAFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(o.OriginCAFile)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // the image may lack certificates
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: has no certificate", o.OriginCAFile)
	}
	t.TLSClientConfig.RootCAs = pool
	return t, nil
}
