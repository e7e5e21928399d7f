// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Settle sets the conditions ProviderResolved and ScopesGranted of a connection, its observed generation and its state, from its spec, its
// committed consent, its condition Ready and its provider. p is nil if there is none. now is when conditions change. The same input leads
// to the same status, so Settle may be called at any time.
//
// Whoever commits consents and refreshes tokens owns Ready; Settle sets it, to PendingConsent, only if there is none. A refresh that failed
// for a passing reason loses nothing, so Ready stays True while the access token lives, with a message. Once the access token has ended,
// Ready is False with the reason RefreshFailed: the state is Expired until a later refresh succeeds, and needs no consent. The same
// condition on a connection whose token still lives does not change the state.
func Settle(c *v1alpha1.Connection, p *v1alpha1.ConnectorProvider, now time.Time) {
	s := &c.Status
	set := func(condition string, status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: condition, Status: status, Reason: reason, Message: message,
			ObservedGeneration: c.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	if meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady) == nil {
		set(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPendingConsent, "the person has not given consent yet")
	}
	if reason, message := unresolved(p); reason != "" {
		set(v1alpha1.ConditionProviderResolved, metav1.ConditionFalse, reason, message)
	} else {
		set(v1alpha1.ConditionProviderResolved, metav1.ConditionTrue, v1alpha1.ReasonProviderResolved, "")
	}
	switch reason, message := uncovered(c, p); reason {
	case "":
		set(v1alpha1.ConditionScopesGranted, metav1.ConditionTrue, v1alpha1.ReasonScopesCovered, "")
	case v1alpha1.ReasonProviderMissing:
		set(v1alpha1.ConditionScopesGranted, metav1.ConditionUnknown, reason, message)
	default:
		set(v1alpha1.ConditionScopesGranted, metav1.ConditionFalse, reason, message)
	}
	s.ObservedGeneration, s.State = c.Generation, state(s, now)
}

// Leave sets the condition Ready and the state of a connection that is being deleted, which cannot be used any more. The message says
// what keeps it.
func Leave(c *v1alpha1.Connection, message string, now time.Time) {
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDisconnecting, Message: message,
		ObservedGeneration: c.Generation, LastTransitionTime: metav1.NewTime(now),
	})
	c.Status.ObservedGeneration, c.Status.State = c.Generation, v1alpha1.ConnectionPending
}

// Available returns an error if people cannot be asked for consent at a provider, or its tokens cannot be used.
func Available(p *v1alpha1.ConnectorProvider) error {
	if _, message := unresolved(p); message != "" {
		return errors.New(message)
	}
	return nil
}

// unresolved returns why a provider cannot be used, or an empty reason.
func unresolved(p *v1alpha1.ConnectorProvider) (reason, message string) {
	if p == nil {
		return v1alpha1.ReasonProviderMissing, "the ConnectorProvider does not exist"
	}
	if p.DeletionTimestamp != nil {
		return v1alpha1.ReasonProviderInvalid, "the ConnectorProvider is being deleted"
	}
	for _, name := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionResolvedRefs} {
		switch c := meta.FindStatusCondition(p.Status.Conditions, name); {
		case c == nil:
			return v1alpha1.ReasonProviderInvalid, fmt.Sprintf("the ConnectorProvider has no condition %s yet", name)
		case c.Status != metav1.ConditionTrue:
			return v1alpha1.ReasonProviderInvalid, fmt.Sprintf("the condition %s of the ConnectorProvider is %s: %s", name, c.Status, c.Reason)
		}
	}
	return "", ""
}

// uncovered returns why the committed consent is not enough, or an empty reason. Without a provider that is not known.
func uncovered(c *v1alpha1.Connection, p *v1alpha1.ConnectorProvider) (reason, message string) {
	consent := c.Status.Consent
	if consent == nil || c.Status.GrantSequence == 0 {
		return v1alpha1.ReasonPendingConsent, "the person has not given consent yet"
	}
	if p == nil {
		return v1alpha1.ReasonProviderMissing, "the ConnectorProvider does not exist"
	}
	if consent.ProviderUID != p.UID || consent.AuthorityDigest != AuthorityDigest(p) {
		return v1alpha1.ReasonConsentRequired, "the ConnectorProvider has changed since the consent was given"
	}
	if required := Required(p, c.Spec.Mode); !Covers(c.Status.GrantedScopes, required) {
		return v1alpha1.ReasonConsentRequired, "the mode needs scopes that were not granted; all of them: " + strings.Join(required, " ")
	}
	return "", ""
}

// state sums up conditions, all three of which are there.
func state(s *v1alpha1.ConnectionStatus, now time.Time) v1alpha1.ConnectionState {
	if !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionProviderResolved) {
		return v1alpha1.ConnectionError
	}
	if ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady); ready.Status != metav1.ConditionTrue {
		switch ended := s.ExpiresAt != nil && !now.Before(s.ExpiresAt.Time); {
		case ready.Reason == v1alpha1.ReasonConnectionRevoked:
			return v1alpha1.ConnectionRevoked
		case ready.Reason == v1alpha1.ReasonConnectionExpired, ready.Reason == v1alpha1.ReasonRefreshFailed && ended:
			return v1alpha1.ConnectionExpired
		case ready.Reason != v1alpha1.ReasonRefreshFailed:
			return v1alpha1.ConnectionPending
		}
	}
	if !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionScopesGranted) {
		return v1alpha1.ConnectionPending
	}
	return v1alpha1.ConnectionReady
}

// UnusableError says why a connection cannot be used.
type UnusableError struct {
	// Reason is that of the condition that is not True. It is empty if the connection is being deleted, or was changed and its
	// conditions are not about that yet.
	Reason string
	// Message says what is missing.
	Message string
}

// Error returns the message.
func (e *UnusableError) Error() string { return e.Message }

// Usable returns an *UnusableError unless a connection can be used now: it is Ready, the other conditions are True for its generation,
// and it is not being deleted.
func Usable(c *v1alpha1.Connection) error {
	if c.DeletionTimestamp != nil {
		return &UnusableError{Message: "the connection is being deleted"}
	}
	for _, name := range []string{v1alpha1.ConditionProviderResolved, v1alpha1.ConditionScopesGranted, v1alpha1.ConditionReady} {
		found := meta.FindStatusCondition(c.Status.Conditions, name)
		switch {
		case found == nil:
			return &UnusableError{Message: fmt.Sprintf("the connection has no condition %s yet", name)}
		case name != v1alpha1.ConditionReady && found.ObservedGeneration != c.Generation:
			return &UnusableError{Message: fmt.Sprintf("the connection was changed, and its condition %s is not about that yet", name)}
		case found.Status != metav1.ConditionTrue:
			return &UnusableError{found.Reason, strings.TrimSuffix(fmt.Sprintf("the condition %s of the connection is %s (%s): %s", name, found.Status, found.Reason, found.Message), ": ")}
		}
	}
	return nil
}

// UsableOnceRefreshed is Usable for who can refresh the access token: a connection that is not Ready because a refresh failed for a passing
// reason is no error, because the next one may succeed.
func UsableOnceRefreshed(c *v1alpha1.Connection) error {
	err := Usable(c)
	if why, ok := errors.AsType[*UnusableError](err); ok && why.Reason == v1alpha1.ReasonRefreshFailed {
		return nil
	}
	return err
}
