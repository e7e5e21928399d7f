// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package vendors lists the model vendors that this version supports, by the type of a
// Provider.
package vendors

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/anthropic"
	"github.com/platform-ai/platform/pkg/llm/openai"
)

// list has an entry for each supported type of Provider.
var list = []llm.Vendor{
	anthropic.Vendor,
	openai.Vendor,
	openai.AzureVendor,
}

// Find returns the vendor of a type, and false if this version has none.
func Find(t v1alpha1.ProviderType) (llm.Vendor, bool) {
	i := slices.IndexFunc(list, func(v llm.Vendor) bool { return v.Type == t })
	if i < 0 {
		return llm.Vendor{}, false
	}
	return list[i], true
}

// Types returns the types of all vendors as text for people.
func Types() string { return names(func(llm.Vendor) bool { return true }) }

func names(which func(llm.Vendor) bool) string {
	var types []string
	for _, v := range list {
		if which(v) {
			types = append(types, string(v.Type))
		}
	}
	if n := len(types); n > 1 {
		return strings.Join(types[:n-1], ", ") + " or " + types[n-1]
	}
	return strings.Join(types, "")
}

// Address returns where a Provider sends its key.
func Address(s *v1alpha1.ProviderSpec) (*url.URL, error) {
	v, ok := Find(s.Type)
	if !ok {
		return nil, fmt.Errorf("spec.type: must be %s, not %s", Types(), s.Type)
	}
	path := "chat/completions"
	if v.Protocol == llm.ProtocolAnthropic {
		path = "messages"
	}
	target, err := v.Target(llm.Endpoint{Spec: s}, path)
	return target.URL, err
}

// Check returns which fields of a Provider do not fit its type.
func Check(s *v1alpha1.ProviderSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	v, _ := Find(s.Type)
	if v.NeedsBaseURL && s.BaseURL == "" {
		errs = append(errs, field.Required(path.Child("baseURL"), "type "+string(s.Type)+" needs it"))
	}
	switch {
	case v.NeedsAzure && (s.Azure == nil || s.Azure.DeploymentName == ""):
		errs = append(errs, field.Required(path.Child("azure"), "type "+string(s.Type)+" needs it"))
	case !v.NeedsAzure && s.Azure != nil:
		needs := names(func(v llm.Vendor) bool { return v.NeedsAzure })
		errs = append(errs, field.Forbidden(path.Child("azure"), "is for type "+needs+", not for "+string(s.Type)))
	}
	return errs
}
