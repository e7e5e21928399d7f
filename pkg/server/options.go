// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server has what the standalone and the aggregated server share: their common options, the opening and
// closing of the stores, the listeners, the audit log, the parts of the API server that do not depend on where
// identities come from, and the order in which a server starts and stops.
//
//	options.go   flags and their rules
//	limits.go    what one task may store, and a tree of tasks
//	chat.go      the limits of chats
//	stores.go    the folder of the store, and waiting for its lock
//	collect.go   how often the garbage collector runs
//	quiet.go     memory that is given back when the server is quiet
//	files.go     whether enough files can be opened
//	standby.go   the ports while the server cannot start
//	listen.go    the secure listener and the plain one of the REST paths
//	ownhost.go   a listener on loopback answers for the names of this machine only
//	rest.go      the REST paths and the health checks on the plain listener
//	logs.go      the log of the process
//	auditlog.go  the audit log
//	generic.go   the generic server's configuration: TLS, the loopback client, audit
//	usage.go     the ledger of model use after the start
//	tasksecrets.go the Secrets of tasks: transaction tokens, and credentials of repositories
//	codehosts.go the code hosts of tasks
//	connectors.go the accounts that people link
//	gateways.go  the gateways to chat systems
//	config.go    the resources of the platform over the stores
//	restore.go   the command that unpacks a backup
//	run.go       a server as a process: parts that live and end together
//
//large:imports it puts the parts of a server together, for both hosts
package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/profiling"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/chat"
	"github.com/platform-ai/platform/pkg/server/console"
	"github.com/platform-ai/platform/pkg/server/door"
	"github.com/platform-ai/platform/pkg/server/intake"
	"github.com/platform-ai/platform/pkg/server/models"
	"github.com/platform-ai/platform/pkg/server/writetimeout"
)

// Options are the options of every server of the platform.
//
//large:fields each is a flag, or a group of flags, of both hosts
//large:lines each rule of a flag and each part that both hosts share is made from the flags
type Options struct {
	// DataDir is the directory of everything the server stores. It is created if it does not exist.
	DataDir string
	// BindAddress is the IP address to listen on.
	BindAddress string
	// Port is the port to listen on; 0 takes a free one.
	Port int
	// RESTBindAddress is where the REST paths are also served without TLS, as address:port. Port 0 takes a free port;
	// an empty string means no such listener. The secure port serves the same paths in any case.
	RESTBindAddress string
	// RESTAllowRemote accepts a RESTBindAddress that other machines can reach.
	RESTAllowRemote bool
	// CORSOrigins are the origins whose pages may use the REST paths; empty allows any.
	CORSOrigins []string
	// Console serves the web console on both listeners.
	Console bool
	// ConsoleIdle and ConsoleLife are how long a session of the console lasts without a request, and at most. Default: those
	// of package console.
	ConsoleIdle, ConsoleLife time.Duration
	// EventRetention is how long events of a task are kept after its end, except its terminal event; 0 keeps them as
	// long as the task.
	EventRetention time.Duration
	// EventRetentionFailed, if set, applies to failed tasks instead of EventRetention.
	EventRetentionFailed time.Duration
	// UsageRetention is how long the records of a request are kept after the last of them; 0 keeps them for ever. Default:
	// 90 days, set by AddFlags.
	UsageRetention time.Duration
	// ModelDrainTime is how long the answer of a model is read on after whoever asked for it has left. Default: 5 seconds.
	ModelDrainTime time.Duration
	// StreamWriteTimeout is how long a client of an event stream may take to accept what was sent before it is
	// disconnected. The client may then resume. Default: writetimeout.Server.
	StreamWriteTimeout time.Duration
	// AuditLog is the file for one JSON line per request, "-" for standard output; empty disables the audit log.
	AuditLog string
	// AuditPolicy is an audit.k8s.io/v1 Policy file. It is required with AuditLog.
	AuditPolicy string
	// BodyBudget is the maximum number of bytes of request bodies in memory at a time. Default: intake.DefaultBudget.
	BodyBudget resource.QuantityValue
	// DiskReserve is how many bytes of the store's volume are kept for deletes and for running tasks; 0 uses the
	// default of engine.Options.
	DiskReserve resource.QuantityValue
	// AcceptDataLoss are the names of parts of the store without which the server starts although they are lost.
	AcceptDataLoss []string
	// TreeTasks bounds the tasks that are delegated in one tree, whatever the Agents allow; 0 means no limit.
	TreeTasks int32
	// TaskEvents and TaskEventBytes bound the stream of a task; 0 means no limit. Each event counts an additional 400
	// bytes for its indexes.
	TaskEvents     int64
	TaskEventBytes resource.QuantityValue
	// TaskEventRate and NamespaceEventRate are bytes of events per second, with bursts of 16 seconds' worth; 0 means
	// no limit.
	TaskEventRate, NamespaceEventRate resource.QuantityValue
	// NamespaceEventBytes bounds the streams of all tasks of a namespace, and NamespaceArtifactBytes their artifacts,
	// results and logs; 0 means no limit.
	NamespaceEventBytes, NamespaceArtifactBytes resource.QuantityValue
	// RecordingRetention is how long the recording of a task is kept after its end, and of a request of a chat or of a vendor's API after
	// it; 0 keeps them as long as the events and the usage.
	RecordingRetention time.Duration
	// RecordingMode is how much of what runs say and do is kept where the agent does not say it: Full, Digests or Off.
	RecordingMode string
	// TaskRecordingBytes and NamespaceRecordingBytes bound what is recorded; 0 means no limit.
	TaskRecordingBytes, NamespaceRecordingBytes resource.QuantityValue
	// TaskLogRate is bytes of log per second, with bursts of 16 seconds' worth; 0 means no limit.
	TaskLogRate resource.QuantityValue
	// TaskArtifactRate is bytes of artifacts and results per second, and NamespaceArtifactRate those of all tasks of a
	// namespace with their logs, both with bursts of 16 seconds' worth; 0 means no limit.
	TaskArtifactRate, NamespaceArtifactRate resource.QuantityValue
	// TaskArtifacts and TaskArtifactBytes bound the artifacts of a task, including its result; 0 means no limit.
	TaskArtifacts     int64
	TaskArtifactBytes resource.QuantityValue
	// Identity configures which callers with identities from outside of the host are accepted. Default: none.
	Identity external.Options
	// SealFile is the file with the key that seals who asked for a task. Default: requester.key in DataDir.
	SealFile string
	// NamespaceWeights are the weights of namespaces where they share something: runs, chats, rate limits of models. Others have 1.
	NamespaceWeights map[string]int
	// Chat are the limits of chats. Default: ChatDefaults. Complete sets the weights of its Shares.
	Chat chat.Limits
	// CompatClientTools is what becomes of the tools that clients of the vendors' APIs bring: ClientToolsPass, the default, or
	// ClientToolsDrop.
	CompatClientTools string
	// invalidChat is what the environment has wrong about them.
	invalidChat error
	// SearchURL and SearchKey configure the search service of the tool web_search; an empty URL means none.
	SearchURL, SearchKey string
	// WebFetchAllow lists destinations, as host:port, that the tool web_fetch and remote MCP tools may reach although they are not public.
	WebFetchAllow []string
	// RepositoryAllow lists host:port of repositories of tasks, and of the code hosts that have them, that may be reached although they
	// are not public.
	RepositoryAllow []string
	// ReviewMarkers are the settings of the marks of reviews that tools of tasks post.
	ReviewMarkers ReviewMarkers
	// Webhook are the settings of the webhook for code hosts.
	Webhook Webhook
	// Gateways are the settings of gateways to chat systems.
	Gateways Gateways
	// Connectors are the settings of the accounts that people link.
	Connectors Connectors
	// Profiling is the address where profiles are served; empty serves none.
	Profiling profiling.Address
	// LocalRuns is set if runs are processes of this machine. Clients are then warned about settings that only a
	// cluster can honour.
	LocalRuns bool
	// Doors answer requests of callers that prove themselves by a signature or a secret of their own. Default: none.
	Doors []door.Door
	// Host is the client configuration for the cluster that has the Secrets of Providers; nil means this server itself.
	Host *rest.Config
	// RequireSecretHosts refuses requests to models, and on the standalone host tasks, that use a Secret that does not name
	// the hosts to which its values may be sent.
	RequireSecretHosts bool
	// LockTimeout is how long the start waits while another server has the store open; 0 does not wait.
	LockTimeout time.Duration
	// ReadyWhileWaiting makes /readyz succeed while another server has the store open.
	ReadyWhileWaiting bool

	// Name is the name in the certificate with which the server answers while it waits for the store. Default: localhost.
	Name string
	// Out receives output for a person: the ready message, and the audit log if AuditLog is "-". Default: discarded.
	Out io.Writer
	// Clock is the clock of the whole process. Default: the real clock.
	Clock clock.WithTickerAndDelayedExecution
	// Metrics, if set, registers the store's metrics. /metrics shows those of k8s.io/component-base's legacyregistry.
	Metrics prometheus.Registerer
}

// AddFlags binds the options that an operator of any server sets to flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir, "folder of everything the server keeps; one server at a time may use it")
	fs.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "IP address to listen on; 127.0.0.1 is reachable from this machine only")
	fs.IntVar(&o.Port, "secure-port", o.Port, "port to listen on; 0 takes a free one")
	fs.StringVar(&o.RESTBindAddress, "rest-bind-address", o.RESTBindAddress, "address:port that serves the REST paths (/api/v1) without TLS, on loopback; port 0 takes a free one, empty disables it. The secure port serves them, too")
	fs.BoolVar(&o.RESTAllowRemote, "rest-allow-remote", o.RESTAllowRemote, "let --rest-bind-address be reachable from other machines: requests and tokens then cross the network unencrypted, so put a proxy with TLS in front of it")
	fs.DurationVar(&o.EventRetention, "event-retention", o.EventRetention, "how long events of a task are kept after its end, except the last, which is kept; 0 keeps all as long as the task. Readers get a gap marker")
	fs.DurationVar(&o.RecordingRetention, "recording-retention", o.RecordingRetention, "how long the recording of a task is kept after its end, and the recording of a request of a chat or of a vendor's API after it; 0 keeps them as long as the events and the usage")
	fs.DurationVar(&o.EventRetentionFailed, "event-retention-failed", o.EventRetentionFailed, "the same for tasks that failed; 0 means as --event-retention")
	fs.DurationVar(&o.UsageRetention, "usage-retention", defaultUsageRetention, "how long what was recorded about the use of models is kept: the records of a request are removed together, this long after the last of them; 0 keeps them for ever")
	fs.DurationVar(&o.ModelDrainTime, "model-drain-time", models.DefaultDrain, "how long the answer of a model is read on after whoever asked for it in a chat or through /openai/v1 and /anthropic/v1 has left, in case its usage is reported soon; at most 10m, and 0s is the default. spec.drainSeconds of a Provider overrides it")
	fs.DurationVar(&o.StreamWriteTimeout, "stream-write-timeout", writetimeout.Server, "how long a client of an event stream may take to accept what it was sent before it is disconnected")
	fs.Var(&o.BodyBudget, "body-budget", "bytes of request bodies (such as 128Mi) that the process holds at a time, at least 32Mi; a caller may hold at most as much as is still free; more is refused with 429. 0 is an eighth of GOMEMLIMIT, from 32Mi to 256Mi; 256Mi without one")
	fs.Var(&o.DiskReserve, "disk-reserve", "bytes of the store's volume (such as 512Mi) that are left free: if less is free, requests that add to the store are refused (507), and below half of it updates, too; reads, watches and deletes are still served. 0 is 256Mi, or an eighth of a volume smaller than 2Gi; -1 disables the reserve")
	fs.StringSliceVar(&o.AcceptDataLoss, "accept-data-loss", o.AcceptDataLoss, "name of a part of the store that is lost for good, as the error at the start gives it; the server starts without it and records the loss. Repeatable")
	fs.BoolVar(&o.Console, "console", o.Console, "serve the web console at /console/ on all listeners; if false, its paths answer 404")
	fs.DurationVar(&o.ConsoleIdle, "console-session-idle", console.DefaultIdle, "how long a session of the web console lasts without a request; an open stream counts as one")
	fs.DurationVar(&o.ConsoleLife, "console-session-life", console.DefaultLife, "how long a session of the web console lasts at most; it ends earlier with its token")
	fs.BoolVar(&o.RequireSecretHosts, "require-secret-hosts", o.RequireSecretHosts, "use no Secret that does not name the hosts to which its values may be sent (annotation platform.ai/allowed-hosts)")
	o.addLimitFlags(fs)
	o.addChatFlags(fs)
	fs.StringSliceVar(&o.WebFetchAllow, "web-fetch-allow", o.WebFetchAllow, "host:port that the tool web_fetch, remote MCP tools and redirects of HTTP tools may reach although it is not public; repeatable")
	fs.StringSliceVar(&o.RepositoryAllow, "repository-allow", o.RepositoryAllow, "host:port of repositories of tasks (spec.workspace.gitRepo), and of the code hosts that have them, that may be reached although it is not public; repeatable")
	fs.StringVar(&o.SearchURL, "search-url", o.SearchURL, "address of the search service that the tool web_search uses; its key is read from SEARCH_API_KEY")
	o.Gateways.AddFlags(fs)
	o.Connectors.AddFlags(fs)
	o.Identity.AddFlags(fs)
	fs.StringVar(&o.AuditLog, "audit-log", o.AuditLog, "file that gets a JSON line per request; - is standard output, empty disables the log")
	o.Profiling.AddFlag(fs)
	fs.StringVar(&o.AuditPolicy, "audit-policy", o.AuditPolicy, "audit.k8s.io/v1 Policy file; needed with --audit-log")
}

// Complete checks the options and derives the remaining ones. Errors name the flag.
func (o *Options) Complete() error {
	if o.DataDir == "" {
		return errors.New("--data-dir must not be empty")
	}
	dir, err := filepath.Abs(o.DataDir)
	if err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	o.DataDir = dir
	if err := o.Gateways.complete(); err != nil {
		return err
	}
	if net.ParseIP(o.BindAddress) == nil {
		return fmt.Errorf("--bind-address: %q: must be an IP address", o.BindAddress)
	}
	if o.Port < 0 || o.Port > 65535 {
		return fmt.Errorf("--secure-port: %d: must be a port number from 0 to 65535", o.Port)
	}
	if err := o.checkREST(); err != nil {
		return err
	}
	if o.EventRetention < 0 || o.EventRetentionFailed < 0 || o.RecordingRetention < 0 {
		return errors.New("--event-retention, --event-retention-failed and --recording-retention must not be negative")
	}
	if o.UsageRetention < 0 {
		return errors.New("--usage-retention must not be negative")
	}
	if o.ConsoleIdle < 0 || o.ConsoleLife < 0 {
		return errors.New("--console-session-idle and --console-session-life must be positive; --console=false serves no console")
	}
	if o.LockTimeout < 0 {
		return errors.New("--lock-timeout must not be negative")
	}
	if err := o.checkLimits(); err != nil {
		return err
	}
	if err := o.checkChat(); err != nil {
		return err
	}
	if err := o.Identity.Check(); err != nil {
		return err
	}
	if n := o.BodyBudget.Value(); n != 0 && n < intake.MinBudget {
		return fmt.Errorf("--body-budget: %s is too little: must be at least 32Mi, which the longest permitted body needs", o.BodyBudget.String())
	}
	if d := o.ModelDrainTime; d < 0 || d > models.MaxDrain {
		return fmt.Errorf("--model-drain-time: must be from 0s to %s", models.MaxDrain)
	}
	if (o.AuditLog == "") != (o.AuditPolicy == "") {
		return errors.New("--audit-log and --audit-policy belong together")
	}
	if o.StreamWriteTimeout == 0 {
		o.StreamWriteTimeout = writetimeout.Server
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return nil
}

// Path returns a path in the data directory.
func (o *Options) Path(name string) string { return filepath.Join(o.DataDir, name) }

func (o *Options) sealFile() string {
	if o.SealFile == "" {
		return o.Path("requester.key")
	}
	return o.SealFile
}
