// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// policiesOfFile reads policies and bindings; none if there is no file.
func policiesOfFile(term *terminal, name string) ([]apiextensionsv1.JSON, error) {
	if name == "" {
		return nil, nil
	}
	data, err := term.readFile(name)
	if err != nil {
		return nil, err
	}
	var all []apiextensionsv1.JSON
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var doc runtime.RawExtension
		err := docs.Decode(&doc)
		switch {
		case errors.Is(err, io.EOF) && len(all) == 0:
			return nil, fmt.Errorf("%s: has no policies; write objects of kind ValidatingAdmissionPolicy", name)
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case len(doc.Raw) > 0 && string(doc.Raw) != "null": // not an empty document
			all = append(all, apiextensionsv1.JSON{Raw: doc.Raw})
		}
	}
}

// callsOfFile reads ToolCalls. task is that of calls that name none.
func callsOfFile(term *terminal, name, task string) ([]testedCall, error) {
	data, err := term.readFile(name)
	if err != nil {
		return nil, err
	}
	var calls []testedCall
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var call v1alpha1.ToolCall
		err := docs.Decode(&call)
		switch {
		case errors.Is(err, io.EOF) && len(calls) == 0:
			return nil, fmt.Errorf("%s: has no calls; write objects of kind ToolCall with spec.toolName and spec.arguments", name)
		case errors.Is(err, io.EOF):
			return calls, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case call.Kind == "" && call.Spec.ToolName == "": // an empty document
			continue
		case call.Kind != "ToolCall":
			return nil, fmt.Errorf("%s: kind: must be ToolCall, not %q", name, call.Kind)
		case call.Spec.ToolName == "":
			return nil, fmt.Errorf("%s: spec.toolName: is required", name)
		case call.Spec.TaskName == "" && task == "":
			return nil, fmt.Errorf("%s: spec.taskName: is required without --task, because policies see the task of a call", name)
		}
		t := testedCall{Task: call.Spec.TaskName, Tool: call.Spec.ToolName, Kind: call.Spec.Kind, CallID: call.Spec.CallID, Source: "file", arguments: json.RawMessage("{}")}
		if t.Task == "" {
			t.Task = task
		}
		if call.Spec.Arguments != nil {
			t.arguments = call.Spec.Arguments.Raw
		}
		calls = append(calls, t)
	}
}
