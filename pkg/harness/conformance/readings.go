// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/harness"
)

// readings are the checks of what a runtime says about itself, and of who may ask.
func readings() []Check {
	return []Check{
		{Number: "R1", Required: "GET /v2/health says protocol, instance and state.", Advice: "Answer with 200 and {\"protocol\", \"instance\", \"status\"}, and nothing else.", run: healthy},
		{Number: "R2", Required: "GET /v2/capabilities has all limits, and the guarantees of its mode.", Advice: "See the table of limits in docs/harness-v2.md. A runtime that does not guarantee all seven must be trusted-non-governed.", run: capable},
		{Number: "R3", Required: "GET /v2/status says instance, lifecycle, epoch and sessions.", Advice: "Members that are 0 or empty must be there, too.", needs: []string{"R2"}, run: knowsStatus},
		{Number: "R4", Required: "The instance has the same name on all routes, at all times.", Advice: "Choose the name when the process starts. Behind a balancer, each process needs an address of its own.", needs: []string{"R1", "R3"}, run: sameInstance},
		{Number: "R5", Required: "Unknown paths and methods are refused in the form of errors.", Advice: "Answer 404 NotFound and 405 MethodNotAllowed with {\"error\": {\"code\", \"reason\", \"message\"}}, also where a framework answers for you.", run: unknownPaths},
		{Number: "A1", Required: "Requests without the controller token are refused, on every route.", Advice: "Check the token before the path, the headers and the body.", needs: []string{"R3"}, run: withoutToken},
		{Number: "A2", Required: "Requests with another token are refused, on every route.", Advice: "Compare the whole token, in constant time.", needs: []string{"A1"}, run: otherToken},
		{Number: "A3", Required: "Changes without a capability are refused.", Advice: "Require the header X-Platform-Harness-Capability on every PUT and DELETE but /v2/credential-bootstrap.", needs: []string{"R3"}, run: withoutCapability},
		{Number: "A4", Required: "Changes with a capability that another key made are refused.", Advice: "Compute the HMAC with the operation key over the canonical form, and compare it in constant time.", needs: []string{"A3"}, run: otherKey},
		{Number: "A5", Required: "Changes with a capability that has expired, or expires in an hour, are refused.", Advice: "Compare EXPIRES with the clock of the runtime, and accept at most 15 minutes.", needs: []string{"A4"}, run: expired},
		{Number: "A6", Required: "Changes with the capability of another operation are refused.", Advice: "The HMAC covers operation, digest, instance, epoch and generation: take them from the headers of this request.", needs: []string{"A4"}, run: reused},
		{Number: "A7", Required: "Whoever has the controller token cannot replace the credentials.", Advice: "Answer AlreadyBootstrapped, or NotSupported without a bootstrap token.", needs: []string{"R3"}, run: bootstrapped},
	}
}

func healthy(ctx context.Context, p *probe) error {
	h, err := p.client.Health(ctx)
	if err != nil {
		return did("GET /v2/health", err)
	}
	if h.Status == harness.HealthUnhealthy {
		return found("it is unhealthy, so it cannot be checked")
	}
	return nil
}

func capable(ctx context.Context, p *probe) error {
	c, err := p.client.Capabilities(ctx)
	if err != nil {
		return did("GET /v2/capabilities", err)
	}
	p.caps, p.instance, p.runtime = c.Capabilities, c.Capabilities.RuntimeInstanceID, c.Runtime.Name+" "+c.Runtime.Version
	p.mean(1)
	return nil
}

func knowsStatus(ctx context.Context, p *probe) error {
	st, err := p.client.Status(ctx)
	if err != nil {
		return did("GET /v2/status", err)
	}
	if st.Lifecycle != harness.Serving {
		return found("it is %s, so it cannot be checked", st.Lifecycle)
	}
	p.mean(st.ControllerEpoch + 1)
	return nil
}

func sameInstance(ctx context.Context, p *probe) error {
	for range 2 {
		h, err := p.client.Health(ctx)
		if err != nil {
			return did("GET /v2/health", err)
		}
		st, err := p.client.Status(ctx)
		if err != nil {
			return did("GET /v2/status", err)
		}
		if h.Instance != p.instance || st.Instance != p.instance {
			return found("the capabilities say %s, the health %s, the status %s", p.instance, h.Instance, st.Instance)
		}
	}
	return nil
}

func unknownPaths(ctx context.Context, p *probe) error {
	_, err := p.send(ctx, raw{method: http.MethodGet, path: "/v2/nothing"})
	if err := refused("GET /v2/nothing", err, harness.NotFound); err != nil {
		return err
	}
	_, err = p.send(ctx, raw{method: http.MethodGet, path: harness.PathSession(p.name())})
	if err := refused("GET of a session that does not exist", err, harness.NotFound); err != nil {
		return err
	}
	_, err = p.send(ctx, raw{method: http.MethodPost, path: harness.PathStatus})
	return refused("POST /v2/status", err, harness.MethodNotAllowed)
}

// routes are requests for every route. Those that change something name a session that does not exist.
func (p *probe) routes() []raw {
	s, n := p.name(), p.name()
	all := []raw{
		{method: http.MethodGet, path: harness.PathHealth},
		{method: http.MethodGet, path: harness.PathCapabilities},
		{method: http.MethodGet, path: harness.PathStatus},
		{method: http.MethodPut, path: harness.PathBootstrap, body: "{}"},
		undrain(),
		{method: http.MethodPut, path: harness.PathSession(s), generation: 1, body: "{}"},
		{method: http.MethodGet, path: harness.PathSession(s)},
		{method: http.MethodDelete, path: harness.PathSession(s), generation: 1},
		{method: http.MethodPut, path: harness.PathSession(s, "workspace"), generation: 1, body: "x", kind: harness.TypeWorkspace},
		{method: http.MethodPut, path: harness.PathSession(s, "publication-finalization"), generation: 1, body: "{}"},
	}
	for _, below := range [][]string{{"prompts", n}, {"workspace-deltas", n}} {
		all = append(all, raw{method: http.MethodGet, path: harness.PathSession(s, below...)}, raw{method: http.MethodPut, path: harness.PathSession(s, below...), generation: 1, body: "{}"})
	}
	for _, below := range [][]string{{"prompts", n, "lease"}, {"prompts", n, "cancel"}, {"prompts", n, "permissions", n}} {
		all = append(all, raw{method: http.MethodPut, path: harness.PathSession(s, below...), generation: 1, body: "{}"})
	}
	return all
}

func (p *probe) withToken(ctx context.Context, token, what string) error {
	for _, r := range p.routes() {
		r.token = &token
		_, err := p.send(ctx, r)
		if err := refused(r.method+" "+r.path+" "+what, err, harness.Unauthenticated); err != nil {
			return err
		}
	}
	return nil
}

func withoutToken(ctx context.Context, p *probe) error {
	return p.withToken(ctx, "", "without a token")
}

func otherToken(ctx context.Context, p *probe) error {
	changed := []byte(p.o.Token)
	changed[len(changed)-1] ^= 1
	for _, token := range []string{string(changed), p.o.Token[:len(p.o.Token)-1]} {
		if err := p.withToken(ctx, strings.ToValidUTF8(token, "x"), "with another token"); err != nil {
			return err
		}
	}
	return nil
}

func withoutCapability(ctx context.Context, p *probe) error {
	r := undrain()
	r.header = func(h http.Header) { h.Del(harness.HeaderCapability) }
	_, err := p.send(ctx, r)
	return refused("PUT /v2/drain without a capability", err, harness.CapabilityInvalid)
}

func otherKey(ctx context.Context, p *probe) error {
	r := undrain()
	r.key = slices.Clone(p.o.Key)
	r.key[0] ^= 1
	_, err := p.send(ctx, r)
	return refused("PUT /v2/drain with a capability of another key", err, harness.CapabilityInvalid)
}

func expired(ctx context.Context, p *probe) error {
	for _, until := range []time.Duration{-time.Hour, time.Hour} {
		r := undrain()
		r.until = until
		_, err := p.send(ctx, r)
		if err := refused(fmt.Sprintf("PUT /v2/drain with a capability that expires in %s", until), err, harness.CapabilityInvalid); err != nil {
			return err
		}
	}
	return p.takes(ctx, "PUT /v2/drain with a good capability", undrain())
}

func reused(ctx context.Context, p *probe) error {
	var capability string
	r := undrain()
	r.header = func(h http.Header) { capability = h.Get(harness.HeaderCapability) }
	if err := p.takes(ctx, "PUT /v2/drain", r); err != nil {
		return err
	}
	r.header = func(h http.Header) { h.Set(harness.HeaderCapability, capability) }
	_, err := p.send(ctx, r)
	return refused("PUT /v2/drain with the capability of another operation", err, harness.CapabilityInvalid)
}

func bootstrapped(ctx context.Context, p *probe) error {
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", harness.MinSecret)))
	_, err := p.send(ctx, raw{
		method: http.MethodPut, path: harness.PathBootstrap, header: func(h http.Header) { h.Del(harness.HeaderCapability) },
		body: fmt.Sprintf(`{"controllerToken":%q,"operationKey":%q}`, strings.Repeat("t", harness.MinSecret), key),
	})
	if err := refused("PUT /v2/credential-bootstrap with the controller token", err, harness.AlreadyBootstrapped, harness.NotSupported); err != nil {
		return err
	}
	_, err = p.client.Status(ctx)
	return did("GET /v2/status with the token that it has", err)
}
