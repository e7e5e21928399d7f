// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
)

// Variables returns spec.env of the task as NAME=VALUE, for the programs of the run. It leaves out variables whose source is
// optional and missing. The programs of a task of type container in a Pod have these variables already.
func (r *Run) Variables() ([]string, error) {
	given := map[string]string{} // what the kubelet has resolved
	for _, v := range r.Environ() {
		if v, ok := strings.CutPrefix(v, runspec.EnvTaskVariable); ok {
			name, value, _ := strings.Cut(v, "=")
			given[name] = value
		}
	}
	var env []string
	for _, v := range r.Task.Spec.Env {
		value, known := given[v.Name]
		if !known {
			var err error
			if value, known, err = r.variable(v); err != nil {
				return nil, err
			}
		}
		if known {
			env = append(env, v.Name+"="+value)
		}
	}
	return env, nil
}

// variable returns the value of one variable on the host. known is false if its source is optional and missing. The
// controller has refused tasks whose required sources are missing.
func (r *Run) variable(v corev1.EnvVar) (value string, known bool, err error) {
	from := v.ValueFrom
	switch {
	case from == nil:
		return v.Value, true, nil
	case from.SecretKeyRef != nil: // only the controller may read Secrets
		value, known = r.Credentials.Env[v.Name]
		return value, known, nil
	case from.ConfigMapKeyRef != nil:
		value, known = r.Credentials.ConfigMaps[runspec.ConfigMapKey(r.Task.Namespace, from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key)]
		if !known && !ptr.Deref(from.ConfigMapKeyRef.Optional, false) {
			return "", false, Fail(v1alpha1.ReasonCommandNotRun, "spec.env: %s: the worker was not given key %s of ConfigMap %s", v.Name, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Name)
		}
		return value, known, nil
	}
	return "", false, Fail(v1alpha1.ReasonCommandNotRun, "spec.env: the value of %s has no source that a program of the host can have", v.Name)
}
