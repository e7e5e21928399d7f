// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	corev1alpha1 "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/turn"
)

// asideText is what a session keeps as the end of a turn that could not be read, and unreadText is in place of the user's message if
// that could not be read either.
const (
	asideText  = "[this turn ended without an answer: the server restarted and could not read what it had stored of the turn]"
	unreadText = "[a message that the server could not read after a restart]"
)

// unreadableError says that what is stored of a turn cannot be decoded.
type unreadableError struct{ err error }

// Error names the cause.
func (e *unreadableError) Error() string { return "a stored turn cannot be read: " + e.err.Error() }

// Unwrap returns the cause.
func (e *unreadableError) Unwrap() error { return e.err }

func unreadable(err error) bool {
	_, undecoded := errors.AsType[*unreadableError](err)
	_, corrupt := errors.AsType[*turn.CorruptError](err)
	return undecoded || corrupt
}

// decoded decodes the record of a stored turn.
func decoded(raw []byte) (*record, error) {
	r := &record{}
	if err := json.Unmarshal(raw, r); err != nil {
		return &record{ID: digits()}, &unreadableError{err}
	}
	return r, nil
}

// setAside ends a stored turn that cannot be read, so that it stops neither the server nor the next turn of its session. The rows
// stay until then, but no later start looks at them. Clients that follow a background turn get an error as its last frame.
func setAside(ctx context.Context, s *Service, uid types.UID, why error) error {
	data, err := json.Marshal(Envelope{Error: &Failure{Code: CodeInternal, Message: asideText}})
	if err != nil {
		return fmt.Errorf("encode a frame: %w", err)
	}
	if err := s.o.Turns.SetAside(ctx, uid, turn.Frame{Type: FrameError, Data: data}); err != nil {
		return err
	}
	s.metrics.aside.Inc()
	klog.FromContext(ctx).Error(why, "A stored turn of a chat was set aside", "sessionUID", uid)
	return nil
}

// tellAside says in the session of a turn that the turn was set aside. r is what could be read of its record.
func (s *Service) tellAside(ctx context.Context, uid types.UID, r *record) error {
	in := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: r.Session, Namespace: r.Namespace, UID: uid}, Spec: v1alpha1.SessionSpec{SessionType: v1alpha1.SessionTypeChat}}
	if r.Session == "" {
		found, err := sessionOf(ctx, s.own.CoreV1alpha1(), uid)
		if found == nil || err != nil {
			return err
		}
		in, r.Spec.Message = found, unreadText
	}
	r.End = &ending{Status: &v1alpha1.ChatStatus{Message: asideText, Usage: &v1alpha1.ChatUsage{}}}
	err := s.keep(ctx, in, r, nil)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the session is gone
	}
	return err
}

// sessionOf finds a session by its UID alone; nil if there is none.
func sessionOf(ctx context.Context, api corev1alpha1.SessionsGetter, uid types.UID) (*v1alpha1.Session, error) {
	for next := ""; ; {
		page, err := api.Sessions("").List(ctx, metav1.ListOptions{Limit: 500, Continue: next})
		if err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		for i := range page.Items {
			if page.Items[i].UID == uid {
				return &page.Items[i], nil
			}
		}
		if next = page.Continue; next == "" {
			return nil, nil //nolint:nilnil // it was deleted
		}
	}
}
