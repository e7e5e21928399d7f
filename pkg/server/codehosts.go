// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"

	"github.com/platform-ai/platform/pkg/codehost/marker"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/hostaccess"
	"github.com/platform-ai/platform/pkg/server/registry/core"
	"github.com/platform-ai/platform/pkg/server/webhook"
)

// ReviewMarkers are the settings of the hidden marks of reviews (package marker).
type ReviewMarkers struct {
	// Key signs new marks. Without it, the key is derived from that of the requesters (SealFile), so it stays with the store.
	Key string
	// Previous are keys of older marks.
	Previous []string
	// TrustedAuthor is the login whose marks without a signature are believed. Without it, that is the user of the credential.
	TrustedAuthor string
}

// envMarkerKey is the environment variable of ReviewMarkers.Key.
const envMarkerKey = "PLATFORM_PR_REVIEW_MARKER_SECRET"

// ReviewMarkersOf returns the settings that the environment has.
func ReviewMarkersOf(getenv func(string) string) ReviewMarkers {
	m := ReviewMarkers{Key: strings.TrimSpace(getenv(envMarkerKey)), TrustedAuthor: strings.TrimSpace(getenv("PLATFORM_PR_REVIEW_MARKER_TRUSTED_AUTHOR"))}
	for key := range strings.SplitSeq(getenv("PLATFORM_PR_REVIEW_MARKER_PREVIOUS_SECRETS"), ",") {
		if key = strings.TrimSpace(key); key != "" {
			m.Previous = append(m.Previous, key)
		}
	}
	return m
}

// codeHosts returns what makes calls on code hosts.
func (o *Options) codeHosts(seal *external.Seal, secrets kubernetes.Interface) (*hostaccess.Access, error) {
	allow, err := egress.ParseAllow(strings.Join(o.RepositoryAllow, ","))
	if err != nil {
		return nil, fmt.Errorf("--repository-allow: %w", err)
	}
	keys, err := o.ReviewMarkers.keys(seal)
	if err != nil {
		return nil, err
	}
	return hostaccess.New(hostaccess.Options{
		Secrets: secrets, Allow: allow, RequireHosts: o.RequireSecretHosts, Key: seal.Derive("codehost-call"), Markers: keys,
		TrustedAuthor: o.ReviewMarkers.TrustedAuthor, Clock: o.Clock,
	}), nil
}

// keys returns the keys of the marks. A mark of the derived key counts also when a key is given later.
func (m ReviewMarkers) keys(seal *external.Seal) (marker.Keys, error) {
	derived := seal.Derive("pr-review-marker")
	current, previous := derived, [][]byte{}
	if m.Key != "" {
		current, previous = []byte(m.Key), [][]byte{derived}
	}
	for _, key := range m.Previous {
		previous = append(previous, []byte(key))
	}
	keys, err := marker.NewKeys(current, previous...)
	if err != nil {
		return marker.Keys{}, fmt.Errorf("%s: %w", envMarkerKey, err)
	}
	return keys, nil
}

// Webhook are the settings of the webhook for code hosts.
type Webhook struct {
	// Secret signs deliveries. Without it they are refused.
	Secret string
	// Triggers are the labels that make tasks.
	Triggers webhook.Triggers
}

// WebhookOf returns the settings that the environment has. PLATFORM_GITHUB_LABEL_AGENT_ACTION names the Agent for one action, with _ for what
// is neither a letter nor a digit.
func WebhookOf(environ []string) (w Webhook, err error) {
	w.Triggers.Agents = map[string]string{}
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		if value = strings.TrimSpace(value); value == "" {
			continue
		}
		if action, ok := strings.CutPrefix(name, "PLATFORM_GITHUB_LABEL_AGENT_"); ok {
			w.Triggers.Agents[strings.ToLower(strings.ReplaceAll(action, "_", "-"))] = value
			continue
		}
		if err := w.set(name, value); err != nil {
			return Webhook{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return w, nil
}

// set takes over one variable of the environment.
func (w *Webhook) set(name, value string) (err error) {
	t := &w.Triggers
	switch name {
	case "PLATFORM_GITHUB_WEBHOOK_SECRET":
		w.Secret = value
	case "PLATFORM_GITHUB_LABEL_TRIGGER_AGENT":
		t.Agent = value
	case "PLATFORM_GITHUB_LABEL_TRIGGER_NAMESPACE":
		t.Namespace = value
	case "PLATFORM_GITHUB_LABEL_TRIGGER_GIT_SECRET":
		t.Secret = value
	case "PLATFORM_GITHUB_LABEL_TRIGGER_PREFIX":
		t.Prefix = value
	case "PLATFORM_GITHUB_LABEL_TRIGGER_TIMEOUT":
		if t.Timeout, err = time.ParseDuration(value); err != nil || t.Timeout <= 0 {
			return errors.New("must be a length of time, such as 30m")
		}
	case "PLATFORM_GITHUB_LABEL_TRIGGER_MAX_TURNS":
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < 1 {
			return errors.New("must be a number from 1 to 1000")
		}
		t.MaxTurns = int32(n)
	}
	return nil
}

// codeHostHook returns the door for code hosts, which decides deliveries as long as the server runs.
func (o *Options) codeHostHook(g *genericapiserver.Config, stored *core.Stored) (*webhook.Hook, error) {
	hook, err := webhook.New(webhook.Options{
		Secret: o.Webhook.Secret, Triggers: o.Webhook.Triggers, Deliveries: stored.Deliveries, Monitors: stored.Monitors, Loopback: g.LoopbackClientConfig, Clock: o.Clock,
	})
	if err != nil {
		return nil, err
	}
	return hook, g.AddPostStartHook("platform-code-host-deliveries", func(c genericapiserver.PostStartHookContext) error {
		go hook.Run(c) // ends with the server
		return nil
	})
}
