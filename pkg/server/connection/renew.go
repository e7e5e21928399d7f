// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/connector/oauth"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// renew refreshes the token of a connection if it needs that, and returns a token. It is called once at a time for a connection.
func (u *uses) renew(ctx context.Context, at place, uid types.UID) (Token, error) {
	if err := u.flush(ctx, at, uid); err != nil {
		return Token{}, err
	}
	a, err := u.read(ctx, at, uid)
	if err != nil {
		return Token{}, err
	}
	now := u.h.o.Clock.Now()
	switch a.grant.needs(now) {
	case nothing: // another refresh was faster
		return a.token(), nil
	case aConsent:
		return Token{}, u.expire(ctx, a)
	}
	if p := u.pauses.current(uid, a.grant.Sequence, now); p != nil {
		return u.without(ctx, a, p)
	}
	by := clientOf(a.p)
	got, failure := u.ask(ctx, a, &by)
	switch {
	case failure == nil, failure.Class == oauth.Revoked:
	case failure.Class == oauth.Unknown:
		u.count(unknown)
	default:
		u.count(failed)
	}
	if failure != nil {
		klog.FromContext(ctx).Error(failure, "A token is not refreshed", "connection", klog.KObj(a.c), "class", failure.Class)
		if failure.Class != oauth.Revoked {
			return u.without(ctx, a, u.pauses.begin(uid, a.grant.Sequence, failure, u.h.o.Clock.Now()))
		}
	}
	o := &outcome{sequence: a.grant.Sequence, sent: a.grant.Refresh, client: by, got: got}
	if failure != nil {
		o.why = failure.Message
	}
	c, err := u.settle(ctx, at, uid, o)
	if err != nil {
		return Token{}, err
	}
	if err := connector.Usable(c); err != nil { // revoked, or with scopes that are not enough any more
		return Token{}, err
	}
	return Token{Access: got.AccessToken, Type: got.TokenType, Sequence: o.sequence, Expires: got.Expires}, nil
}

func (u *uses) count(outcome string) { u.h.counts.refreshes.WithLabelValues(outcome).Inc() }

// secretTime is how long it may take to read the Secret of a client.
const secretTime = 10 * time.Second

// ask sends the refresh token to the provider, with the Secret that the provider names now. Another Secret needs no other consent.
func (u *uses) ask(ctx context.Context, a *account, by *client) (*oauth.Grant, *oauth.Error) {
	limited, cancel := context.WithTimeout(ctx, secretTime)
	defer cancel()
	endpoint, err := u.h.endpoint(limited, a.c.Namespace, by)
	if err != nil {
		klog.FromContext(ctx).Error(err, "The client of a provider cannot be used", "provider", klog.KObj(a.p))
		return nil, unready(err)
	}
	got, err := u.h.client.Refresh(ctx, endpoint, a.grant.Refresh)
	if err == nil {
		return got, nil
	}
	failure, ok := errors.AsType[*oauth.Error](err)
	if !ok {
		failure = &oauth.Error{Class: oauth.Unknown, Message: "the refresh of the token failed"}
	}
	return nil, failure
}

// unready is the failure of a refresh that was not sent, because the Secret of the client could not be had.
func unready(err error) *oauth.Error {
	const what = "the refresh of the token failed: "
	_, unanswered := errors.AsType[*url.Error](err)
	switch reason := apierrors.ReasonForError(err); {
	case unanswered, errors.Is(err, context.DeadlineExceeded),
		reason != metav1.StatusReasonUnknown && reason != metav1.StatusReasonNotFound && reason != metav1.StatusReasonForbidden:
		return &oauth.Error{Class: oauth.Transient, Message: what + "the Secret of the client cannot be read at the moment"}
	}
	return &oauth.Error{Class: oauth.Misconfigured, Message: what + err.Error()}
}

// without returns the token that could not be refreshed while it lives, and then the failure. The status of the connection says it.
func (u *uses) without(ctx context.Context, a *account, p *pause) (Token, error) {
	now := u.h.o.Clock.Now()
	lives, status := a.grant.lives(now), metav1.ConditionFalse
	if lives {
		status = metav1.ConditionTrue
	}
	if _, err := u.say(ctx, a, status, v1alpha1.ReasonRefreshFailed, p.failure.Message); err != nil {
		return Token{}, err
	}
	if lives {
		return a.token(), nil
	}
	return Token{}, &RefreshError{
		Class: p.failure.Class, RetryAfter: max((p.until.Sub(now) + time.Second - 1).Truncate(time.Second), time.Second),
		Message: fmt.Sprintf("the access token has ended, and it cannot be refreshed now: %s", p.failure.Message),
	}
}

// expire says that a token has ended that cannot be refreshed, and returns that as an error.
func (u *uses) expire(ctx context.Context, a *account) error {
	const message = "the access token has ended, and the provider gave nothing to refresh it with; connect again"
	c, err := u.say(ctx, a, metav1.ConditionFalse, v1alpha1.ReasonConnectionExpired, message)
	if err != nil {
		return err
	}
	u.count(expired)
	if err := connector.UsableOnceRefreshed(c); err != nil {
		return err
	}
	return &connector.UnusableError{Reason: v1alpha1.ReasonConnectionExpired, Message: message} // which could not be written
}

// say sets the condition Ready of a connection that has still the same grant, and returns the connection. Otherwise its error is
// errSuperseded. A status that cannot be written is left as it is.
func (u *uses) say(ctx context.Context, a *account, status metav1.ConditionStatus, reason, message string) (*v1alpha1.Connection, error) {
	if is := meta.FindStatusCondition(a.c.Status.Conditions, v1alpha1.ConditionReady); is != nil && is.Status == status && is.Reason == reason && is.Message == message {
		return a.c, nil
	}
	now := u.h.o.Clock.Now()
	c, err := u.h.o.Connections.UpdateStored(resource.AsServer(ctx, a.c.Namespace), a.c.Name, func(c *v1alpha1.Connection) error {
		if stale(c, a.c.UID) || c.Status.GrantSequence != a.grant.Sequence {
			return errSuperseded
		}
		setReady(c, status, reason, message, now)
		connector.Settle(c, a.p, now)
		return nil
	})
	switch {
	case errors.Is(err, errSuperseded), apierrors.IsNotFound(err):
		return nil, errSuperseded
	case err != nil:
		klog.FromContext(ctx).Error(err, "The status of a connection is not written", "connection", klog.KObj(a.c))
		return a.c, nil
	}
	return c, nil
}
