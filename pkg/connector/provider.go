// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Validate returns what is wrong with a provider beyond what the markers of its type say. It does not look for the Secret. No error
// repeats a value that may be a credential.
func Validate(p *v1alpha1.ConnectorProvider) field.ErrorList {
	var errs field.ErrorList
	if len(p.Name) > validation.LabelValueMaxLength {
		errs = append(errs, field.TooLong(field.NewPath("metadata", "name"), p.Name, validation.LabelValueMaxLength))
	}
	spec := field.NewPath("spec")
	errs = append(errs, checkOAuth(&p.Spec.OAuth, spec.Child("oauth"))...)
	for i := range p.Spec.Tools {
		errs = append(errs, checkTool(&p.Spec.Tools[i], &p.Spec.OAuth, spec.Child("tools").Index(i))...)
	}
	return errs
}

func checkOAuth(o *v1alpha1.ConnectorOAuth, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	add := func(name string, err error) {
		if err != nil {
			errs = append(errs, secretless(p.Child(name), "%v", err))
		}
	}
	if o.Issuer != "" {
		err := CheckAddress(o.Issuer)
		if err == nil && strings.Contains(o.Issuer, "?") {
			err = errors.New("must not have a query") // RFC 8414, section 2
		}
		add("issuer", err)
	}
	add("authorizeURL", CheckAddress(o.AuthorizeURL))
	add("tokenURL", CheckAddress(o.TokenURL))
	if o.RevocationURL != "" {
		err := CheckAddress(o.RevocationURL)
		if err == nil && !SameOrigin(o.RevocationURL, o.TokenURL) {
			err = errors.New("must have the host and the port of tokenURL, because the client's secret is sent there")
		}
		add("revocationURL", err)
	}
	errs = append(errs, checkClientID(o.ClientID, p.Child("clientID"))...)
	errs = append(errs, checkScopes(&o.Scopes, p.Child("scopes"))...)
	return append(errs, checkParameters(o, p.Child("additionalAuthorizeParameters"))...)
}
