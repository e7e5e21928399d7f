// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package record serves tasks/recording: what a run said and did in full, by the seq of its events. It is never a part of events, lists
// or watches, so that whoever may follow a task need not be somebody who may read what it said.
package record

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/wellformed"
	"github.com/platform-ai/platform/pkg/storage/recording"
)

// Pages of entries.
const (
	defaultPage = 500
	maxPage     = 5000
)

// Records serves what is recorded of tasks.
type Records struct {
	Store *recording.Store
}

// Serve serves GET of tasks/recording, a page of the recorded events (parameters after, a seq, and limit), and of
// tasks/recording/SEQ, one of them with its content.
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
	after, err := wellformed.Number(req, "after", 0)
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
	out.Entries, out.Bytes, out.Continue, err = r.Store.Page(req.Context(), p.Object.UID, after, int(limit))
	return out, err
}
