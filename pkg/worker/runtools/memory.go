// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runtools

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// StoredFirst returns the tools whose call must be in the log before it is made, because the server takes the origin of a
// proposal from there.
func StoredFirst() []string {
	var names []string
	for _, t := range builtin.In(builtin.Runs) {
		if t.Proposes {
			names = append(names, t.Name)
		}
	}
	return names
}

// Recall searches memories. A search changes nothing but counters, so it is repeated while the server is away.
func Recall(ctx context.Context, r *runner.Run, spec v1alpha1.MemorySearchSpec) (found []v1alpha1.MemoryMatch, err error) {
	err = client.Repeat(ctx, r.Clock, func(ctx context.Context) error {
		out, err := r.API.CoreV1alpha1().MemorySearches(r.Task.Namespace).Create(ctx, &v1alpha1.MemorySearch{Spec: spec}, metav1.CreateOptions{})
		if err == nil {
			found = out.Status.Items
		}
		return err
	})
	return found, err
}

// recallTool carries out recall_memory.
func (r run) recallTool(ctx context.Context, spec v1alpha1.MemorySearchSpec) ([]v1alpha1.MemoryMatch, error) {
	spec.Query = r.Scrub(spec.Query)
	found, err := Recall(ctx, r.Run, spec)
	return found, toolError(err)
}

// searchTranscript carries out search_transcript.
func (r run) searchTranscript(ctx context.Context, spec v1alpha1.TranscriptSearchSpec) (found []v1alpha1.TranscriptMatch, err error) {
	spec.Query = r.Scrub(spec.Query)
	err = client.Repeat(ctx, r.Clock, func(ctx context.Context) error {
		out, err := r.API.CoreV1alpha1().TranscriptSearches(r.Task.Namespace).Create(ctx, &v1alpha1.TranscriptSearch{Spec: spec}, metav1.CreateOptions{})
		if err == nil {
			found = out.Status.Items
		}
		return err
	})
	return found, toolError(err)
}

// propose carries out remember and propose_memory. It waits while the server is away. The name is chosen here, so a
// repeated request makes one proposal.
func (r run) propose(ctx context.Context, spec v1alpha1.MemoryProposalSpec) (made *v1alpha1.MemoryProposal, err error) {
	for _, s := range []*string{&spec.Title, &spec.SkillName, &spec.Description, &spec.Content, &spec.Patch} {
		*s = r.Scrub(*s)
	}
	p := &v1alpha1.MemoryProposal{ObjectMeta: metav1.ObjectMeta{Name: "mprop-" + string(uuid.NewUUID())}, Spec: spec}
	proposals, repeated := r.API.CoreV1alpha1().MemoryProposals(r.Task.Namespace), false
	err = client.Repeat(ctx, r.Clock, func(ctx context.Context) (err error) {
		made, err = proposals.Create(ctx, p, metav1.CreateOptions{})
		if repeated && apierrors.IsAlreadyExists(err) {
			made, err = proposals.Get(ctx, p.Name, metav1.GetOptions{})
		}
		repeated = true
		return err
	})
	return made, toolError(err)
}

// toolError describes an error of the API to the model.
func toolError(err error) error {
	if err == nil {
		return nil
	}
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		return tool.Errorf(tool.TypeUnavailable, "the server cannot be reached").Suggest("go on without it")
	}
	switch s := status.Status(); s.Code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return tool.InvalidArguments("%s", s.Message)
	case http.StatusForbidden:
		return tool.Errorf(tool.TypePermissionDenied, "%s", s.Message)
	default:
		return tool.Errorf(tool.TypeUnavailable, "%s", fmt.Sprintf("the server answered %d", s.Code)).Suggest("go on without it")
	}
}
