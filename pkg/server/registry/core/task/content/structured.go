// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/taskresult"
	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/delta"
)

// wantsParts reports whether a query asks for a result in parts.
func wantsParts(q url.Values) (bool, error) {
	const name = "structured"
	if !q.Has(name) {
		return false, nil
	}
	wants, err := strconv.ParseBool(q.Get(name))
	if err != nil {
		return false, apierrors.NewBadRequest(fmt.Sprintf("%s: %.32q: must be true or false", name, q.Get(name)))
	}
	return wants, nil
}

// structured returns a result in parts; nil if it has none. What the platform knows of the task's repository replaces what the run says
// about it.
func (r *Contents) structured(ctx context.Context, t *v1alpha1.Task, text string) (*v1alpha1.TaskStructuredResult, error) {
	parts := taskresult.Parse(text)
	if parts == nil && t.Spec.Workspace == nil {
		return nil, nil //nolint:nilnil // none
	}
	if parts == nil {
		parts = &v1alpha1.TaskStructuredResult{Version: taskresult.Version, Summary: text}
	}
	parts.Summary = clip.Text(parts.Summary, taskresult.MaxSummary)
	if t.Spec.Workspace == nil {
		return parts, nil
	}
	setDelivery(parts, t.Status.Delivery)
	if err := r.setChanges(ctx, t, parts); err != nil {
		return nil, err
	}
	return parts, r.setArtifacts(ctx, t, parts)
}

// setDelivery adds the commits and the branch.
func setDelivery(parts *v1alpha1.TaskStructuredResult, d *v1alpha1.TaskDelivery) {
	parts.BaseSHA, parts.HeadSHA, parts.PushBranch, parts.PushError = "", "", "", ""
	if d == nil {
		return
	}
	parts.BaseSHA, parts.HeadSHA, parts.PushBranch = d.StartingSHA, d.VerifiedRemoteSHA, d.Branch
	switch d.State { //nolint:exhaustive // with the others nothing has failed
	case v1alpha1.DeliveryCancelledBeforePublish, v1alpha1.DeliveryConflict, v1alpha1.DeliveryCredentialBlocked, v1alpha1.DeliveryPublicationOutcomeUnknown:
		parts.PushError = cmp.Or(d.Message, string(d.State))
	}
}

// setChanges adds what the run changed.
func (r *Contents) setChanges(ctx context.Context, t *v1alpha1.Task, parts *v1alpha1.TaskStructuredResult) error {
	parts.Files, parts.Diff = nil, ""
	_, changes, ok, err := r.o.Blobs.File(ctx, t.UID, deltaBlob)
	if err != nil || !ok {
		return err
	}
	if parts.Files, err = delta.Paths(bytes.NewReader(changes)); err != nil { // the publication says so, too
		return nil //nolint:nilerr // a worker sent something else
	}
	for i, name := range parts.Files {
		parts.Files[i] = strings.ToValidUTF8(name, "\uFFFD")
	}
	_, diff, _, err := r.o.Blobs.File(ctx, t.UID, artifactBlob+workspace.DiffName)
	parts.Diff = string(diff)
	return err
}

// setArtifacts lists what is stored, with the descriptions that the run gives.
func (r *Contents) setArtifacts(ctx context.Context, t *v1alpha1.Task, parts *v1alpha1.TaskStructuredResult) error {
	said := map[string]string{}
	for _, a := range parts.Artifacts {
		said[a.Filename] = a.Description
	}
	parts.Artifacts = nil
	files, err := r.o.Blobs.Files(ctx, t.UID)
	if err != nil {
		return err
	}
	for _, f := range files {
		if name, ok := strings.CutPrefix(f.Name, artifactBlob); ok && name != workspace.DiffName {
			parts.Artifacts = append(parts.Artifacts, v1alpha1.TaskResultArtifact{Filename: name, ContentType: f.ContentType, Size: f.Size, Description: said[name]})
		}
	}
	return nil
}
