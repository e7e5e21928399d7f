// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/vendors"
)

// maxClients bounds how many clients of vendors are kept.
const maxClients = 512

// Candidate is a model that may answer a request.
type Candidate struct {
	Provider *v1alpha1.Provider
	// Model is the name by which the Provider's service knows it.
	Model string

	key    string
	models *Models
}

// LLM returns the candidate for llm.Call. The error says which field of the Provider is wrong.
func (c Candidate) LLM() (llm.Candidate, error) {
	model, err := c.models.clients.get(c)
	if err != nil {
		return llm.Candidate{}, fmt.Errorf("provider %q: %w", c.Provider.Name, err)
	}
	return llm.Candidate{Provider: c.Provider.Name, Name: c.Model, Model: model}, nil
}

// LLM returns the candidates for llm.Call.
func (c *Choice) LLM() ([]llm.Candidate, error) {
	all := make([]llm.Candidate, len(c.Candidates))
	for i, candidate := range c.Candidates {
		var err error
		if all[i], err = candidate.LLM(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// clients keeps the vendors' clients, because a client learns what its server does not support.
type clients struct {
	mu  sync.Mutex
	all map[clientKey]llm.Model
}

// clientKey identifies the state of a Provider and its key, without holding the key.
type clientKey struct {
	uid        types.UID
	generation int64
	key        [sha256.Size]byte
}

func (s *clients) get(c Candidate) (llm.Model, error) {
	id := clientKey{uid: c.Provider.UID, generation: c.Provider.Generation, key: sha256.Sum256([]byte(c.key))}
	s.mu.Lock()
	defer s.mu.Unlock()
	if model, ok := s.all[id]; ok {
		return model, nil
	}
	vendor, ok := vendors.Find(c.Provider.Spec.Type)
	if !ok {
		return nil, fmt.Errorf("spec.type: must be %s, not %s", vendors.Types(), c.Provider.Spec.Type)
	}
	model, err := vendor.New(llm.Endpoint{Spec: c.Provider.Spec.DeepCopy(), Key: c.key, Clock: c.models.o.Clock, Transport: c.models.transport})
	if err != nil {
		return nil, err
	}
	if s.all == nil || len(s.all) >= maxClients { // all share one transport, so that a dropped client leaves no connection behind
		s.all = map[clientKey]llm.Model{}
	}
	s.all[id] = model
	return model, nil
}
