// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/wellformed"
)

// chats are the sessions in which turns run.
type chats struct{ *Resource }

// turnEnd is how long a deletion or cancellation waits for the end of a chat's turn.
const turnEnd = 5 * time.Second

// end cancels the turn of a chat that runs in the session, and waits for its end.
func (c chats) end(ctx context.Context, s *v1alpha1.Session) error {
	if c.endTurn == nil || s.Spec.SessionType != v1alpha1.SessionTypeChat {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, turnEnd)
	defer cancel()
	if !c.endTurn(ctx, s) {
		return apierrors.NewConflict(v1alpha1.Resource("sessions"), s.Name, errors.New("the turn of the chat was cancelled and has not ended yet; try again"))
	}
	return nil
}

// cancel ends the turn of a chat that runs in the session, also one in the background, and answers with the session. It does
// nothing if none runs. What was said before stays.
func (c chats) cancel(_ context.Context, p parent, respond rest.Responder) (http.Handler, error) {
	if p.Object.Spec.SessionType != v1alpha1.SessionTypeChat {
		return nil, apierrors.NewBadRequest("only a chat has turns; cancel the task that uses the session")
	}
	return http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		if len(wellformed.Query(req)["dryRun"]) == 0 {
			if err := c.end(req.Context(), p.Object); err != nil {
				respond.Error(err)
				return
			}
		}
		s, err := p.Reload(req.Context())
		if err != nil {
			respond.Error(err)
			return
		}
		respond.Object(http.StatusOK, s)
	}), nil
}
