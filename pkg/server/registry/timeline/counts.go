// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/wellformed"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// CountsPath is the path of counts below the events of a task or a session.
const CountsPath = "counts"

// Answer answers a get on the events of a task or a session, or on their counts, which path says. It is the only path below them.
func (s *Server) Answer(req *http.Request, t *Timeline, path string, respond rest.Responder) {
	var out runtime.Object
	var err error
	switch path {
	case "":
		out, err = s.Page(req, t)
	case CountsPath:
		out, err = s.Counts(req, t)
	default:
		err = apierrors.NewNotFound(v1alpha1.Resource(t.resource()+"/events"), path)
	}
	if err != nil {
		respond.Error(err)
		return
	}
	respond.Object(http.StatusOK, out)
}

// Counts answers a get with the number of events, in total and in periods. Errors in the request are API errors.
func (s *Server) Counts(req *http.Request, t *Timeline) (*v1alpha1.ExecutionEventCounts, error) {
	q, err := parse(req)
	if err != nil {
		return nil, err
	}
	buckets := 0
	if v := wellformed.Query(req); v.Has("buckets") {
		buckets, err = strconv.Atoi(v.Get("buckets"))
		if err != nil || !number(v.Get("buckets")) || buckets < 1 || buckets > eventlog.MaxBuckets {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("buckets: %q: must be a number from 1 to %d", clip(v.Get("buckets")), eventlog.MaxBuckets))
		}
	}
	var c *eventlog.Counts
	if t.session() {
		c, err = s.opts.Log.SessionCount(req.Context(), t.Namespace, t.Name, q.types, buckets)
	} else {
		c, err = s.opts.Log.Count(req.Context(), t.stream(), q.types, buckets)
	}
	if err != nil {
		return nil, err
	}
	out := &v1alpha1.ExecutionEventCounts{
		StreamNamespace: t.Namespace, StreamType: t.Type, StreamID: t.Name,
		OldestSeq: c.Head.Oldest, LatestSeq: c.Head.LatestSeq, Total: c.Total, Approximate: c.Approximate,
		Types: c.Types, Severities: c.Severities, FirstAt: micro(c.First), LastAt: micro(c.Last),
	}
	for _, b := range c.Buckets {
		out.Buckets = append(out.Buckets, v1alpha1.ExecutionEventBucket{
			From: metav1.NewMicroTime(b.From), To: metav1.NewMicroTime(b.To), Seq: b.Seq, Total: b.Total, Types: b.Types, Severities: b.Severities,
		})
	}
	return out, nil
}

func micro(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewMicroTime(t))
}
