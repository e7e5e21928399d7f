// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// listed is a model in the form of both protocols, whose lists differ in names alone.
type listed struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Type        string `json:"type"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
}

// page is a list of models, which is always complete.
type page struct {
	Object  string   `json:"object"`
	Data    []listed `json:"data"`
	HasMore bool     `json:"has_more"`
	FirstID *string  `json:"first_id"`
	LastID  *string  `json:"last_id"`
}

// list answers with the default models of the namespace's Providers, each as PROVIDER/MODEL and as MODEL.
func (x *exchange) list() error {
	providers, err := x.h.o.Models.Providers(x.r.Context(), x.call.namespace)
	if err != nil {
		return err
	}
	p := page{Object: "list", Data: []listed{}}
	seen := map[string]bool{}
	add := func(id string, of *v1alpha1.Provider) {
		if seen[id] {
			return
		}
		seen[id] = true
		created := of.CreationTimestamp.UTC()
		p.Data = append(p.Data, listed{
			ID: id, Object: "model", Created: created.Unix(), OwnedBy: string(of.Spec.Type),
			Type: "model", DisplayName: id, CreatedAt: created.Format(time.RFC3339),
		})
	}
	for i := range providers {
		if of := &providers[i]; of.Spec.DefaultModel != "" {
			add(of.Name+"/"+of.Spec.DefaultModel, of)
			add(of.Spec.DefaultModel, of)
		}
	}
	if n := len(p.Data); n > 0 {
		p.FirstID, p.LastID = &p.Data[0].ID, &p.Data[n-1].ID
	}
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(http.StatusOK)
	_, _ = x.w.Write(data) // the client may be gone
	return nil
}
