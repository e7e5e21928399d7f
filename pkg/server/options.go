// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server has what the standalone and the aggregated server share: their common options, opening and closing the
// stores, listeners, the audit log, the parts of the API server that do not depend on where identities come from, and
// the order in which a server starts and stops.
//
//	options.go  flags and their rules
//	limits.go   what one task may store
//	stores.go   the folder of the store, and waiting for its lock
//	listen.go   the secure listener and the plain one of the REST paths
//	generic.go  the generic server's configuration: TLS, the loopback client, audit
//	config.go   the resources of the platform over the stores
//	run.go      a server as a process: parts that live and end together
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/profiling"
	"github.com/platform-ai/platform/pkg/server/intake"
)

const defaultStreamWriteTimeout = 30 * time.Second

// Options are what every server of the platform is told.
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
	// EventRetention is how long events of a task are kept after its end, but for its terminal event; 0 is as long as the task.
	EventRetention time.Duration
	// EventRetentionFailed, where set, is the same for tasks that failed.
	EventRetentionFailed time.Duration
	// StreamWriteTimeout is how long a client of an event stream may take to accept what it was sent; then it is cut,
	// and may go on where it was. Default: 30 seconds.
	StreamWriteTimeout time.Duration
	// AuditLog is a file that gets one JSON line per request, "-" for standard output; empty for none.
	AuditLog string
	// AuditPolicy is an audit.k8s.io/v1 Policy file; needed with AuditLog.
	AuditPolicy string
	// BodyBudget is how many bytes of request bodies the process holds at a time. Default: intake.DefaultBudget.
	BodyBudget resource.QuantityValue
	// DiskReserve is how many bytes of the store's volume are kept for deletes and for what runs; 0 is engine.Options'.
	DiskReserve resource.QuantityValue
	// TaskEvents and TaskEventBytes bound the stream of a task; 0 is no limit. Bytes count 400 for the indexes of each event.
	TaskEvents     int64
	TaskEventBytes resource.QuantityValue
	// TaskEventRate and NamespaceEventRate are bytes of events a second, with 16 seconds of them at once; 0 is no limit.
	TaskEventRate, NamespaceEventRate resource.QuantityValue
	// NamespaceEventBytes bounds the streams of all tasks of a namespace, and NamespaceArtifactBytes their artifacts,
	// results and logs; 0 is no limit.
	NamespaceEventBytes, NamespaceArtifactBytes resource.QuantityValue
	// TaskLogRate is bytes of log a second, with 16 seconds of them at once; 0 is no limit.
	TaskLogRate resource.QuantityValue
	// TaskArtifacts and TaskArtifactBytes bound the artifacts of a task, with its result; 0 is no limit.
	TaskArtifacts     int64
	TaskArtifactBytes resource.QuantityValue
	// Profiling is where profiles are served; empty is nowhere.
	Profiling profiling.Address
	// LocalRuns says that runs are processes of this machine, so that clients are warned of what only a cluster can honour.
	LocalRuns bool
	// LockTimeout is how long the start waits while another server has the store open; 0 is not at all.
	LockTimeout time.Duration

	// Waiting, where set, is called when the start begins to wait for the store's lock; what it returns is called when the
	// wait is over.
	Waiting func(context.Context) (done func())
	// Out gets what is meant for a person: the ready message, and the audit log where that is "-". Default: nowhere.
	Out io.Writer
	// Clock is the time of the whole process. Default: the real clock.
	Clock clock.WithTickerAndDelayedExecution
	// Metrics, if set, gets the store's metrics; /metrics shows those of k8s.io/component-base's legacyregistry.
	Metrics prometheus.Registerer
}

// AddFlags binds the options that an operator of any server sets to flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir, "folder of everything the server keeps; one server at a time may use it")
	fs.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "IP address to listen on; 127.0.0.1 is reachable from this machine only")
	fs.IntVar(&o.Port, "secure-port", o.Port, "port to listen on; 0 takes a free one")
	fs.StringVar(&o.RESTBindAddress, "rest-bind-address", o.RESTBindAddress, "address:port that serves the REST paths (/api/v1) without TLS, on loopback; port 0 takes a free one, empty is none. The secure port serves them, too")
	fs.BoolVar(&o.RESTAllowRemote, "rest-allow-remote", o.RESTAllowRemote, "let --rest-bind-address be reachable from other machines: requests and tokens then cross the network unencrypted, so put a proxy with TLS before it")
	fs.DurationVar(&o.EventRetention, "event-retention", o.EventRetention, "how long events of a task are kept after its end, but for its last; 0 is as long as the task. Readers are told of the gap")
	fs.DurationVar(&o.EventRetentionFailed, "event-retention-failed", o.EventRetentionFailed, "the same for tasks that failed; 0 is as --event-retention")
	fs.DurationVar(&o.StreamWriteTimeout, "stream-write-timeout", defaultStreamWriteTimeout, "how long a client of an event stream may take to accept what it was sent, before it is cut")
	fs.Var(&o.BodyBudget, "body-budget", "bytes of request bodies (such as 128Mi) that the process holds at a time, at least 32Mi; a caller may hold as much as is free beside, and is told to come again (429) beyond. 0 is an eighth of GOMEMLIMIT, from 32Mi to 256Mi; 256Mi without one")
	fs.Var(&o.DiskReserve, "disk-reserve", "bytes of the store's volume (such as 512Mi) that are left free: with less, what adds to the store is refused (507), with less than half of it updates, too; reads, watches and deletes go on. 0 is 256Mi, or an eighth of a volume smaller than 2Gi; -1 is none")
	o.addLimitFlags(fs)
	fs.StringVar(&o.AuditLog, "audit-log", o.AuditLog, "file that gets a JSON line per request; - is standard output, empty is none")
	o.Profiling.AddFlag(fs)
	fs.StringVar(&o.AuditPolicy, "audit-policy", o.AuditPolicy, "audit.k8s.io/v1 Policy file; needed with --audit-log")
}

// Complete checks the options and fills in what follows from them. Errors name the flag.
func (o *Options) Complete() error {
	if o.DataDir == "" {
		return errors.New("--data-dir must not be empty")
	}
	dir, err := filepath.Abs(o.DataDir)
	if err != nil {
		return fmt.Errorf("--data-dir: %w", err)
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
	if o.LockTimeout < 0 {
		return errors.New("--lock-timeout must not be negative")
	}
	if err := o.checkLimits(); err != nil {
		return err
	}
	if n := o.BodyBudget.Value(); n != 0 && n < intake.MinBudget {
		return fmt.Errorf("--body-budget: %s is too little; at least 32Mi are needed for the longest body that a route takes", o.BodyBudget.String())
	}
	if (o.AuditLog == "") != (o.AuditPolicy == "") {
		return errors.New("--audit-log and --audit-policy belong together")
	}
	if o.StreamWriteTimeout == 0 {
		o.StreamWriteTimeout = defaultStreamWriteTimeout
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return nil
}

// Path is a path below the data folder.
func (o *Options) Path(name string) string { return filepath.Join(o.DataDir, name) }
