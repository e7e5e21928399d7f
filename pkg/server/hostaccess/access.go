// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostaccess makes calls on code hosts with credentials from Secrets. It is the one place of the server that has such a credential
// in its hands: it reads the Secret of one call, sends the credential to the code host and nowhere else, and forgets it. Whoever asks for a
// call has decided before which repository and which Secret it is about.
//
// A namespace has few calls at a time, and each ends with its request. What a host answers is bounded by its driver.
package hostaccess

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/marker"
	"github.com/platform-ai/platform/pkg/codehost/operation"
	"github.com/platform-ai/platform/pkg/codehost/providers"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/plan"
)

// patience is how long one request to a code host may take. A call makes several, and ends with its own request after a minute.
const patience = 20 * time.Second

// Options are what calls need.
type Options struct {
	// Secrets is a client of the server that has the Secrets. A server without it refuses calls that need one.
	Secrets kubernetes.Interface
	// Allow lists host:port of code hosts that may be reached although they are not public.
	Allow []string
	// RequireHosts refuses Secrets that do not name the hosts to which their values may be sent.
	RequireHosts bool
	// Key makes the keys of calls, which nobody else can guess.
	Key []byte
	// Markers makes and finds the marks of reviews; TrustedAuthor is the login whose marks without a signature are believed, empty for
	// the user of the credential.
	Markers       marker.Keys
	TrustedAuthor string
	Clock         clock.Clock
}

// Access makes calls. All methods may be called concurrently.
type Access struct {
	o         Options
	transport http.RoundTripper
	hosts     *providers.Finder
	shares    *shares
}

// New returns the access of a server.
func New(o Options) *Access {
	return &Access{o: o, transport: egress.Guard{Allow: o.Allow}.Transport(), hosts: providers.NewFinder(o.Clock), shares: newShares()}
}

// Target is the repository that a call is about, and the credential for it.
type Target struct {
	// Owner names whose repository it is, such as "task a", in the text of failures.
	Owner string
	// Namespace is where the call is counted.
	Namespace string
	// URL is the address of the repository, and Provider its code host; empty if the host is to be asked.
	URL, Provider string
	// Secret has the credential under Key, by default "token"; without a name there is none.
	Secret types.NamespacedName
	Key    string
	// Publication is what create_pull_request makes a pull request of; nil for other operations.
	Publication *operation.Publication
}

// Answer is what a call came to.
type Answer struct {
	// Result is the JSON of what the operation returns, without the credential.
	Result []byte
	// Receipt is the pull request that there is after create_pull_request.
	Receipt *v1alpha1.PullRequestReceipt
	// Adopted is set with Receipt if somebody else has created the pull request.
	Adopted bool
	// Repository is OWNER/NAME of the repository, and Worked what the call did with a pull request in it; nil if nothing.
	Repository string
	Worked     *operation.Worked
}

// CallKey returns what identifies a call. The parts are what makes the call a certain one; they can be encoded as JSON.
func (a *Access) CallKey(parts ...any) (string, error) {
	raw, err := json.Marshal(parts)
	if err != nil {
		return "", fmt.Errorf("key of a call: %w", err)
	}
	mac := hmac.New(sha256.New, a.o.Key)
	_, _ = mac.Write(raw) // never fails
	return hex.EncodeToString(mac.Sum(nil)[:16]), nil
}

// Do carries out a call. What a code host or a Secret did wrong is an *operation.Error.
func (a *Access) Do(ctx context.Context, to *Target, c operation.Call) (Answer, error) {
	release, err := a.shares.take(ctx, to.Namespace)
	if err != nil {
		return Answer{}, err
	}
	defer release()
	remote := codehost.Remote{URL: to.URL, Transport: a.transport, Patience: patience}
	if err := a.authorize(ctx, to, &remote); err != nil {
		return Answer{}, err
	}
	at, err := codehost.ParseAddress(to.URL)
	if err != nil {
		return Answer{}, operation.Explain(err, a.o.Clock.Now())
	}
	host, err := a.hosts.Open(ctx, remote, to.Provider)
	if errors.Is(err, providers.ErrUnknown) {
		return Answer{}, failure(v1alpha1.CodeHostRefused, "%v", err)
	}
	if err != nil {
		return Answer{}, operation.Explain(err, a.o.Clock.Now())
	}
	place := &operation.Place{
		Host: host, Repository: at.Owner + "/" + at.Name, Markers: a.o.Markers, TrustedAuthor: a.o.TrustedAuthor, Publication: to.Publication, Clock: a.o.Clock,
	}
	result, err := operation.Do(ctx, place, c)
	if err != nil {
		return Answer{}, err
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return Answer{}, fmt.Errorf("result of %s: %w", c.Tool, err)
	}
	return Answer{
		Result: without(raw, remote.Token), Receipt: place.Receipt, Adopted: place.Adopted, Repository: place.Repository, Worked: place.Worked,
	}, nil
}

// authorize gives a remote the credential of the target, and the transport that sends it nowhere but where its Secret allows.
func (a *Access) authorize(ctx context.Context, to *Target, r *codehost.Remote) error {
	if to.Secret.Name == "" {
		return nil
	}
	if a.o.Secrets == nil {
		return failure(v1alpha1.CodeHostUnavailable, "this server cannot read Secrets")
	}
	secret, err := a.o.Secrets.CoreV1().Secrets(to.Secret.Namespace).Get(ctx, to.Secret.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return failure(v1alpha1.CodeHostDenied, "the Secret %q of %s does not exist", to.Secret.Name, to.Owner)
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return failure(v1alpha1.CodeHostUnavailable, "the Secret %q of %s cannot be read", to.Secret.Name, to.Owner)
	}
	key := cmp.Or(to.Key, "token")
	if r.Token = string(secret.Data[key]); r.Token == "" {
		return failure(v1alpha1.CodeHostDenied, "the Secret %q of %s has no key %q, or nothing under it", to.Secret.Name, to.Owner, key)
	}
	address, err := url.Parse(to.URL)
	if err != nil {
		return failure(v1alpha1.CodeHostInvalidArguments, "the address of the repository of %s is not a URL", to.Owner)
	}
	hosts := plan.HostsOf(secret.Annotations)
	if err := plan.MaySend(to.Secret, hosts, a.o.RequireHosts, plan.APIOf(address)); err != nil {
		return failure(v1alpha1.CodeHostDenied, "%v", err)
	}
	r.Transport = hosts.Transport(r.Transport)
	return nil
}

// Find returns the first of the named Secrets of a namespace that has something under one of the keys, which has to be a credential for code
// hosts; nil if none has. The Secrets are read for this, and nothing in them leaves this server.
func (a *Access) Find(ctx context.Context, namespace string, names, keys []string) (*v1alpha1.WorkspaceCredentialReference, error) {
	if a.o.Secrets == nil {
		return nil, apierrors.NewServiceUnavailable("this server cannot read Secrets")
	}
	for _, name := range names {
		secret, err := a.o.Secrets.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("the Secret %q cannot be read", name))
		}
		for _, key := range keys {
			if token, err := (codehost.Remote{Token: string(secret.Data[key])}).Credential(); err == nil && token != "" {
				return &v1alpha1.WorkspaceCredentialReference{Name: name, Key: key}, nil
			}
		}
	}
	return nil, nil //nolint:nilnil // none
}

// FailureOf returns the failure that an error is, for an answer; nil if it is none. The error that is returned with it is for clients.
func FailureOf(err error) (*v1alpha1.TaskCodeHostFailure, error) {
	if failed, ok := errors.AsType[*operation.Error](err); ok {
		return &v1alpha1.TaskCodeHostFailure{Reason: failed.Reason, Message: failed.Message, RetryAfterSeconds: failed.Seconds()}, nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, apierrors.NewTimeoutError("the code host did not answer in time", 0)
	}
	return nil, err
}

// without returns an answer without a token that the host repeated in it.
func without(raw []byte, token string) []byte {
	if token == "" {
		return raw
	}
	quoted, err := json.Marshal(token)
	if err != nil {
		return raw // a string always is encodable
	}
	return bytes.ReplaceAll(raw, quoted[1:len(quoted)-1], []byte("[removed]"))
}

func failure(reason v1alpha1.TaskCodeHostFailureReason, format string, a ...any) *operation.Error {
	return &operation.Error{Reason: reason, Message: fmt.Sprintf(format, a...)}
}
