// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package repositorymonitor

import (
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost/operation"
	"github.com/platform-ai/platform/pkg/server/hostaccess"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

const (
	// maxCall is the maximum length of a call as JSON, in bytes.
	maxCall = 1 << 20
	// maxCallID is the maximum length of the id of a call, in bytes.
	maxCallID = 256
)

// call serves POST of codehost: a call of the controller on the repository of a monitor. Operations that read use spec.readCredentialRef,
// those that write, and those that only a collaborator may make, spec.forgeCredentialRef.
func (r *Resource) call(ctx context.Context, p resource.Parent[*v1alpha1.RepositoryMonitor], obj runtime.Object) (runtime.Object, error) {
	posted, ok := obj.(*v1alpha1.MonitorCodeHostCall)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a MonitorCodeHostCall, not %T", obj))
	}
	m := p.Object
	known, ok := operation.Find(posted.Operation)
	switch {
	case !ok || posted.Operation == operation.CreatePullRequest:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("operation: there is no operation %.64q", posted.Operation))
	case posted.CallID == "" || len(posted.CallID) > maxCallID:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("callId: must have from 1 to %d bytes", maxCallID))
	case m.DeletionTimestamp != nil:
		return nil, apierrors.NewConflict(v1alpha1.Resource("repositorymonitors"), m.Name, errors.New("the monitor is being deleted"))
	}
	if err := checkSHA("headSHA", posted.HeadSHA); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	key, err := r.o.Access.CallKey("monitor", m.UID, posted.CallID)
	if err != nil {
		return nil, err
	}
	to := &hostaccess.Target{Owner: "monitor " + m.Name, Namespace: m.Namespace, URL: m.Spec.RepoURL, Provider: string(m.Spec.Provider)}
	ref := m.Spec.ReadCredentialRef
	if known.Writes || known.Collaborates {
		ref = m.Spec.ForgeCredentialRef
	}
	if ref != nil {
		to.Secret, to.Key = types.NamespacedName{Namespace: m.Namespace, Name: ref.Name}, ref.Key
	}
	out := posted.DeepCopy()
	out.ObjectMeta, out.Result, out.Failure = metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace}, nil, nil
	var answer hostaccess.Answer
	switch {
	case ref == nil && known.Writes:
		err = &operation.Error{Reason: v1alpha1.CodeHostDenied, Message: "the monitor has no credential for this (spec.forgeCredentialRef)"}
	case !p.DryRun:
		answer, err = r.o.Access.Do(ctx, to, operation.Call{Tool: posted.Operation, Arguments: posted.Arguments.Raw, Key: key, HeadSHA: posted.HeadSHA})
	}
	if out.Failure, err = hostaccess.FailureOf(err); err != nil {
		return nil, err
	}
	if answer.Result != nil {
		out.Result = &apiextensionsv1.JSON{Raw: answer.Result}
	}
	return out, nil
}
