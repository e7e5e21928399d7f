// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package record serves tasks/recording: what a run said and did in full, by the seq of its events. It is never a part of events, lists
// or watches, so that whoever may follow a task need not be somebody who may read what it said.
package record

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/wellformed"
	"github.com/platform-ai/platform/pkg/storage/recording"
)

// Pages of entries.
const (
	defaultPage = 500
	maxPage     = 5000
	maxQuery    = 256
)

// Records serves what is recorded of tasks.
type Records struct {
	Store *recording.Store
}

// Serve serves GET of tasks/recording, a page of the recorded events, and of tasks/recording/SEQ, one of them with its content. A page
// has the events after a seq (parameter after), or, with the parameter before, those before a seq, the newest first, and at most limit of
// them, of types if there are some (type, not with before and q); with a text (q) it has the events with which the text came.
func (r Records) Serve(_ context.Context, p stored.Parent, respond rest.Responder) (http.Handler, error) {
	return http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		answer, err := r.answer(req, p)
		if err != nil {
			respond.Error(err)
			return
		}
		respond.Object(http.StatusOK, answer)
	}), nil
}

func (r Records) answer(req *http.Request, p stored.Parent) (*v1alpha1.TaskRecording, error) {
	out := &v1alpha1.TaskRecording{ObjectMeta: metav1.ObjectMeta{Name: p.Object.Name, Namespace: p.Object.Namespace}}
	if p.Path != "" {
		seq, err := strconv.ParseInt(p.Path, 10, 64)
		if err != nil || seq < 1 {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("recording/%.64s: must be the seq of an event", p.Path))
		}
		e, err := r.Store.Entry(req.Context(), p.Object.UID, seq)
		if err != nil {
			return nil, err
		}
		if e == nil {
			return nil, apierrors.NewNotFound(v1alpha1.Resource("tasks/recording"), fmt.Sprintf("%s/%d", p.Object.Name, seq))
		}
		out.Entries = []v1alpha1.RecordedEntry{*e}
		return out, nil
	}
	out.ForkedFrom = source(p.Object)
	after, err := wellformed.Number(req, "after", 0)
	if err != nil {
		return nil, err
	}
	before, err := wellformed.Number(req, "before", math.MaxInt64)
	if err != nil {
		return nil, err
	}
	limit, err := wellformed.Number(req, "limit", defaultPage)
	if err != nil {
		return nil, err
	}
	if limit == 0 || limit > maxPage {
		limit = maxPage
	}
	query := wellformed.Query(req)
	var of []v1alpha1.EventType
	for _, t := range query["type"] {
		if !event.Known(v1alpha1.EventType(t)) {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("type: %.64q: is not an event type", t))
		}
		of = append(of, v1alpha1.EventType(t))
	}
	switch uid := p.Object.UID; {
	case query.Has("q"):
		if q := query.Get("q"); strings.TrimSpace(q) == "" || len(q) > maxQuery || !utf8.ValidString(q) {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("q: must be a text of at most %d bytes that is not blank", maxQuery))
		}
		out.Entries, out.Continue, err = r.Store.Search(req.Context(), uid, query.Get("q"), after, before, int(limit))
	case query.Has("before"):
		out.Entries, out.Bytes, out.PrevSeq, err = r.Store.Before(req.Context(), uid, after, before, int(limit))
	default:
		out.Entries, out.Bytes, out.Continue, err = r.Store.Page(req.Context(), uid, after, int(limit), of...)
	}
	return out, err
}

// source returns the event after which a fork goes on; nil for a task that is no fork.
func source(t *v1alpha1.Task) *v1alpha1.RecordedSource {
	a := t.Annotations
	seq, err := strconv.ParseInt(a[v1alpha1.AnnotationForkSourceSeq], 10, 64)
	if err != nil || a[v1alpha1.AnnotationForkSourceTask] == "" {
		return nil
	}
	return &v1alpha1.RecordedSource{Task: a[v1alpha1.AnnotationForkSourceTask], UID: types.UID(a[v1alpha1.AnnotationForkSourceUID]), Seq: seq}
}
