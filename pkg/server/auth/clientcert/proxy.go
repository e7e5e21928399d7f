// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package clientcert

import (
	"crypto/x509"
	"net/http"
	"slices"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"
)

// Proxied authenticates requests that a proxy of the cluster forwards, such as kube-apiserver, by the headers that name
// the caller. They count only with a client certificate that the authorities of c signed for one of its allowed names.
// It asks next about all other requests.
func Proxied(c *authenticatorfactory.RequestHeaderConfig, next authenticator.Request, clk clock.PassiveClock) authenticator.Request {
	name := x509request.UserConversionFunc(func(chain []*x509.Certificate) (*authenticator.Response, bool, error) {
		return &authenticator.Response{User: &user.DefaultInfo{Name: chain[0].Subject.CommonName}}, true, nil
	})
	return &proxied{
		proxy:   New(c.CAContentProvider.VerifyOptions, name, clk),
		allowed: c.AllowedClientNames,
		headers: group.NewAuthenticatedGroupAdder(headerrequest.NewDynamic(c.UsernameHeaders, c.UIDHeaders, c.GroupHeaders, c.ExtraHeaderPrefixes)),
		next:    next,
	}
}

type proxied struct {
	proxy         *Authenticator
	allowed       headerrequest.StringSliceProvider // empty: all names
	headers, next authenticator.Request
}

// AuthenticateRequest implements authenticator.Request.
func (p *proxied) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	proxy, ok, err := p.proxy.AuthenticateRequest(r)
	if err != nil || !ok { // next says why, if it also refuses the certificate
		return p.next.AuthenticateRequest(r)
	}
	if names := p.allowed.Value(); len(names) > 0 && !slices.Contains(names, proxy.User.GetName()) {
		return p.next.AuthenticateRequest(r)
	}
	if resp, ok, err := p.headers.AuthenticateRequest(r); err != nil || ok {
		return resp, ok, err
	}
	return p.next.AuthenticateRequest(r)
}
