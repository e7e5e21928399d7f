// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/providers"
	"github.com/platform-ai/platform/pkg/codehost/pullrequest"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/workspace"
)

// Pull sees to it that there is exactly one pull request for a publication.
func Pull(ctx context.Context, o workspace.PullOrder) (*workspace.Pulled, error) {
	at, err := codehost.ParseAddress(o.URL)
	if err != nil {
		return nil, pullFailure(err)
	}
	remote := codehost.Remote{URL: o.URL, Token: o.Token, Transport: egress.Guard{Allow: o.Allow}.Transport()}
	if o.Token != "" {
		remote.Transport = o.Hosts.Transport(remote.Transport)
	}
	host, err := providers.Open(ctx, remote, o.Provider)
	if err != nil {
		return nil, pullFailure(err)
	}
	a, err := pullrequest.Reconcile(ctx, host, pullrequest.Order{
		Key: o.Key, Generation: o.Generation, Head: o.Head, HeadSHA: o.HeadSHA, Base: o.Base, Title: o.Title, Body: o.Body, Since: o.Since,
	})
	if err != nil {
		return nil, pullFailure(err)
	}
	return &workspace.Pulled{Outcome: string(a.Outcome), How: string(a.How), Repository: at.Owner + "/" + at.Name, Receipt: a.Receipt}, nil
}

// pullFailure says what an error of a code host means for the publication.
func pullFailure(err error) *workspace.FailedError {
	f := &workspace.FailedError{Reason: v1alpha1.ReasonPullRequestNotOpened, Message: err.Error()}
	switch {
	case errors.Is(err, codehost.ErrCredential), errors.Is(err, codehost.ErrNotFound), errors.Is(err, codehost.ErrRedirect), errors.Is(err, egress.ErrRefused):
		f.Reason = v1alpha1.ReasonCredentialBlocked
	case errors.Is(err, codehost.ErrUnavailable), errors.Is(err, codehost.ErrRateLimited), errors.Is(err, pullrequest.ErrUnknown):
		f.Temporary = true
	}
	return f
}
