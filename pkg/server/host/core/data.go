// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// maxData bounds the data of a Secret or ConfigMap, as in Kubernetes: 1 MiB.
const maxData = corev1.MaxSecretSize

// Secrets are stored encrypted; see package seal.
var Secrets = &resource.Definition[*corev1.Secret]{
	Unguarded: true,
	Resource:  corev1.SchemeGroupVersion.WithResource("secrets"),
	Kind:      "Secret", Singular: "secret",
	Fields: []resource.Field[*corev1.Secret]{
		{Path: "type", Value: func(s *corev1.Secret) string { return string(s.Type) }},
	},
	Columns: []resource.Column[*corev1.Secret]{
		{Name: "Type", Description: "Used to facilitate programmatic handling of secret data.", Value: func(s *corev1.Secret) any { return string(s.Type) }},
		{Name: "Data", Type: "integer", Description: "How many values the secret has.", Value: func(s *corev1.Secret) any { return int64(len(s.Data)) }},
	},
	Shape: resource.Kept[*corev1.Secret]{
		UnconditionalUpdate: true,
		Validate:            validateSecret,
		ValidateUpdate: func(_ context.Context, s, old *corev1.Secret) field.ErrorList {
			var errs field.ErrorList
			if s.Type != old.Type {
				errs = append(errs, field.Invalid(field.NewPath("type"), s.Type, "field is immutable"))
			}
			return append(errs, sealed(old.Immutable, s.Immutable, part{"data", s.Data, old.Data})...)
		},
	},
}

// ConfigMaps hold configuration that is not secret.
var ConfigMaps = &resource.Definition[*corev1.ConfigMap]{
	Unguarded: true,
	Resource:  corev1.SchemeGroupVersion.WithResource("configmaps"),
	Kind:      "ConfigMap", Singular: "configmap", ShortNames: []string{"cm"},
	Columns: []resource.Column[*corev1.ConfigMap]{
		{Name: "Data", Type: "integer", Description: "How many values the configmap has.", Value: func(c *corev1.ConfigMap) any {
			return int64(len(c.Data) + len(c.BinaryData))
		}},
	},
	Shape: resource.Kept[*corev1.ConfigMap]{
		UnconditionalUpdate: true,
		Validate:            validateConfigMap,
		ValidateUpdate: func(_ context.Context, c, old *corev1.ConfigMap) field.ErrorList {
			return sealed(old.Immutable, c.Immutable, part{"data", c.Data, old.Data}, part{"binaryData", c.BinaryData, old.BinaryData})
		},
	},
}

// part is one field that must not change in an immutable object.
type part struct {
	name     string
	now, old any
}

// sealed checks the immutable flag: once it is set, neither the flag nor the
// data may change. Errors never quote the data.
func sealed(was, is *bool, parts ...part) field.ErrorList {
	if was == nil || !*was {
		return nil
	}
	const message = "field is immutable when `immutable` is set"
	var errs field.ErrorList
	if is == nil || !*is {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), message))
	}
	for _, p := range parts {
		if !equality.Semantic.DeepEqual(p.now, p.old) {
			errs = append(errs, field.Forbidden(field.NewPath(p.name), message))
		}
	}
	return errs
}

// validateKeys checks the keys of data and returns their total size in bytes.
func validateKeys[V ~string | ~[]byte](data map[string]V, path *field.Path) (field.ErrorList, int) {
	var errs field.ErrorList
	total := 0
	for k, v := range data {
		for _, msg := range validation.IsConfigMapKey(k) {
			errs = append(errs, field.Invalid(path.Key(k), k, msg))
		}
		total += len(v)
	}
	return errs, total
}

func validateConfigMap(_ context.Context, c *corev1.ConfigMap) field.ErrorList {
	errs, size := validateKeys(c.Data, field.NewPath("data"))
	more, binary := validateKeys(c.BinaryData, field.NewPath("binaryData"))
	errs = append(errs, more...)
	for k := range c.BinaryData {
		if _, both := c.Data[k]; both {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(k), k, fmt.Sprintf("duplicate of key %q in binaryData", k)))
		}
	}
	if size+binary > maxData {
		errs = append(errs, field.TooLong(field.NewPath(""), "", maxData))
	}
	return errs
}

func validateSecret(_ context.Context, s *corev1.Secret) field.ErrorList {
	path := field.NewPath("data")
	errs, size := validateKeys(s.Data, path)
	if size > maxData {
		errs = append(errs, field.TooLong(path, "", maxData))
	}
	need := func(keys ...string) {
		for _, k := range keys {
			if _, ok := s.Data[k]; !ok {
				errs = append(errs, field.Required(path.Key(k), ""))
			}
		}
	}
	config := func(key string) {
		if content, ok := s.Data[key]; !ok {
			errs = append(errs, field.Required(path.Key(key), ""))
		} else if !json.Valid(content) {
			errs = append(errs, field.Invalid(path.Key(key), "<secret contents redacted>", "it is not JSON"))
		}
	}
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		errs = append(errs, field.Forbidden(field.NewPath("type"),
			"tokens that never expire are not made here; ask for one with kubectl create token or the serviceaccounts/token subresource"))
	case corev1.SecretTypeDockercfg:
		config(corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		config(corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		_, user := s.Data[corev1.BasicAuthUsernameKey]
		_, password := s.Data[corev1.BasicAuthPasswordKey]
		if !user && !password {
			need(corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		need(corev1.SSHAuthPrivateKey)
	case corev1.SecretTypeTLS:
		need(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return errs
}
