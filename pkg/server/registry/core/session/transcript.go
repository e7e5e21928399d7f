// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/wellformed"
	"github.com/platform-ai/platform/pkg/storage/transcript"
)

const (
	// maxBody is the maximum size of one append, in bytes.
	maxBody = 15 << 20
	// defaultLimit and maxLimit are numbers of messages in one answer.
	defaultLimit = 100
	maxLimit     = 500
	// MaxTaskBytes bounds the transcript of a session of tasks or of a gateway,
	// in bytes. The API documents a limit for chats only. Tasks read the newest
	// messages, however many came before; the rest is a record for people and
	// may be long. The limit corresponds to about 16,000 messages of 1 KiB.
	MaxTaskBytes = 16 << 20
)

// DefaultChatBytes bounds the transcript of a chat, in bytes.
const DefaultChatBytes = 512_000

// transcript serves GET and POST of the messages.
func (r *Resource) transcript(_ context.Context, p parent, respond rest.Responder) (http.Handler, error) {
	if p.Path != "" {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("sessions"), "transcript/"+p.Path)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodGet && wellformed.Query(req).Has("format") {
			if err := r.writeLines(w, req, p); err != nil {
				respond.Error(apiError(p.Object, err))
			}
			return
		}
		code, serve := http.StatusOK, r.readMessages
		if req.Method == http.MethodPost {
			code, serve = http.StatusCreated, r.appendMessages
		}
		out, err := serve(w, req, p)
		if err != nil {
			respond.Error(apiError(p.Object, err))
			return
		}
		respond.Object(code, out)
	}), nil
}

// readMessages returns a page from the beginning, or the newest messages.
func (r *Resource) readMessages(_ http.ResponseWriter, req *http.Request, p parent) (*v1alpha1.SessionTranscript, error) {
	ctx := req.Context()
	q, err := parseQuery(wellformed.Query(req))
	if err != nil {
		return nil, err
	}
	var page transcript.Page
	switch {
	case q.newest > 0 && q.through != "" && p.Object.Spec.SessionType == v1alpha1.SessionTypeGateway:
		page, err = r.answered(ctx, p.Object, q)
	case q.newest > 0:
		page, err = r.transcripts.Newest(ctx, p.Object.UID, q.newest, q.through)
	default:
		page, err = r.transcripts.Page(ctx, p.Object.UID, q.after, q.limit, q.through)
	}
	if errors.Is(err, transcript.ErrNotFound) {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("messages"), q.through)
	}
	if err != nil {
		return nil, err
	}
	out := answer(page.Messages, page.Info)
	if page.More {
		out.Continue = strconv.FormatInt(page.Messages[len(page.Messages)-1].Order, 10)
	}
	return out, nil
}

func answer(messages []v1alpha1.SessionMessage, info transcript.Info) *v1alpha1.SessionTranscript {
	if messages == nil {
		messages = []v1alpha1.SessionMessage{}
	}
	return &v1alpha1.SessionTranscript{MessageCount: info.Messages, Truncated: info.Truncated(), Items: messages}
}

// query holds the parameters of a read.
type query struct {
	after         int64
	limit, newest int
	through       string
}

// parseQuery parses limit, after or continue, newest and through. A continue
// token is the order of the last message that was returned.
func parseQuery(v url.Values) (query, error) {
	var wrong []string
	number := func(name string, low, high, otherwise int64) int64 {
		s := v.Get(name)
		if s == "" {
			return otherwise
		}
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < low || n > high {
			wrong = append(wrong, fmt.Sprintf("%s: %q: must be a number from %d to %d", name, s, low, high))
		}
		return n
	}
	q := query{
		through: v.Get("through"),
		limit:   int(number("limit", 1, maxLimit, defaultLimit)),
		newest:  int(number("newest", 1, maxLimit, 0)),
		after:   number("after", 0, math.MaxInt64, number("continue", 0, math.MaxInt64, 0)),
	}
	if len(q.through) > maxID {
		wrong = append(wrong, fmt.Sprintf("through: must be at most %d bytes", maxID))
	}
	if v.Get("after") != "" && v.Get("continue") != "" {
		wrong = append(wrong, "continue: cannot be used together with after")
	}
	for _, other := range []string{"limit", "after", "continue"} {
		if v.Get("newest") != "" && v.Get(other) != "" {
			wrong = append(wrong, "newest: cannot be used together with "+other)
		}
	}
	if len(wrong) > 0 {
		return query{}, apierrors.NewBadRequest(strings.Join(wrong, "; "))
	}
	return q, nil
}

// appendMessages adds messages and updates the counts in the session's status.
func (r *Resource) appendMessages(w http.ResponseWriter, req *http.Request, p parent) (*v1alpha1.SessionTranscript, error) {
	ctx, s := req.Context(), p.Object
	data, err := resource.ReadBody(w, req, maxBody)
	if err != nil {
		return nil, err
	}
	config, err := r.stored.Config()
	if err != nil {
		return nil, err
	}
	kind := v1alpha1.SchemeGroupVersion.WithKind("SessionTranscript")
	obj, err := resource.DecodeBody(config.Scheme, req, data, kind)
	if err != nil {
		return nil, err
	}
	body, ok := obj.(*v1alpha1.SessionTranscript)
	if !ok {
		return nil, apierrors.NewBadRequest("the body must be a SessionTranscript, not a " + obj.GetObjectKind().GroupVersionKind().Kind)
	}
	if errs := validateMessages(body.Items); len(errs) > 0 {
		return nil, apierrors.NewInvalid(kind.GroupKind(), s.Name, errs)
	}
	if s.DeletionTimestamp != nil {
		return nil, apierrors.NewConflict(v1alpha1.Resource("sessions"), s.Name, errors.New("the session is being deleted"))
	}
	if slices.Contains(wellformed.Query(req)["dryRun"], metav1.DryRunAll) {
		info, err := r.transcripts.Info(ctx, s.UID)
		return answer(body.Items, info), err
	}
	stored, err := r.transcripts.AppendTo(ctx, Place(s), r.conversations.limitOf(s), body.Items)
	if err != nil {
		return nil, err
	}
	info, err := r.count(ctx, p)
	if err != nil {
		return nil, err
	}
	return answer(stored, info), nil
}

func (c Conversations) limitOf(s *v1alpha1.Session) int64 {
	if s.Spec.SessionType == v1alpha1.SessionTypeChat {
		return cmp.Or(c.MaxBytes, DefaultChatBytes)
	}
	return MaxTaskBytes
}

// count writes the number of messages into the session's status. If a crash
// prevents that, the next append corrects it, even if that append is a repeated
// one.
func (r *Resource) count(ctx context.Context, p parent) (info transcript.Info, err error) {
	// The context of a connected request does not name the namespace.
	ctx = request.WithNamespace(ctx, p.Object.Namespace)
	_, err = p.Update(ctx, func(s *v1alpha1.Session) error {
		info, err = r.transcripts.Info(ctx, s.UID)
		s.Status.MessageCount = int32(min(info.Messages, math.MaxInt32))
		s.Status.UpdatedAt = &metav1.Time{Time: r.clock.Now()}
		return err
	})
	return info, err
}

// apiError turns an error of the transcript store into an API error.
func apiError(s *v1alpha1.Session, err error) error {
	switch {
	case errors.Is(err, transcript.ErrTaken):
		return apierrors.NewConflict(v1alpha1.Resource("sessions/transcript"), s.Name, err)
	case errors.Is(err, transcript.ErrName), errors.Is(err, transcript.ErrSecretID):
		return apierrors.NewBadRequest(err.Error())
	}
	return err
}
