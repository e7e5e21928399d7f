// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/vendors"
)

const (
	probeTimeout = 15 * time.Second
	// maxModels is how much of a list of models is read, in bytes.
	maxModels = 4 << 20
	// mostAnswers is how many Providers' answers are kept. When there are more, all are forgotten.
	mostAnswers = 1000
)

// answer is what a probe found.
type answer struct {
	// found describes what the endpoint answered; problem is what is wrong, or empty.
	found, problem string
}

// probes asks endpoints for their models. It keeps each answer for a while, because a Provider is also looked at whenever
// its status changes.
type probes struct {
	now    func() time.Time
	client *http.Client

	mu   sync.Mutex // guards kept
	kept map[probed]keptAnswer
}

// probed is what an answer is about.
type probed struct {
	provider   types.UID
	generation int64
	secret     string // resource version of the Secret
}

type keptAnswer struct {
	answer
	until time.Time
}

// newProbes returns probes that reach whatever requests to models reach: every address but link-local ones, where clouds
// serve their metadata.
func newProbes(now func() time.Time) *probes {
	return &probes{now: now, kept: map[probed]keptAnswer{}, client: &http.Client{
		Timeout: probeTimeout, Transport: egress.ForProviders().Transport(),
		// The key is for this address alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// ask returns the answer of the endpoint of a Provider.
func (s *probes) ask(ctx context.Context, p *v1alpha1.Provider, key, secretVersion string) answer {
	about := probed{p.UID, p.Generation, secretVersion}
	s.mu.Lock()
	kept, ok := s.kept[about]
	s.mu.Unlock()
	if ok && s.now().Before(kept.until) {
		return kept.answer
	}
	a := s.request(ctx, &p.Spec, key)
	keep := recheckReady
	if a.problem != "" {
		keep = recheckNotReady
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) >= mostAnswers {
		clear(s.kept)
	}
	s.kept[about] = keptAnswer{a, s.now().Add(keep - time.Second)}
	return a
}

// request asks the endpoint. What it says is not repeated, because it may quote the key.
func (s *probes) request(ctx context.Context, spec *v1alpha1.ProviderSpec, key string) answer {
	vendor, ok := vendors.Find(spec.Type)
	if !ok {
		return answer{}
	}
	target, err := vendor.Target(llm.Endpoint{Spec: spec, Key: key}, "models")
	if err != nil { // a vendor without a list of models
		return answer{found: "the endpoint was not asked, because it has no list of models"}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.URL.String(), nil)
	if err != nil {
		return answer{problem: "spec.baseURL: no request can be made to it"}
	}
	req.Header = target.Header
	resp, err := s.client.Do(req)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err
		}
		return answer{problem: fmt.Sprintf("spec.baseURL: %s cannot be reached: %v", target.URL.Host, err)}
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	switch code := resp.StatusCode; code {
	case http.StatusOK:
		return models(spec, target.URL, io.LimitReader(resp.Body, maxModels))
	case http.StatusUnauthorized, http.StatusForbidden:
		return answer{problem: fmt.Sprintf("spec.secretRef: the endpoint refuses the API key (status %d)", code)}
	case http.StatusTooManyRequests:
		return answer{found: "the endpoint was reached, and asks to wait (status 429)"}
	default:
		return answer{problem: fmt.Sprintf("spec.baseURL: %s was answered with status %d%s", shown(target.URL), code, hint(vendor, target.URL))}
	}
}

// models reads a list of models, which has the same form in all protocols.
func models(spec *v1alpha1.ProviderSpec, from *url.URL, body io.Reader) answer {
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
		More bool `json:"has_more"`
	}
	if err := json.NewDecoder(body).Decode(&list); err != nil || list.Data == nil {
		vendor, _ := vendors.Find(spec.Type)
		return answer{problem: fmt.Sprintf("spec.baseURL: %s was answered with something else than a list of models%s", shown(from), hint(vendor, from))}
	}
	a := answer{found: fmt.Sprintf("the endpoint accepts the API key and lists %d models", len(list.Data))}
	has := false
	for _, m := range list.Data {
		has = has || m.ID == spec.DefaultModel
	}
	if spec.DefaultModel != "" && !has && !list.More {
		a.found += fmt.Sprintf("; spec.defaultModel %q is not among them", spec.DefaultModel)
	}
	return a
}

// hint says that the path of an address may lack the version.
func hint(v llm.Vendor, u *url.URL) string {
	if v.Protocol != llm.ProtocolOpenAI || slices.Contains(strings.Split(u.Path, "/"), "v1") {
		return ""
	}
	return "; most servers of this type expect a base URL that ends in /v1"
}

// shown returns an address without what may be secret in it.
func shown(u *url.URL) string { return u.Scheme + "://" + u.Host + "/" + strings.TrimLeft(u.Path, "/") }
