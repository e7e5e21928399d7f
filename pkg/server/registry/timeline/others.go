// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/wellformed"
)

// maxParts is how many timelines one stream has at most.
const maxParts = 64

// Others returns the timeline of a task or session that a request names besides the one of its path. It makes sure that
// the caller may read that stream. Errors are API errors.
type Others func(ctx context.Context, kind v1alpha1.StreamType, namespace, name string) (*Timeline, error)

// Join permits streams of several tasks and sessions. It must be called before the first request.
func (s *Server) Join(o Others) { s.others = o }

// several reports whether a request asks for a stream of more than one timeline.
func several(v url.Values) bool { return v.Has("tasks") || v.Has("sessions") }

// parts returns the timelines of a request: t, and those that the parameters tasks and sessions name, in this order.
// Each is a name, or a name and a position with a colon between them.
func (s *Server) parts(req *http.Request, t *Timeline, after int64) ([]Part, error) {
	list := []Part{{t, after}}
	seen := map[string]bool{string(t.Type) + " " + t.Name: true}
	for _, of := range []struct {
		param string
		kind  v1alpha1.StreamType
	}{{"tasks", v1alpha1.StreamTask}, {"sessions", v1alpha1.StreamSession}} {
		for one := range strings.SplitSeq(strings.Join(wellformed.Query(req)[of.param], ","), ",") {
			if one == "" {
				continue
			}
			name, at, placed := strings.Cut(one, ":")
			p := Part{}
			if placed {
				var err error
				if p.After, err = position(of.param+": "+clip(name), at); err != nil {
					return nil, err
				}
			}
			if seen[string(of.kind)+" "+name] {
				return nil, apierrors.NewBadRequest(fmt.Sprintf("%s: %q: is named twice", of.param, clip(name)))
			}
			seen[string(of.kind)+" "+name] = true
			if len(list) == maxParts {
				return nil, apierrors.NewBadRequest(fmt.Sprintf("%s: a stream has at most %d tasks and sessions, that of the path included", of.param, maxParts))
			}
			var err error
			if p.Timeline, err = s.others(req.Context(), of.kind, t.Namespace, name); err != nil {
				return nil, err
			}
			list = append(list, p)
		}
	}
	return list, nil
}
