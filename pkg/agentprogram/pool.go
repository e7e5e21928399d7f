// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentprogram

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/envflag"
)

// PoolLimits is how much a RuntimePool takes on.
type PoolLimits struct {
	// MaxResidentSessions is how many tasks hold a place, and MaxRunningPrompts how many of them are at work.
	MaxResidentSessions, MaxRunningPrompts int32
}

// DefaultPoolLimits are the limits of a RuntimePool that names none.
func DefaultPoolLimits() PoolLimits { return PoolLimits{MaxResidentSessions: 10, MaxRunningPrompts: 4} }

// LimitsOf returns the limits of a pool.
func LimitsOf(p *v1alpha1.RuntimePool) PoolLimits {
	l, c := DefaultPoolLimits(), p.Spec.Capacity
	if c != nil && c.MaxResidentSessions != nil {
		l.MaxResidentSessions = *c.MaxResidentSessions
	}
	if c != nil && c.MaxRunningPrompts != nil {
		l.MaxRunningPrompts = *c.MaxRunningPrompts
	}
	return l
}

// PoolEnd is how the last task of a pool ended.
type PoolEnd struct {
	At              time.Time
	Reason, Message string
}

// PoolUse is what of a pool is in use.
type PoolUse struct {
	v1alpha1.RuntimePoolUse
	// Tasks is the number of tasks that have a place or wait for one.
	Tasks int
	// Waits are the messages of tasks whose work cannot begin, by reason.
	Waits map[string]string
	// Ended is how the last task ended.
	Ended PoolEnd
	// EmptySince is when the last task left, as far as it is known.
	EmptySince time.Time
}

// PoolOptions configure the RuntimePools that the controller makes.
type PoolOptions struct {
	// MaxResidentSessions and MaxRunningPrompts are the limits of a new pool.
	MaxResidentSessions, MaxRunningPrompts int
	// IdleTTL is how long a pool without tasks is kept.
	IdleTTL time.Duration

	flags   *envflag.Set
	refused []*refusedFlag
}

// DefaultPoolOptions returns the defaults.
func DefaultPoolOptions() PoolOptions {
	l := DefaultPoolLimits()
	return PoolOptions{MaxResidentSessions: int(l.MaxResidentSessions), MaxRunningPrompts: int(l.MaxRunningPrompts), IdleTTL: 10 * time.Minute}
}

// AddFlags binds the options to flags.
func (o *PoolOptions) AddFlags(fs *pflag.FlagSet) {
	set := &envflag.Set{FlagSet: fs}
	o.flags = set
	set.Int(&o.MaxResidentSessions, "acp-pool-max-resident-sessions", o.MaxResidentSessions, "sessions that a new RuntimePool of coding agents holds; further tasks wait, by priority and age")
	set.Int(&o.MaxRunningPrompts, "acp-pool-max-running-prompts", o.MaxRunningPrompts, "of these sessions, how many work at a time; those that wait for a person, or whose changes are published, do not count")
	set.Duration(&o.IdleTTL, "acp-idle-pool-ttl", o.IdleTTL, "how long a RuntimePool without tasks is kept")
	o.refused = refusedFlags()
	for _, f := range o.refused {
		f.add(set)
	}
}

// Check returns what is wrong with the options.
func (o *PoolOptions) Check() error {
	if o.flags != nil {
		if err := o.flags.Check(); err != nil {
			return err
		}
	}
	for _, f := range o.refused {
		if err := f.check(); err != nil {
			return err
		}
	}
	switch {
	case o.MaxRunningPrompts < 1:
		return fmt.Errorf("--acp-pool-max-running-prompts: %d: must be at least 1", o.MaxRunningPrompts)
	case o.MaxResidentSessions < o.MaxRunningPrompts:
		return fmt.Errorf("--acp-pool-max-resident-sessions: %d: must be at least --acp-pool-max-running-prompts, which is %d, since each prompt belongs to a session", o.MaxResidentSessions, o.MaxRunningPrompts)
	case o.MaxResidentSessions > maxSessions:
		return fmt.Errorf("--acp-pool-max-resident-sessions: %d: must be at most %d", o.MaxResidentSessions, maxSessions)
	case o.IdleTTL < 0:
		return errors.New("--acp-idle-pool-ttl: must not be negative")
	}
	return nil
}

// maxSessions is above what any machine can hold.
const maxSessions = 1_000_000

// Pool returns the RuntimePool of tasks in a namespace that work as an identity, with a program of a type in an image. The name follows
// from these.
func (o *PoolOptions) Pool(namespace, identity string, t v1alpha1.AgentRuntimeType, image string) *v1alpha1.RuntimePool {
	profile := digest("platform.pool.v1", string(t), image, string(v1alpha1.ACPProfileV1), protocolVersion)
	return &v1alpha1.RuntimePool{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: PoolName(namespace, identity, t, image), Labels: map[string]string{v1alpha1.LabelAgentRuntime: string(t)},
		},
		Spec: v1alpha1.RuntimePoolSpec{
			TrustDomain: v1alpha1.RuntimeTrustDomain{Namespace: namespace, IDentity: identity}, RuntimeNamespace: namespace,
			Runtime: v1alpha1.PoolRuntime{Image: image, Profile: v1alpha1.RuntimeProfile{
				ProtocolVersion: protocolVersion, Digest: "sha256:" + profile, DigestSchemaVersion: "platform.pool.v1", ACPProfile: v1alpha1.ACPProfileV1,
			}},
			Capacity: &v1alpha1.RuntimePoolLimits{MaxResidentSessions: new(int32(o.MaxResidentSessions)), MaxRunningPrompts: new(int32(o.MaxRunningPrompts))},
		},
	}
}

// protocolVersion is the version of the Agent Client Protocol.
const protocolVersion = "1"

// PoolName returns the name of that pool.
func PoolName(namespace, identity string, t v1alpha1.AgentRuntimeType, image string) string {
	return string(t) + "-" + digest(namespace, identity, string(t), image)[:10]
}

// TypeOf returns the type of coding agents of a pool that Pool made; empty for any other one.
func TypeOf(p *v1alpha1.RuntimePool) v1alpha1.AgentRuntimeType {
	t := v1alpha1.AgentRuntimeType(p.Labels[v1alpha1.LabelAgentRuntime])
	if d := p.Spec.TrustDomain; p.Name != PoolName(d.Namespace, d.IDentity, t, p.Spec.Runtime.Image) || d.Namespace != p.Namespace {
		return ""
	}
	return t
}

// digest returns the SHA-256 of texts that cannot contain the byte between them.
func digest(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:])
}
