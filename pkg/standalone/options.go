// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package standalone runs the whole platform in one process on one machine: the store, the API server with the small
// host API beside it, and the controllers. Workers are child processes.
//
// Everything it keeps is below one data folder, which one process at a time may use:
//
//	kubeconfig   the administrator's client certificate, for kubectl
//	pki/         keys and certificates
//	store/       all objects, events and results (see FORMAT.md of pkg/storage/engine)
//	runs/        working folders of tasks; no secrets
//
// The order of starting is store, host, API server, controllers; that of stopping is the reverse, so that controllers
// can write their last status and no write is refused half way.
package standalone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// DefaultPort is where the API is served unless told otherwise.
const DefaultPort = 7443

// DefaultMaxRunning is how many tasks run at once unless told otherwise: a worker mostly waits for its model, and takes
// about 50 MB, so these are 1.6 GB.
const DefaultMaxRunning = 32

// Options of a standalone server.
type Options struct {
	// DataDir holds everything the server keeps. It is created if it does not exist.
	DataDir string
	// BindAddress is the IP address to listen on.
	BindAddress string
	// Port is the port to listen on; 0 takes a free one.
	Port int
	// RESTBindAddress is where the REST paths are also served without TLS, as address:port; port 0 takes a free one, and
	// an empty text is none. The secure port serves the same paths in any case.
	RESTBindAddress string
	// RESTAllowRemote accepts a RESTBindAddress that other machines reach.
	RESTAllowRemote bool
	// CORSOrigins are the origins whose pages may use the REST paths; none is any.
	CORSOrigins []string
	// AllowHostCommands lets tasks of type container run as commands of this machine, with the rights of this process.
	AllowHostCommands bool
	// MaxRunning limits how many tasks run at once, and MaxRunningPerNamespace how many of one namespace; others wait
	// their turn. 0 is no limit.
	MaxRunning, MaxRunningPerNamespace int
	// EventRetention is how long events of a task are kept after its end, but for its terminal event; 0 is as long as the task.
	EventRetention time.Duration
	// EventRetentionFailed, where set, is the same for tasks that failed.
	EventRetentionFailed time.Duration
	// StreamWriteTimeout is how long a client of an event stream may take to accept what it was sent; then it is cut,
	// and may go on where it was. Default: 30 seconds.
	StreamWriteTimeout time.Duration
	// WorkerBinary is the program that runs a task. Default: platform-worker next to this program.
	WorkerBinary string
	// AuditLog is a file that gets one JSON line per request, "-" for standard output; empty for none.
	AuditLog string
	// AuditPolicy is an audit.k8s.io/v1 Policy file; needed with AuditLog.
	AuditPolicy string

	// Out gets the ready message. Default: nowhere.
	Out io.Writer
	// Clock is the time of the whole process. Default: the real clock.
	Clock clock.WithTickerAndDelayedExecution
	// Metrics, if set, gets the store's metrics; /metrics shows those of k8s.io/component-base's legacyregistry.
	Metrics prometheus.Registerer
	// Ready, if set, is called once the server answers; an error stops the server.
	Ready func(ctx context.Context, s Info) error
	// Controllers runs until ctx ends. Default: the platform's own controllers.
	Controllers func(ctx context.Context, c *rest.Config) error

	// SearchURL and SearchKey are the search service behind the tool web_search; an empty URL is none.
	SearchURL, SearchKey string
	// WebFetchAllow lists destinations, as host:port, that the tool web_fetch may reach although they are not public.
	WebFetchAllow []string
	// WebhookAllow lists destinations, as host:port, that completion callbacks may reach although they are not public.
	WebhookAllow []string
}

// Info tells where a running server is.
type Info struct {
	// URL is the address of the API.
	URL string
	// RESTURL is the address of the listener without TLS; empty where there is none.
	RESTURL string
	// DataDir is the data folder as an absolute path.
	DataDir string
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Admin is the same as a client configuration.
	Admin *rest.Config
}

// NewOptions gives the defaults.
func NewOptions() *Options {
	return &Options{
		DataDir: "_data", BindAddress: "127.0.0.1", Port: DefaultPort, RESTBindAddress: DefaultRESTAddress, MaxRunning: DefaultMaxRunning,
	}
}

// AddFlags binds the options that an operator sets to flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir, "folder of everything the server keeps: store, keys, kubeconfig, run folders")
	fs.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "IP address to listen on; the default is reachable from this machine only")
	fs.IntVar(&o.Port, "secure-port", o.Port, "port to listen on; 0 takes a free one")
	fs.StringVar(&o.RESTBindAddress, "rest-bind-address", o.RESTBindAddress, "address:port that serves the REST paths (/api/v1) without TLS, on loopback; port 0 takes a free one, empty is none. The secure port serves them, too")
	fs.BoolVar(&o.RESTAllowRemote, "rest-allow-remote", o.RESTAllowRemote, "let --rest-bind-address be reachable from other machines: requests and tokens then cross the network unencrypted, so put a proxy with TLS before it")
	fs.BoolVar(&o.AllowHostCommands, "allow-host-commands", o.AllowHostCommands, "let tasks of type container run as commands of this machine, with the rights of this process")
	fs.IntVar(&o.MaxRunning, "max-running-tasks", o.MaxRunning, "tasks that run at once; others wait their turn, 0 is no limit")
	fs.IntVar(&o.MaxRunningPerNamespace, "max-tasks-per-namespace", o.MaxRunningPerNamespace, "tasks of one namespace that run at once; 0 is no limit")
	fs.DurationVar(&o.EventRetention, "event-retention", o.EventRetention, "how long events of a task are kept after its end, but for its last; 0 is as long as the task. Readers are told of the gap")
	fs.DurationVar(&o.EventRetentionFailed, "event-retention-failed", o.EventRetentionFailed, "the same for tasks that failed; 0 is as --event-retention")
	fs.DurationVar(&o.StreamWriteTimeout, "stream-write-timeout", 30*time.Second, "how long a client of an event stream may take to accept what it was sent, before it is cut")
	fs.StringVar(&o.WorkerBinary, "worker-binary", o.WorkerBinary, "program that runs a task (default: platform-worker next to this program)")
	fs.StringSliceVar(&o.WebFetchAllow, "web-fetch-allow", o.WebFetchAllow, "host:port that the tool web_fetch may reach although it is not public; repeatable")
	fs.StringSliceVar(&o.WebhookAllow, "webhook-allow", o.WebhookAllow, "host:port that completion callbacks may reach although it is not public; repeatable")
	fs.StringVar(&o.SearchURL, "search-url", o.SearchURL, "search service behind the tool web_search; its key is read from SEARCH_API_KEY")
	fs.StringVar(&o.AuditLog, "audit-log", o.AuditLog, "file that gets a JSON line per request; - is standard output, empty is none")
	fs.StringVar(&o.AuditPolicy, "audit-policy", o.AuditPolicy, "audit.k8s.io/v1 Policy file; needed with --audit-log")
}

// complete checks the options and fills in what follows from them.
func (o *Options) complete() error {
	dir, err := filepath.Abs(o.DataDir)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	o.DataDir = dir
	if net.ParseIP(o.BindAddress) == nil {
		return fmt.Errorf("--bind-address: %q is not an IP address", o.BindAddress)
	}
	if o.Port < 0 || o.Port > 65535 {
		return fmt.Errorf("--secure-port: %d is not a port", o.Port)
	}
	if err := o.checkREST(); err != nil {
		return err
	}
	if o.EventRetention < 0 || o.EventRetentionFailed < 0 {
		return errors.New("--event-retention and --event-retention-failed must not be negative")
	}
	if (o.AuditLog == "") != (o.AuditPolicy == "") {
		return errors.New("--audit-log and --audit-policy belong together")
	}
	if o.WorkerBinary == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("worker program: %w", err)
		}
		o.WorkerBinary = filepath.Join(filepath.Dir(self), "platform-worker")
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return nil
}

func (o *Options) path(name string) string { return filepath.Join(o.DataDir, name) }

// listen opens the port and gives the URL under which this machine reaches it.
func (o *Options) listen(ctx context.Context) (net.Listener, string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(o.BindAddress, strconv.Itoa(o.Port)))
	if err != nil {
		return nil, "", fmt.Errorf("cannot listen (another --secure-port?): %w", err)
	}
	return l, "https://" + reachable(l.Addr().(*net.TCPAddr)), nil
}

// reachable is the host and port under which this machine reaches a listener.
func reachable(addr *net.TCPAddr) string {
	host := addr.IP
	if host.IsUnspecified() {
		host = net.IPv4(127, 0, 0, 1)
	}
	return net.JoinHostPort(host.String(), strconv.Itoa(addr.Port))
}

// names are the names of the server that its certificate needs beside the usual ones.
func (o *Options) names() []string {
	if ip := net.ParseIP(o.BindAddress); ip == nil || ip.IsUnspecified() || ip.IsLoopback() {
		return nil
	}
	return []string{o.BindAddress}
}
