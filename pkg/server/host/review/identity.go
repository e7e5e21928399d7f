// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Identity serves the questions about identities.
func Identity(t authenticator.Token, serverAudiences []string) []resource.Resource {
	gv := authenticationv1.SchemeGroupVersion
	return []resource.Resource{
		&resource.Definition[*authenticationv1.TokenReview]{
			Unguarded: true,
			Resource:  gv.WithResource("tokenreviews"),
			Kind:      "TokenReview", Singular: "tokenreview", ClusterScoped: true,
			Shape: resource.Action[*authenticationv1.TokenReview]{Create: tokens{t, serverAudiences}.create},
		},
		WhoAmI(),
	}
}

// WhoAmI serves SelfSubjectReview, with which callers ask for their own
// identity.
func WhoAmI() resource.Resource {
	return &resource.Definition[*authenticationv1.SelfSubjectReview]{
		Unguarded: true,
		Resource:  authenticationv1.SchemeGroupVersion.WithResource("selfsubjectreviews"),
		Kind:      "SelfSubjectReview", Singular: "selfsubjectreview", ClusterScoped: true,
		Shape: resource.Action[*authenticationv1.SelfSubjectReview]{Create: whoAmI},
	}
}

type tokens struct {
	authenticator.Token
	serverAudiences []string
}

// create answers with the user of a token. The answer does not contain the
// token.
func (t tokens) create(ctx context.Context, r *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	text := r.Spec.Token
	if text == "" {
		return nil, apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	audiences := r.Spec.Audiences
	if len(audiences) == 0 {
		audiences = t.serverAudiences
	}
	resp, ok, err := t.AuthenticateToken(authenticator.WithAudiences(ctx, audiences), text)
	r.Spec.Token = ""
	r.Status = authenticationv1.TokenReviewStatus{Authenticated: ok}
	if err != nil {
		r.Status.Error = err.Error()
	}
	if ok && resp != nil && resp.User != nil {
		r.Status.User = userInfo(resp.User)
		r.Status.Audiences = resp.Audiences
	}
	return r, nil
}

func whoAmI(ctx context.Context, r *authenticationv1.SelfSubjectReview) (*authenticationv1.SelfSubjectReview, error) {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewBadRequest("no user present on request")
	}
	r.Status.UserInfo = userInfo(u)
	return r, nil
}

func userInfo(u user.Info) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	for k, v := range u.GetExtra() {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[k] = v
	}
	return info
}
