// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/fulltext"
)

// existing returns the session with a name; nil if there is none.
func (r *Resource) existing(ctx context.Context, name string) (*v1alpha1.Session, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // no session
	}
	s, err := r.session(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no session
	}
	return s, err
}

// uidOf returns the UID of the session that a memory names; empty if there is no such session. It is also empty if the
// session cannot be read. The first recall, or the end of the session, then records it.
func (r *Resource) uidOf(ctx context.Context, m *v1alpha1.Memory) types.UID {
	s, err := r.existing(ctx, m.Spec.SessionName)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("The session of a memory was not recorded", "memory", klog.KObj(m), "err", err)
	}
	if err != nil || s == nil {
		return ""
	}
	return s.UID
}

// Bind records a deleted session in the memories that name it and have none recorded, so that a later session of the
// same name does not recall them.
func (r *Resource) Bind(ctx context.Context, s *v1alpha1.Session) {
	ctx = request.WithNamespace(ctx, s.Namespace)
	if err := r.bind(ctx, s); err != nil {
		klog.FromContext(ctx).Error(err, "Memories of a deleted session may be recalled by a new session of its name", "session", klog.KObj(s))
	}
}

func (r *Resource) bind(ctx context.Context, s *v1alpha1.Session) error {
	hits, err := r.index.Search(fulltext.Query{Space: s.Namespace, Marks: []string{markSession + s.Name}})
	if err != nil {
		return err
	}
	for _, h := range hits {
		if !strings.HasSuffix(h.Group, groupEnd(s.Name)) {
			continue // it has a session
		}
		_, err := r.stored.UpdateStored(byServer(ctx), h.Name, func(m *v1alpha1.Memory) error {
			if m.Spec.SessionName == s.Name && m.Status.SessionUID == "" {
				m.Status.SessionUID = s.UID
			}
			return nil
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
