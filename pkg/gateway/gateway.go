// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway has the rules of gateways that server and controllers share: which binding is for an event, which session it belongs to,
// and how what is made of an event is named. The names are derived, so whoever makes something again, after a crash or a repetition, makes
// it once. Package protocol is what is said to adapters.
package gateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// digits is how many hexadecimal digits the names of records have.
const digits = 40

// id returns a name that is made of what identifies something. No part has a NUL.
func id(prefix string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return prefix + hex.EncodeToString(sum[:])[:digits]
}

// EventID returns the name of the record of an event.
func EventID(gateway types.UID, externalEventID string) string {
	return id("gev-", string(gateway), externalEventID)
}

// TaskName returns the name of the task that answers an event. A person who replays an event has it answered by another one.
func TaskName(event types.UID, replays int32) string {
	return id("gw-", string(event), strconv.Itoa(int(replays)))
}

// DeliveryID returns the name of the record of the delivery of the answer of an event.
func DeliveryID(event types.UID, replays int32) string {
	return id("gdl-", string(event), strconv.Itoa(int(replays)), "0")
}

// InterimID returns the name of the record of a delivery of what is said before the answer. what tells the texts of an event apart.
func InterimID(event types.UID, replays int32, what ...string) string {
	return id("gdl-", append([]string{string(event), strconv.Itoa(int(replays)), "interim"}, what...)...)
}

// DeliveryOf returns a delivery to where an event came from, without a name, and what only the server knows. g has no UID if there is no such
// gateway.
func DeliveryOf(e *v1alpha1.GatewayEvent, g *v1alpha1.Gateway, kind v1alpha1.GatewayDeliveryKind, text string) *v1alpha1.GatewayDelivery {
	s := &e.Spec
	d := &v1alpha1.GatewayDelivery{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace},
		Spec: v1alpha1.GatewayDeliverySpec{
			GatewayOwner: s.GatewayOwner, BindingName: e.Status.BindingName, EventID: e.Name, TaskName: e.Status.TaskName,
			SessionName: e.Status.SessionName, Sequence: e.Status.TranscriptOrder, Kind: kind, AccountID: s.AccountID, ContextID: s.ContextID,
			ThreadID: s.ThreadID, ReplyTarget: s.ReplyTarget, Text: text,
		},
		Status: v1alpha1.GatewayDeliveryStatus{State: v1alpha1.GatewayDeliveryPending},
	}
	if g.UID == s.GatewayUID { // the gateway may have been changed since, and another one of its name has nothing to do with it
		d.Spec.GatewayGeneration, d.Spec.Metadata = g.Generation, maps.Clone(g.Spec.Metadata)
	}
	return d
}

// Named names a delivery, by which its adapter recognises it, too.
func Named(d *v1alpha1.GatewayDelivery, name string) *v1alpha1.GatewayDelivery {
	d.Name, d.Spec.IdempotencyID = name, name
	return d
}

// CompareDeliveries compares the places of two deliveries of a session. Of one event, interim texts come before the answer, in the order in
// which they were written.
func CompareDeliveries(a, b *v1alpha1.GatewayDeliverySpec) int {
	part := func(d *v1alpha1.GatewayDeliverySpec) int32 {
		if d.Part == 0 {
			return math.MaxInt32
		}
		return d.Part
	}
	return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(part(a), part(b)), a.CreatedAt.Compare(b.CreatedAt.Time))
}

// MessageID returns the id of the message of an event in its session.
func MessageID(event string, role v1alpha1.MessageRole) string {
	return "gateway:" + event + ":" + string(role)
}

// Digest returns the digest of what an event says. When it arrived, and how its sender is shown, may differ in a repetition.
func Digest(e *protocol.Event) (string, error) {
	said := *e
	said.ReceivedAt, said.Sender.DisplayName = nil, ""
	if said.OccurredAt != nil {
		at := said.OccurredAt.UTC()
		said.OccurredAt = &at
	}
	raw, err := json.Marshal(said) // maps are sorted
	if err != nil {
		return "", fmt.Errorf("digest of an event: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// Matches reports whether a binding is for a conversation. It does not look at the sender policy.
func Matches(m *v1alpha1.GatewayMatch, s *v1alpha1.GatewayEventSpec) bool {
	return m.AccountID == s.AccountID && m.ContextID == s.ContextID && (m.ThreadID == "" || m.ThreadID == s.ThreadID) && (m.SenderID == "" || m.SenderID == s.SenderID)
}

// rank compares two bindings that match one event: above zero if b comes first.
func rank(a, b *v1alpha1.GatewayBinding) int {
	named := func(s string) int { return min(len(s), 1) }
	return cmp.Or(
		cmp.Compare(b.Spec.Priority, a.Spec.Priority),
		cmp.Compare(named(b.Spec.Match.ThreadID), named(a.Spec.Match.ThreadID)),
		cmp.Compare(named(b.Spec.Match.SenderID), named(a.Spec.Match.SenderID)),
	)
}

// Same reports whether two bindings of a gateway are ambiguous: each event that one matches, the other matches with the same rank.
func Same(a, b *v1alpha1.GatewayBinding) bool {
	return a.Spec.GatewayRef == b.Spec.GatewayRef && a.Spec.Match == b.Spec.Match && a.Spec.Priority == b.Spec.Priority
}

// Route is where an event goes.
type Route struct {
	// Binding is nil if the event is rejected; Reason and Message then say why.
	Binding         *v1alpha1.GatewayBinding
	Reason, Message string
}

// RouteOf returns where an event goes. bindings are those of its gateway.
func RouteOf(s *v1alpha1.GatewayEventSpec, bindings []*v1alpha1.GatewayBinding) Route {
	found := slices.DeleteFunc(slices.Clone(bindings), func(b *v1alpha1.GatewayBinding) bool {
		return b.DeletionTimestamp != nil || b.Spec.GatewayRef.Name != s.GatewayName || !Matches(&b.Spec.Match, s)
	})
	slices.SortFunc(found, func(a, b *v1alpha1.GatewayBinding) int { return cmp.Or(rank(a, b), cmp.Compare(a.Name, b.Name)) })
	switch {
	case len(found) == 0:
		return Route{Reason: v1alpha1.ReasonNoBinding, Message: "no GatewayBinding is for this account, context, thread and sender"}
	case len(found) > 1 && rank(found[0], found[1]) == 0:
		return Route{Reason: v1alpha1.ReasonAmbiguousBinding, Message: fmt.Sprintf("the GatewayBindings %s and %s are both for it, with the same priority", found[0].Name, found[1].Name)}
	}
	b := found[0]
	if b.Spec.SenderPolicy.Mode != v1alpha1.GatewaySendersAll && !slices.Contains(b.Spec.SenderPolicy.AllowedSenderIDs, s.SenderID) {
		return Route{Reason: v1alpha1.ReasonSenderNotAllowed, Message: fmt.Sprintf("the senderPolicy of the GatewayBinding %s does not allow the sender", b.Name)}
	}
	return Route{Binding: b}
}

// SessionName returns the session of an event that goes to a binding.
func SessionName(b *v1alpha1.GatewayBinding, event string, s *v1alpha1.GatewayEventSpec) string {
	mode := cmp.Or(b.Spec.Session.Mode, v1alpha1.GatewaySessionContext)
	parts := []string{string(s.GatewayUID), string(b.UID), string(mode), s.AccountID}
	switch mode {
	case v1alpha1.GatewaySessionEphemeral:
		parts = append(parts, event)
	case v1alpha1.GatewaySessionContext:
		parts = append(parts, s.ContextID)
	case v1alpha1.GatewaySessionThread:
		parts = append(parts, s.ContextID, s.ThreadID)
	case v1alpha1.GatewaySessionSender:
		parts = append(parts, s.SenderID)
	case v1alpha1.GatewaySessionContextSender:
		parts = append(parts, s.ContextID, s.SenderID)
	case v1alpha1.GatewaySessionThreadSender:
		parts = append(parts, s.ContextID, s.ThreadID, s.SenderID)
	case v1alpha1.GatewaySessionExplicit:
		parts = []string{string(s.GatewayUID), string(mode), b.Spec.Session.Name}
	}
	return id(sessionPrefix, parts...)
}

// sessionPrefix is what the names of sessions of gateways begin with.
const sessionPrefix = "gateway-session-"

// IsSession reports whether a name is one of a session of a gateway.
func IsSession(name string) bool { return strings.HasPrefix(name, sessionPrefix) }

// Lacks returns which capability a binding needs and the adapter, or the class, does not have; empty if none.
func Lacks(b *v1alpha1.GatewayBinding, c *v1alpha1.GatewayCapabilities) string {
	s := &b.Spec
	mode := s.Session.Mode
	threads := s.Match.ThreadID != "" || mode == v1alpha1.GatewaySessionThread || mode == v1alpha1.GatewaySessionThreadSender
	senders := s.Match.SenderID != "" || s.SenderPolicy.Mode != v1alpha1.GatewaySendersAll ||
		mode == v1alpha1.GatewaySessionSender || mode == v1alpha1.GatewaySessionContextSender || mode == v1alpha1.GatewaySessionThreadSender ||
		s.Approvals == v1alpha1.GatewayApprovalsConversation
	switch {
	case !c.InboundText:
		return "inboundText"
	case !c.OutboundText:
		return "outboundText"
	case threads && !c.Threads:
		return "threads"
	case senders && !c.SenderIdentity:
		return "senderIdentity"
	case mode == v1alpha1.GatewaySessionExplicit && !c.ExplicitSessions:
		return "explicitSessions"
	case s.Approvals == v1alpha1.GatewayApprovalsConversation && !c.InterimMessages:
		return "interimMessages"
	}
	return ""
}

// CapabilitiesOf returns what an adapter says that it can do.
func CapabilitiesOf(c protocol.Capability) v1alpha1.GatewayCapabilities {
	return v1alpha1.GatewayCapabilities(c)
}

// Unmet returns the first capability that a class asks for and an adapter does not have; empty if none.
func Unmet(asked, has v1alpha1.GatewayCapabilities) string {
	for _, c := range []struct {
		name       string
		asked, has bool
	}{
		{"inboundText", asked.InboundText, has.InboundText},
		{"outboundText", asked.OutboundText, has.OutboundText},
		{"threads", asked.Threads, has.Threads},
		{"senderIdentity", asked.SenderIdentity, has.SenderIdentity},
		{"explicitSessions", asked.ExplicitSessions, has.ExplicitSessions},
		{"idempotentDelivery", asked.IdempotentDelivery, has.IdempotentDelivery},
		{"interimMessages", asked.InterimMessages, has.InterimMessages},
	} {
		if c.asked && !c.has {
			return c.name
		}
	}
	return ""
}

// Issuer returns the issuer of the requesters of a gateway.
func Issuer(namespace string, o *v1alpha1.GatewayOwner) string {
	return fmt.Sprintf("%s:%s/%s/%s/%s", v1alpha1.GatewayContractV1, namespace, o.NamespaceUID, o.GatewayName, o.GatewayUID)
}

// RoleSender is the role of the requesters of gateways.
const RoleSender = "gateway-sender"

// Requester returns for whom the task of an event is.
func Requester(e *v1alpha1.GatewayEvent) *v1alpha1.TaskRequester {
	return &v1alpha1.TaskRequester{
		Issuer: Issuer(e.Namespace, &e.Spec.GatewayOwner), Subject: e.Spec.SenderID, Groups: []string{"gateway:" + e.Spec.GatewayName}, Roles: []string{RoleSender},
	}
}
