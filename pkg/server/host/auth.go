// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"

	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authzunion "k8s.io/apiserver/pkg/authorization/union"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/auth/clientcert"
	"github.com/platform-ai/platform/pkg/server/host/rbac"
	"github.com/platform-ai/platform/pkg/server/host/token"
)

// Apply configures authentication and authorization. SecureServing must already
// be set; Apply configures which client certificates it asks for.
func (h *Host) Apply(g *genericapiserver.Config) error {
	if g.SecureServing == nil {
		return errors.New("client certificates need secure serving")
	}
	ca, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", h.pki.CAFile())
	if err != nil {
		return fmt.Errorf("client certificates: %w", err)
	}
	g.SecureServing.ClientCA = ca
	g.Authentication.APIAudiences = authenticator.Audiences{token.DefaultIssuer}
	g.Authentication.Authenticator = h.Authenticator(ca.VerifyOptions)
	g.Authorization.Authorizer = h.authz
	g.RuleResolver = h.view
	return nil
}

// Answer makes the host answer questions about permissions as a decides them. By default it answers as its own authorizer
// does. Call it before Resources.
func (h *Host) Answer(a authorizer.Authorizer) { h.authz = a }

// Authenticator accepts verified client certificates and ServiceAccount tokens.
// It also accepts anonymous requests, but only for the health checks and the
// version.
func (h *Host) Authenticator(certificates x509.VerifyOptionFunc) authenticator.Request {
	known := group.NewAuthenticatedGroupAdder(union.New(
		clientcert.New(certificates, x509.CommonNameUserConversion, clock.RealClock{}),
		bearertoken.New(h.tokens),
		websocket.NewProtocolAuthenticator(h.tokens),
	))
	var open []apiserverapi.AnonymousAuthCondition
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/version", "/version/"} {
		open = append(open, apiserverapi.AnonymousAuthCondition{Path: path})
	}
	return union.NewFailOnError(known, anonymous.NewAuthenticator(open))
}

func newAuthorizer(v *rbac.View) (authorizer.Authorizer, error) {
	masters := authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)
	return authzunion.New(
		authzunion.NamedAuthorizer{AuthorizerName: "masters", Authorizer: masters},
		authzunion.NamedAuthorizer{AuthorizerName: "rbac", Authorizer: v},
	)
}
