// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/gateway"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// Probe looks at the Secrets of a gateway and asks its adapter how it is and what it can do.
func (h *Hub) Probe(ctx context.Context, g *v1alpha1.Gateway) (*v1alpha1.GatewayProbe, error) {
	p := &v1alpha1.GatewayProbe{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name}, Generation: g.Generation}
	if h.o.Off {
		p.Message = "gateways are switched off (--gateway-enabled)"
		return p, nil
	}
	in, inErr := h.inbound(ctx, g)
	if inErr == nil {
		h.tokens.get(g) // so that a rotation is noticed from now on
		h.tokens.set(g, in)
		p.InboundAuthSecretVersion = in.version
	}
	a, outErr := h.adapter(ctx, g)
	if outErr == nil {
		p.OutboundAuthSecretVersion, p.Endpoint = a.version, a.endpoint
	}
	if err := errors.Join(inErr, outErr); err != nil {
		p.Message = clip.Text(err.Error(), maxMessage)
		return p, nil
	}
	p.Resolved = true
	ctx, cancel := context.WithTimeout(ctx, h.o.Limits.DeliveryTimeout)
	defer cancel()
	capabilities, err := h.question(ctx, g, a)
	p.Capabilities = capabilities
	if p.Connected = err == nil; err != nil {
		p.Message = clip.Text(err.Error(), maxMessage)
		return p, nil
	}
	a.down.Store(0)
	return p, nil
}

// question asks an adapter how it is and what it can do, and returns what is wrong with that.
func (h *Hub) question(ctx context.Context, g *v1alpha1.Gateway, a *adapter) (*v1alpha1.GatewayObservedCapabilities, error) {
	now := h.o.Clock.Now()
	var health protocol.Health
	if _, err := a.ask(ctx, http.MethodGet, protocol.PathHealth, nil, &health, now); err != nil {
		return nil, fmt.Errorf("%s: %w", protocol.PathHealth, err)
	}
	if health.Status != "ok" {
		return nil, fmt.Errorf("%s: the status is %.64q", protocol.PathHealth, health.Status)
	}
	var has protocol.Capabilities
	if _, err := a.ask(ctx, http.MethodGet, protocol.PathCapabilities, nil, &has, now); err != nil {
		return nil, fmt.Errorf("%s: %w", protocol.PathCapabilities, err)
	}
	version, err := has.Agree()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", protocol.PathCapabilities, err)
	}
	if err := has.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", protocol.PathCapabilities, err)
	}
	observed := &v1alpha1.GatewayObservedCapabilities{
		ContractVersion: version, AdapterName: has.AdapterName, AdapterVersion: has.AdapterVersion, Capabilities: gateway.CapabilitiesOf(has.Capabilities),
	}
	class, err := h.o.Stored.Classes.Get(ctx, g.Spec.GatewayClassName)
	if err != nil {
		return observed, fmt.Errorf("the GatewayClass %q cannot be read", g.Spec.GatewayClassName)
	}
	if unmet := gateway.Unmet(class.Spec.Capabilities, observed.Capabilities); unmet != "" {
		return observed, fmt.Errorf("the adapter lacks the capability %s, which its class asks for", unmet)
	}
	return observed, nil
}

// maxMessage is the maximum length of a message in a status, in bytes.
const maxMessage = 1000
