// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tokenexchange

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/envflag"
	"github.com/platform-ai/platform/pkg/runspec"
)

// Sources of the token that the task of a caller begins with.
const (
	// SourceIncoming exchanges the transaction token with which the caller created the task.
	SourceIncoming = "incoming"
	// SourceNone gives such tasks no token. Tasks that have one go on to exchange it.
	SourceNone = "none"
)

const (
	flagPrefix      = "context-token-"
	defaultTimeout  = 5 * time.Second
	maxTimeout      = time.Minute
	defaultChildTTL = 5 * time.Minute
	defaultToolTTL  = 2 * time.Minute
	// maxCA bounds the file of authorities, in bytes. A worker gets it as a variable, and Linux limits one to 128 KiB.
	maxCA = 64 << 10
)

// Options say where and how transaction tokens are exchanged. With an empty Endpoint they are not.
type Options struct {
	// Endpoint is the address of the token service's token endpoint.
	Endpoint string
	// Audience is for whom new tokens are asked; empty leaves that to the service.
	Audience string
	// Timeout limits one exchange.
	Timeout time.Duration
	// Source is where the token of a caller's task comes from: SourceIncoming or SourceNone.
	Source string
	// SubjectTokenType is the type of the tokens that are exchanged. Default: TypeTransaction.
	SubjectTokenType string
	// ChildScope has the scopes of the tokens that tasks get, separated by spaces.
	ChildScope string
	// ChildTTL is how long they are to live, which the service decides.
	ChildTTL time.Duration
	// CA are the authorities of the service's certificate, as PEM; empty means those of the system.
	CA string
	// OutboundScope and ToolTTL are for tokens of the requests of tools, which are not built: they must be as by default.
	OutboundScope string
	ToolTTL       time.Duration

	// invalid is what the environment has wrong.
	invalid error
}

// AddFlags binds the options to flags, whose defaults are in environment variables of the same name.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	fs := envflag.Set{FlagSet: flags}
	fs.Text(&o.Endpoint, flagPrefix+"tts-endpoint", "", "token endpoint (https, RFC 8693) of the service that exchanges transaction tokens: tasks then get a token of their own, and so do their children. Needs --context-token-child-scope")
	fs.Text(&o.Audience, flagPrefix+"tts-audience", "", "audience for which tokens are asked at --context-token-tts-endpoint (default: the service decides)")
	fs.Duration(&o.Timeout, flagPrefix+"tts-timeout", defaultTimeout, "how long one exchange may take")
	fs.Text(&o.Source, flagPrefix+"tts-token-source", SourceIncoming, "where the token of a caller's task comes from: incoming, the transaction token with which the task was created is exchanged; none, such tasks get no token, and neither do their children")
	fs.Text(&o.SubjectTokenType, flagPrefix+"subject-token-type", TypeTransaction, "type of the tokens that are exchanged")
	fs.Text(&o.ChildScope, flagPrefix+"child-scope", "", "scopes, separated by spaces, of the tokens of tasks and their children; a transaction that lacks one of them gets no token, and its tasks are refused")
	fs.Duration(&o.ChildTTL, flagPrefix+"child-token-ttl", defaultChildTTL, "how long these tokens are to live; the service decides")
	fs.Text(&o.OutboundScope, flagPrefix+"outbound-scope", "", "not built yet, and refused: scopes of tokens for the requests of tools. Tools send the credentials that they name")
	fs.Duration(&o.ToolTTL, flagPrefix+"tool-token-ttl", defaultToolTTL, "not built yet, and refused: how long these tokens are to live")
	o.invalid = fs.Check()
}

// Check reports options that are incomplete, and sets those that have defaults. Errors name the flag.
func (o *Options) Check() error {
	if o.invalid != nil {
		return o.invalid
	}
	for name, set := range map[string]bool{"outbound-scope": o.OutboundScope != "", "tool-token-ttl": o.ToolTTL != 0 && o.ToolTTL != defaultToolTTL} {
		if set {
			return fmt.Errorf("--%s%s: tokens for the requests of tools are not built yet; leave it out. Tools send the credentials that they name", flagPrefix, name)
		}
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.ChildTTL == 0 {
		o.ChildTTL = defaultChildTTL
	}
	if o.Source == "" {
		o.Source = SourceIncoming
	}
	if o.SubjectTokenType == "" {
		o.SubjectTokenType = TypeTransaction
	}
	switch {
	case o.Endpoint == "" && (o.ChildScope != "" || o.Audience != ""):
		return errors.New("--context-token-tts-endpoint is needed with --context-token-child-scope and --context-token-tts-audience")
	case o.Endpoint == "":
		return nil
	case strings.TrimSpace(o.ChildScope) == "":
		return errors.New("--context-token-child-scope is needed with --context-token-tts-endpoint: it says what the tokens of tasks are good for")
	case o.Timeout < 0 || o.Timeout > maxTimeout:
		return fmt.Errorf("--context-token-tts-timeout: %s: must be between 0 and %s", o.Timeout, maxTimeout)
	case o.ChildTTL < time.Second:
		return fmt.Errorf("--context-token-child-token-ttl: %s: must be at least 1s", o.ChildTTL)
	case o.Source == "serviceAccount":
		return errors.New("--context-token-tts-token-source: serviceAccount is not built: the token of a ServiceAccount does not show in whose transaction a task runs; use incoming or none")
	case o.Source != SourceIncoming && o.Source != SourceNone:
		return fmt.Errorf("--context-token-tts-token-source: %q: must be %s or %s", o.Source, SourceIncoming, SourceNone)
	}
	return egress.CheckSecure("--context-token-tts-endpoint", o.Endpoint)
}

// ReadCA reads the authorities from a PEM file; an empty path means those of the system.
func (o *Options) ReadCA(path string) error {
	if path == "" || o.Endpoint == "" {
		return nil
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(pem) > maxCA {
		return fmt.Errorf("%s has %d bytes, at most %d are possible with --context-token-tts-endpoint, because workers get its content; leave out what the token service does not need", path, len(pem), maxCA)
	}
	o.CA = string(pem)
	return nil
}

// Env returns the variables by which a worker gets the options; see FromEnv.
func (o *Options) Env() map[string]string {
	return map[string]string{
		runspec.EnvTTSEndpoint: o.Endpoint, runspec.EnvTTSAudience: o.Audience, runspec.EnvTTSTimeout: o.Timeout.String(),
		runspec.EnvTTSTokenSource: o.Source, runspec.EnvTTSAuthorities: o.CA, runspec.EnvSubjectTokenType: o.SubjectTokenType,
		runspec.EnvChildScope: o.ChildScope, runspec.EnvChildTokenTTL: o.ChildTTL.String(),
	}
}

// FromEnv returns the options that Env passed to a worker. Without an endpoint or a scope for children the worker exchanges
// nothing, and ok is false.
func FromEnv(getenv func(string) string) (o Options, ok bool, err error) {
	o = Options{
		Endpoint: getenv(runspec.EnvTTSEndpoint), Audience: getenv(runspec.EnvTTSAudience), CA: getenv(runspec.EnvTTSAuthorities),
		SubjectTokenType: getenv(runspec.EnvSubjectTokenType), ChildScope: getenv(runspec.EnvChildScope),
	}
	if o.Endpoint == "" || o.ChildScope == "" {
		return Options{}, false, nil
	}
	for name, p := range map[string]*time.Duration{runspec.EnvTTSTimeout: &o.Timeout, runspec.EnvChildTokenTTL: &o.ChildTTL} {
		if text := getenv(name); text != "" {
			d, parseErr := time.ParseDuration(text)
			if parseErr != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", name, parseErr))
			}
			*p = d
		}
	}
	return o, true, errors.Join(err, o.Check())
}
