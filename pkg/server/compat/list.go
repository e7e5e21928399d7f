// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
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

// known returns the default models of the namespace's Providers, each as PROVIDER/MODEL and as MODEL.
func (x *exchange) known() ([]listed, error) {
	providers, err := x.h.o.Models.Providers(x.r.Context(), x.call.namespace)
	if err != nil {
		return nil, err
	}
	all := []listed{}
	seen := map[string]bool{}
	add := func(id string, of *v1alpha1.Provider) {
		if seen[id] {
			return
		}
		seen[id] = true
		all = append(all, listedAs(id, of))
	}
	for i := range providers {
		if of := &providers[i]; of.Spec.DefaultModel != "" {
			add(of.Name+"/"+of.Spec.DefaultModel, of)
			add(of.Spec.DefaultModel, of)
		}
	}
	return all, nil
}

// listedAs returns a model of a Provider under a name.
func listedAs(id string, of *v1alpha1.Provider) listed {
	created := of.CreationTimestamp.UTC()
	return listed{
		ID: id, Object: "model", Created: created.Unix(), OwnedBy: string(of.Spec.Type),
		Type: "model", DisplayName: id, CreatedAt: created.Format(time.RFC3339),
	}
}

// list answers with the models that are known, or with the one that the path names.
func (x *exchange) list() error {
	all, err := x.known()
	if err != nil {
		return err
	}
	return x.answerList(all)
}

// answerList answers with models, or with the one of them that the path names.
func (x *exchange) answerList(all []listed) error {
	var body any
	if id := x.call.route.model; id != "" {
		i := slices.IndexFunc(all, func(m listed) bool { return m.ID == id })
		if i < 0 {
			return problem{
				code: http.StatusNotFound, param: "model", reason: "model_not_found",
				message: fmt.Sprintf("model: %.256q is none of those that are listed here for namespace %q", id, x.call.namespace),
			}
		}
		body = all[i]
	} else {
		p := page{Object: "list", Data: all}
		if n := len(all); n > 0 {
			p.FirstID, p.LastID = &all[0].ID, &all[n-1].ID
		}
		body = p
	}
	return x.answer(body)
}

// answer sends a value of this server as the whole answer.
func (x *exchange) answer(body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	h := x.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(data)))
	x.w.WriteHeader(http.StatusOK)
	_, _ = x.w.Write(data) // the client may be gone, and wants no body with HEAD
	return nil
}
