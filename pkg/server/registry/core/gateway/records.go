// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Fields of both kinds of records, all of which are indexed.
const (
	FieldState   = "status.state"
	FieldGateway = "spec.gatewayName"
	// FieldOpen is "true" for a record that a controller has to do something about, otherwise empty. A controller watches by it. Besides those
	// that did not end, that is what was delivered and is not recorded yet.
	FieldOpen = "open"
	// FieldOpenSession is the session of a record that did not end. Names of sessions of gateways differ between namespaces.
	FieldOpenSession = "openSession"
	// FieldOpenGateway is the gateway of an event that did not end, as OfGateway writes it.
	FieldOpenGateway = "openGateway"
	// FieldRejected is, of an event that was rejected, its gateway as OfGateway writes it, a slash and its time, so that a walk finds the
	// oldest first.
	FieldRejected = "rejected"
	// FieldNewest, FieldNewestGateway and FieldNewestState are for walks that find the newest record first: of a namespace, of a gateway
	// and of a state. Their values begin with NewestPrefix.
	FieldNewest        = "newest"
	FieldNewestGateway = "newestGateway"
	FieldNewestState   = "newestState"
)

// Fields of events.
const (
	FieldEventBinding = "status.bindingName"
	FieldEventSession = "status.sessionName"
	FieldEventTask    = "status.taskName"
)

// Fields of deliveries.
const (
	FieldDeliveryBinding = "spec.bindingName"
	FieldDeliverySession = "spec.sessionName"
	FieldDeliveryTask    = "spec.taskName"
	FieldDeliveryEvent   = "spec.eventId"
)

// OfGateway returns how a gateway is written where those of all namespaces are told apart.
func OfGateway(namespace, name string) string { return namespace + "/" + name }

// oldest returns how a time is written so that earlier ones come first.
func oldest(t time.Time) string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(max(t.UnixMicro(), 0))))
}

// NewestPrefix returns what the values of a field FieldNewest… begin with: name is empty, or that of a gateway or a state. A walk from the
// prefix to NewestEnd of it finds all records, the newest first.
func NewestPrefix(namespace, name string) string {
	if name == "" {
		return namespace + "/"
	}
	return namespace + "/" + name + "/"
}

// NewestEnd returns what follows all values that begin with a NewestPrefix.
func NewestEnd(prefix string) string { return prefix[:len(prefix)-1] + string('/'+1) }

// newest returns how a time is written so that later ones come first.
func newest(t time.Time) string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(math.MaxInt64-max(t.UnixMicro(), 0))))
}

// facts are what records are found by.
type facts struct {
	gateway, binding, session, task, event, state string

	created time.Time
	open    bool
	// unrecorded is set for what was delivered and is not recorded yet.
	unrecorded bool
}

// recordFields returns the fields that both kinds of records have.
func recordFields[T resource.Object](of func(T) facts) []resource.Field[T] {
	indexed := func(path string, value func(T, facts) string) resource.Field[T] {
		return resource.Field[T]{Path: path, Indexed: true, Value: func(obj T) string { return value(obj, of(obj)) }}
	}
	return []resource.Field[T]{
		indexed(FieldState, func(_ T, f facts) string { return f.state }),
		indexed(FieldGateway, func(_ T, f facts) string { return f.gateway }),
		indexed(FieldOpen, func(_ T, f facts) string {
			if f.open || f.unrecorded {
				return "true"
			}
			return ""
		}),
		indexed(FieldOpenSession, func(_ T, f facts) string {
			if f.open {
				return f.session
			}
			return ""
		}),
		indexed(FieldNewest, func(obj T, f facts) string { return NewestPrefix(obj.GetNamespace(), "") + newest(f.created) }),
		indexed(FieldNewestGateway, func(obj T, f facts) string { return NewestPrefix(obj.GetNamespace(), f.gateway) + newest(f.created) }),
		indexed(FieldNewestState, func(obj T, f facts) string { return NewestPrefix(obj.GetNamespace(), f.state) + newest(f.created) }),
	}
}

// due returns a time of an entry, which may be unset.
func due(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
