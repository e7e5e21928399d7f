// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// eventLife is how long an Event is kept after it was last written, as in
// Kubernetes.
const eventLife = time.Hour

// Events serves Kubernetes' short-lived events about objects, which are
// distinct from the platform's execution events.
var Events = &resource.Definition[*corev1.Event]{
	Unguarded: true,
	Resource:  corev1.SchemeGroupVersion.WithResource("events"),
	Kind:      "Event", Singular: "event", ShortNames: []string{"ev"},
	Fields: []resource.Field[*corev1.Event]{
		{Path: "involvedObject.kind", Value: func(e *corev1.Event) string { return e.InvolvedObject.Kind }},
		{Path: "involvedObject.namespace", Value: func(e *corev1.Event) string { return e.InvolvedObject.Namespace }},
		{Path: "involvedObject.name", Value: func(e *corev1.Event) string { return e.InvolvedObject.Name }},
		{Path: "involvedObject.uid", Value: func(e *corev1.Event) string { return string(e.InvolvedObject.UID) }},
		{Path: "involvedObject.apiVersion", Value: func(e *corev1.Event) string { return e.InvolvedObject.APIVersion }},
		{Path: "involvedObject.resourceVersion", Value: func(e *corev1.Event) string { return e.InvolvedObject.ResourceVersion }},
		{Path: "involvedObject.fieldPath", Value: func(e *corev1.Event) string { return e.InvolvedObject.FieldPath }},
		{Path: "reason", Value: func(e *corev1.Event) string { return e.Reason }},
		{Path: "reportingComponent", Value: func(e *corev1.Event) string { return e.ReportingController }},
		{Path: "source", Value: eventSource},
		{Path: "type", Value: func(e *corev1.Event) string { return e.Type }},
	},
	WholeTable: true,
	Columns: []resource.Column[*corev1.Event]{
		{Name: "Last Seen", Description: "When the event was last seen.", Value: func(e *corev1.Event) any { return lastSeen(e) }},
		{Name: "Type", Description: "Normal or Warning.", Value: func(e *corev1.Event) any { return e.Type }},
		{Name: "Reason", Description: "Why the event was made, in one word.", Value: func(e *corev1.Event) any { return e.Reason }},
		{Name: "Object", Description: "The object the event is about.", Value: func(e *corev1.Event) any {
			return strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name
		}},
		{Name: "Source", Description: "Who reports.", Wide: true, Value: func(e *corev1.Event) any { return eventSource(e) }},
		{Name: "Message", Description: "What happened.", Value: func(e *corev1.Event) any { return strings.TrimSpace(e.Message) }},
		{Name: "First Seen", Description: "When it was first seen.", Wide: true, Value: func(e *corev1.Event) any { return firstSeen(e) }},
		{Name: "Count", Type: "integer", Description: "How often it was seen.", Wide: true, Value: func(e *corev1.Event) any { return count(e) }},
		{Name: "Name", Description: "The name of the event.", Wide: true, Value: func(e *corev1.Event) any { return e.Name }},
	},
	Shape: resource.Kept[*corev1.Event]{
		UnconditionalUpdate: true,
		Validate:            validateEvent,
		TTL:                 eventLife,
	},
}

func eventSource(e *corev1.Event) string {
	if e.Source.Component != "" {
		return e.Source.Component
	}
	return e.ReportingController
}

func lastSeen(e *corev1.Event) metav1.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return metav1.NewTime(e.Series.LastObservedTime.Time)
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.NewTime(e.EventTime.Time)
	}
	return e.FirstTimestamp
}

func firstSeen(e *corev1.Event) metav1.Time {
	if e.FirstTimestamp.IsZero() {
		return metav1.NewTime(e.EventTime.Time)
	}
	return e.FirstTimestamp
}

func count(e *corev1.Event) int64 {
	if e.Series != nil {
		return int64(e.Series.Count)
	}
	return int64(max(e.Count, 1))
}

// validateEvent requires an event to be in the namespace of its object. Events
// about cluster-scoped objects must be in the namespace default.
func validateEvent(_ context.Context, e *corev1.Event) field.ErrorList {
	want := e.InvolvedObject.Namespace
	if want == "" {
		want = metav1.NamespaceDefault
	}
	if e.Namespace == want || e.InvolvedObject.Namespace == "" && e.Namespace == metav1.NamespaceSystem {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"), e.InvolvedObject.Namespace,
		fmt.Sprintf("does not match event.namespace %q", e.Namespace))}
}
