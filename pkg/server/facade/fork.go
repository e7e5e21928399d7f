// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"encoding/json"
	"net/http"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// fork takes the flat body of spec 1 §2.9; the idempotency key comes in a header.
func fork(c *call) error {
	spec, err := c.object(true, nil)
	if err != nil {
		return err
	}
	if _, has := spec["idempotencyKey"]; has {
		return badRequest("idempotencyKey: is given in the header Idempotency-Key")
	}
	if key := c.r.Header.Get("Idempotency-Key"); key != "" {
		raw, err := json.Marshal(key)
		if err != nil {
			return badRequest("Idempotency-Key: must be text")
		}
		spec["idempotencyKey"] = raw
	}
	path, err := c.task("fork")
	if err != nil {
		return err
	}
	n, err := post(path, map[string]any{"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "TaskFork", "spec": spec})
	if err != nil {
		return err
	}
	var made v1alpha1.TaskFork
	if err := c.fetch(n, &made); err != nil {
		return err
	}
	code, s := http.StatusCreated, made.Status
	if s.Replayed {
		code = http.StatusOK
	}
	reply(c.w, code, forked{s.Namespace, s.SourceTaskName, s.NewTaskName, s.AfterSeq, s.ForkContext})
	return nil
}

// forked is what a fork made (supplement D1 §2.9). A sequence of 0 is one.
type forked struct {
	Namespace      string                `json:"namespace"`
	SourceTaskName string                `json:"sourceTaskName"`
	NewTaskName    string                `json:"newTaskName"`
	AfterSeq       int64                 `json:"afterSeq"`
	ForkContext    *v1alpha1.ForkContext `json:"forkContext,omitempty"`
}
