// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package protocol is platform.gateway.v1: what the platform and the adapter of a chat system say to each other. docs/gateway-v1.md tells it
// for authors of adapters.
//
// The adapter posts events to the platform (Event, Reply). The platform asks the adapter for its health and its capabilities, and posts
// deliveries (Delivery, Answer). All bodies are one JSON object without unknown members; each side sends a bearer token of its own.
//
// An event is known by its externalEventId, a delivery by its idempotencyId. Both may come again, at any time and several at once, and
// whoever gets them answers as the first time.
package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Version is the version of the protocol.
const Version = "platform.gateway.v1"

// EventText is the one type of events.
const EventText = "text"

// Limits of what is sent, in bytes, and in entries.
const (
	MaxID        = 256
	MaxText      = 64 << 10
	MaxMetadata  = 32
	MaxEventBody = 256 << 10
	MaxAnswer    = 64 << 10
	// MaxDeliveryBody bounds a delivery as JSON, in which a text may take six bytes for one, and MaxDeliveryMetadata the entries of its
	// metadata: those of the gateway and those of the platform.
	MaxDeliveryBody     = 1 << 20
	MaxDeliveryMetadata = MaxMetadata + 2
	MaxIdempotencyID    = 128
	MaxDisplayName      = 256
	maxKey              = 128
	maxValue            = 1024
	maxName             = 256
)

// Paths of an adapter.
const (
	PathHealth       = "/v1/health"
	PathCapabilities = "/v1/capabilities"
	PathDeliveries   = "/v1/deliveries"
)

// Event is what an adapter posts to POST /api/v1/gateways/NAMESPACE/NAME/events.
type Event struct {
	// ProtocolVersion is Version.
	ProtocolVersion string `json:"protocolVersion"`
	// ExternalEventID identifies the event for the gateway: the chat system's id of the message.
	ExternalEventID string `json:"externalEventId"`
	// EventType is EventText.
	EventType string `json:"eventType"`
	// AccountID, ContextID and ThreadID say where it was written. ThreadID is empty outside threads.
	AccountID string `json:"accountId"`
	ContextID string `json:"contextId"`
	ThreadID  string `json:"threadId,omitempty"`
	Sender    Sender `json:"sender"`
	Text      string `json:"text"`
	// ReplyTarget is what the adapter needs to answer; it comes back with each delivery.
	ReplyTarget string `json:"replyTarget,omitempty"`
	// OccurredAt is when it was written, ReceivedAt when the adapter got it.
	OccurredAt *time.Time        `json:"occurredAt,omitempty"`
	ReceivedAt *time.Time        `json:"receivedAt,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
}

// Sender is who wrote an event.
type Sender struct {
	// ID is what the chat system has verified.
	ID string `json:"id"`
	// DisplayName is how people see the sender. Nothing is decided by it.
	DisplayName string `json:"displayName,omitempty"`
}

// Values of Reply.Status.
const (
	ReplyAccepted     = "accepted"
	ReplyDuplicate    = "duplicate"
	ReplyRejected     = "rejected"
	ReplyDeadLettered = "deadLettered"
)

// Reply is the answer (202) to an event that is stored.
type Reply struct {
	Status  string `json:"status"`
	EventID string `json:"eventId"`
	// State is where the event is now; empty if its record is not kept any more.
	State   string `json:"state,omitempty"`
	Message string `json:"message,omitempty"`
}

// Health is the answer to GET PathHealth.
type Health struct {
	// Status is "ok".
	Status string `json:"status"`
}

// Capabilities is the answer to GET PathCapabilities.
type Capabilities struct {
	// ProtocolVersion is the version that the adapter prefers, and ProtocolVersions, if it is there, all that it speaks.
	ProtocolVersion  string        `json:"protocolVersion"`
	ProtocolVersions *VersionRange `json:"protocolVersions,omitempty"`
	AdapterName      string        `json:"adapterName"`
	AdapterVersion   string        `json:"adapterVersion,omitempty"`
	Capabilities     Capability    `json:"capabilities"`
}

// VersionRange are the versions of the protocol from platform.gateway.vMIN to platform.gateway.vMAX.
type VersionRange struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// Capability is what an adapter can do.
type Capability struct {
	InboundText        bool `json:"inboundText,omitempty"`
	OutboundText       bool `json:"outboundText,omitempty"`
	Threads            bool `json:"threads,omitempty"`
	SenderIdentity     bool `json:"senderIdentity,omitempty"`
	ExplicitSessions   bool `json:"explicitSessions,omitempty"`
	IdempotentDelivery bool `json:"idempotentDelivery,omitempty"`
	InterimMessages    bool `json:"interimMessages,omitempty"`
}

// Values of Delivery.Kind. Interim texts are sent only to adapters that have the capability.
const (
	KindFinal   = "final"
	KindError   = "error"
	KindInterim = "interim"
)

// Keys that the platform sets in the metadata of deliveries.
const (
	// MetadataCreatedAt is when the text was written, as RFC 3339.
	MetadataCreatedAt = "platform.ai/created-at"
	// MetadataLate is "true" if the text begins with a line that says how late it is.
	MetadataLate = "platform.ai/late"
)

// Delivery is what the platform posts to PathDeliveries.
type Delivery struct {
	ProtocolVersion string `json:"protocolVersion"`
	DeliveryID      string `json:"deliveryId"`
	// IdempotencyID identifies the delivery. With one that it has seen the adapter posts nothing, and answers as the first time, even if
	// the rest is another.
	IdempotencyID string `json:"idempotencyId"`
	// OriginatingEventID is the id that the platform gave to the event.
	OriginatingEventID string  `json:"originatingEventId"`
	TaskRef            TaskRef `json:"taskRef,omitzero"`
	// SessionRef is the session of the conversation.
	SessionRef  string            `json:"sessionRef,omitempty"`
	Kind        string            `json:"kind"`
	AccountID   string            `json:"accountId"`
	ContextID   string            `json:"contextId"`
	ThreadID    string            `json:"threadId,omitempty"`
	ReplyTarget string            `json:"replyTarget,omitempty"`
	Text        string            `json:"text"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

// TaskRef is the task that answers.
type TaskRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Values of Answer.Status.
const (
	Delivered         = "delivered"
	RetryableError    = "retryableError"
	NonRetryableError = "nonRetryableError"
)

// Answer is the answer (2xx) to a delivery.
type Answer struct {
	Status string `json:"status"`
	// ProviderMessageID is the id that the chat system gave to the message.
	ProviderMessageID string `json:"providerMessageId,omitempty"`
	Message           string `json:"message,omitempty"`
}

// Decode reads one JSON object of at most limit bytes into v, and refuses unknown members and what follows the object. Two members of one
// name, or a name in another case, are refused as well.
func Decode(r io.Reader, limit int64, v any) error {
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if int64(len(raw)) > limit {
		return fmt.Errorf("it has more than %d bytes", limit)
	}
	return Unmarshal(raw, v)
}

// Unmarshal is Decode of bytes.
func Unmarshal(raw []byte, v any) error {
	if !utf8.Valid(raw) {
		return errors.New("it is not valid UTF-8")
	}
	if t := bytes.TrimLeft(raw, " \t\r\n"); len(t) == 0 || t[0] != '{' {
		return errors.New("it is not a JSON object")
	}
	if err := exact(raw, v); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object")
	}
	return nil
}

// metadataKey is what keys of metadata are made of.
var metadataKey = regexp.MustCompile(`^[A-Za-z0-9._/-]+$`)

// Check returns what is wrong with an event: an error for each member, which names it.
func (e *Event) Check() []error {
	var errs []error
	wrong := func(member, format string, a ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", member, fmt.Sprintf(format, a...)))
	}
	if e.ProtocolVersion != Version {
		wrong("protocolVersion", "must be %q", Version)
	}
	if e.EventType != EventText {
		wrong("eventType", "must be %q", EventText)
	}
	for _, m := range []struct {
		name, value string
		needed      bool
	}{
		{"externalEventId", e.ExternalEventID, true},
		{"accountId", e.AccountID, true},
		{"contextId", e.ContextID, true},
		{"threadId", e.ThreadID, false},
		{"sender.id", e.Sender.ID, true},
		{"sender.displayName", e.Sender.DisplayName, false},
		{"replyTarget", e.ReplyTarget, false},
	} {
		switch {
		case m.needed && strings.TrimSpace(m.value) == "":
			wrong(m.name, "is required")
		case len(m.value) > MaxID:
			wrong(m.name, "must have at most %d bytes", MaxID)
		case strings.ContainsFunc(m.value, unicode.IsControl):
			wrong(m.name, "must have no control characters")
		}
	}
	switch {
	case strings.TrimSpace(e.Text) == "":
		wrong("text", "is required")
	case len(e.Text) > MaxText:
		wrong("text", "must have at most %d bytes", MaxText)
	}
	if len(e.Metadata) > MaxMetadata {
		wrong("metadata", "must have at most %d entries", MaxMetadata)
		return errs
	}
	for key, value := range e.Metadata {
		if len(key) > maxKey || !metadataKey.MatchString(key) {
			wrong("metadata", "a key must have from 1 to %d letters, digits and . _ / -", maxKey)
		}
		if len(value) > maxValue {
			wrong("metadata", "a value must have at most %d bytes", maxValue)
		}
	}
	return errs
}

// Check returns what is wrong with the capabilities of an adapter.
func (c *Capabilities) Check() error {
	switch {
	case c.AdapterName == "" || len(c.AdapterName) > maxName:
		return fmt.Errorf("adapterName: must have from 1 to %d bytes", maxName)
	case len(c.AdapterVersion) > maxName:
		return fmt.Errorf("adapterVersion: must have at most %d bytes", maxName)
	case !c.Capabilities.IdempotentDelivery:
		return errors.New("capabilities.idempotentDelivery: must be true")
	}
	return nil
}

// Agree returns the version that both sides speak: this one, or an error that says what the adapter speaks.
func (c *Capabilities) Agree() (string, error) {
	if r := c.ProtocolVersions; r != nil {
		if r.Min < 1 || r.Max < r.Min {
			return "", errors.New("protocolVersions: min must be at least 1, and max at least min")
		}
		if r.Min > 1 {
			return "", fmt.Errorf("protocolVersions: the adapter speaks platform.gateway.v%d to v%d, and the platform %s", r.Min, r.Max, Version)
		}
		return Version, nil
	}
	if c.ProtocolVersion != Version {
		return "", fmt.Errorf("protocolVersion: the adapter speaks %q, and the platform %s", c.ProtocolVersion, Version)
	}
	return Version, nil
}

// Check returns what is wrong with an answer to a delivery.
func (a *Answer) Check() error {
	switch a.Status {
	case Delivered, RetryableError, NonRetryableError:
		return nil
	}
	return fmt.Errorf("status: must be %s, %s or %s", Delivered, RetryableError, NonRetryableError)
}
